#include "storm/account.h"

#include <algorithm>
#include <numeric>

namespace mayfly::storm {
namespace {

std::string in_words(const std::vector<SampleRange>& ranges) {
  std::string text;
  for (const SampleRange& range : ranges) text += fmt::format(" {}-{}", range.first, range.end());
  return text.empty() ? " none" : text;
}

}  // namespace

bool is_news(const Record& record) {
  const bool ignored = !record.lines.empty() && record.lines[0].find("\"ignored\"") != std::string::npos;
  return !record.stored && !ignored;
}

bool Weights::whole() const {
  const bool once = std::all_of(counts.begin(), counts.end(), [](std::uint8_t count) { return count <= 1; });
  return once && std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == sample;
}

bool Weights::same(const Weights& other) const { return sample == other.sample && ranges() == other.ranges(); }

std::vector<SampleRange> Weights::ranges() const {
  std::vector<SampleRange> found;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    if (counts[i] == 0) continue;
    if (!found.empty() && found.back().end() == place) {
      ++found.back().count;
    } else {
      found.push_back({place, 1});
    }
  }
  return found;
}

void Account::stored(const Record& record) {
  if (!is_news(record)) return;
  if (const auto* step = std::get_if<StepCommitted>(&record.event.event)) {
    require(step->first_sample == static_cast<double>(end_) && step->samples > 0,
            "a step from {} was written down, and everything before {} is", step->first_sample, end_);
    end_ += static_cast<std::int64_t>(step->samples);
    furthest_ = std::max(furthest_, end_);
    ends_[formation_].insert(end_);
    ended_in_ = formation_;
    ++commits_;
  }
  if (const auto* back = std::get_if<RolledBack>(&record.event.event)) {
    const auto to = static_cast<std::int64_t>(back->sample.value_or(-1));
    const bool known = std::find(checkpoints_.begin(), checkpoints_.end(), to) != checkpoints_.end();
    require(known && to <= furthest_, "rolled back to {}, and no checkpoint holds that", to);
    redone_ += std::max<std::int64_t>(0, end_ - to);
    end_ = to;
    ended_in_ = -1;
    ++rollbacks_;
  }
}

void Account::applied(const std::string& who, const Weights& weights, std::int64_t formation) {
  if (!weights.whole())
    require(false, "{} holds a sample twice, or not those it says: {} of{}", who, weights.sample,
            in_words(weights.ranges()));
  require(ends_[formation].contains(weights.sample),
          "{} has applied a step of formation {} that ends at {}, and it was not written down", who, formation,
          weights.sample);
}

void Account::compared(const std::string& who, const Weights& one, const Weights& other) {
  if (!one.same(other))
    require(false, "{} should hold the same:{} and{}", who, in_words(one.ranges()), in_words(other.ranges()));
}

void Account::saved(const Weights& weights, const std::vector<SampleRange>& ledger) {
  require(weights.whole(), "a checkpoint of {} holds{}", weights.sample, in_words(weights.ranges()));
  require(weights.ranges() == ledger, "a checkpoint holds{}, its ledger says{}", in_words(weights.ranges()),
          in_words(ledger));
  checkpoints_.push_back(weights.sample);
}

void Account::finished(const Weights& weights, std::int64_t target) {
  require(weights.whole() && weights.ranges() == std::vector<SampleRange>{{0, target}},
          "the run was to train {} samples, and leaves{}", target, in_words(weights.ranges()));
}

}  // namespace mayfly::storm
