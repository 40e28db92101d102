#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "run/acts.h"

namespace mayfly::storm {

/// What a network's weights hold, as the counting job has it: how often each sample is in them.
struct Weights {
  std::int64_t sample = 0;
  std::vector<std::uint8_t> counts{};
  void apply(std::int64_t first, std::int64_t count) {
    if (counts.size() < static_cast<std::size_t>(first + count)) counts.resize(static_cast<std::size_t>(first + count));
    for (std::int64_t i = first; i < first + count; ++i) ++counts[static_cast<std::size_t>(i)];
    sample += count;
  }
  /// Each sample once, and as many as it says.
  bool whole() const;
  bool same(const Weights& other) const;
  std::vector<SampleRange> ranges() const;
};

/// Whether an event that is written down has changed anything.
bool is_news(const Record& record);

/// Keeps its own account of every sample, from what is written down and what workers apply. Shares no code with the
/// session, the crews or the ledger.
class Account {
 public:
  /// Something became durable.
  void stored(const Record& record);
  /// From now on steps are those of this formation.
  void formed(std::int64_t formation) { formation_ = formation; }
  std::int64_t formation() const { return formation_; }
  /// A worker or server has applied a step of a formation: it must have been written down before.
  void applied(const std::string& who, const Weights& weights, std::int64_t formation);
  /// Two that should hold the same.
  void compared(const std::string& who, const Weights& one, const Weights& other);
  /// A checkpoint was written, with this ledger beside the weights.
  void saved(const Weights& weights, const std::vector<SampleRange>& ledger);
  /// The run says that it is over, and leaves this behind.
  void finished(const Weights& weights, std::int64_t target);

  /// The first promise that does not hold is kept, with the figures that show it.
  template <class... Figures>
  void require(bool holds, fmt::format_string<Figures...> promise, Figures&&... figures) {
    if (!holds && broken_.empty()) broken_ = fmt::format(promise, std::forward<Figures>(figures)...);
  }
  const std::string& broken() const { return broken_; }
  /// The end of what is written down.
  std::int64_t end() const { return end_; }
  int commits() const { return commits_; }
  int rollbacks() const { return rollbacks_; }
  /// Samples that a roll-back has undone.
  std::int64_t redone() const { return redone_; }
  /// The formation whose step led to the end of what is written down.
  std::int64_t ended_in() const { return ended_in_; }

 private:
  std::int64_t end_ = 0;
  std::int64_t formation_ = 0;
  std::map<std::int64_t, std::set<std::int64_t>> ends_{};  ///< of steps that were written down, by formation
  std::int64_t furthest_ = 0;
  int commits_ = 0;
  int rollbacks_ = 0;
  std::int64_t redone_ = 0;
  std::int64_t ended_in_ = -1;
  std::vector<std::int64_t> checkpoints_{0};
  std::string broken_{};
};

}  // namespace mayfly::storm
