#include "plan/lookahead.h"

#include <algorithm>
#include <vector>

namespace mayfly {
namespace {

constexpr int kNowhere = -1;

/// One (shape, unfinished) pair of a level; the shape `size` means that nothing runs.
struct State {
  int shape = 0;
  bool unfinished = false;
  double samples = 0;
  double pending = 0;     ///< seconds, of an unfinished change
  int before = kNowhere;  ///< place in the level before
};

/// The best way to each state after an interval. Finished and unfinished ways to one shape are kept apart: a change on
/// top of an unfinished one costs a restart more, so neither replaces the other.
class Level {
 public:
  explicit Level(int size) : place_(2 * (static_cast<std::size_t>(size) + 1), kNowhere) {}

  void offer(const State& state, const std::vector<State>& previous, const Shapes& shapes) {
    int& place = place_[2 * static_cast<std::size_t>(state.shape) + (state.unfinished ? 1 : 0)];
    if (place == kNowhere) {
      place = static_cast<int>(states_.size());
      states_.push_back(state);
      return;
    }
    State& held = states_[static_cast<std::size_t>(place)];
    if (better(state, held, previous, shapes)) held = state;
  }
  std::vector<State> take() { return std::move(states_); }

 private:
  static bool better(const State& a, const State& b, const std::vector<State>& previous, const Shapes& shapes) {
    // Parcae's rules, ties included: its released choices, which the tests compare with, depend on them. Of unfinished
    // ways the one with more samples may be the worse one in the end; docs/models.md#look-ahead says how often.
    if (a.samples != b.samples) return a.samples > b.samples;
    if (a.unfinished) return a.pending < b.pending;
    const auto depth = [&](const State& state) {
      const int shape = previous[static_cast<std::size_t>(state.before)].shape;
      return shape == shapes.size() ? 0 : shapes[shape].stages;
    };
    return depth(a) < depth(b);
  }

  std::vector<int> place_;
  std::vector<State> states_;
};

}  // namespace

std::optional<int> look_ahead(const Shapes& shapes, const MigrationCosts& costs, Seconds interval,
                              const Position& position, std::span<const Outlook> outlook) {
  const int size = shapes.size();
  const bool busy = position.pending.count() > 0;
  std::vector<std::vector<State>> levels{
      {{position.shape.value_or(size), busy, 0, position.pending.count(), kNowhere}}};
  int machines = position.machines;
  for (const Outlook& ahead : outlook) {
    const int next = machines + ahead.added - ahead.removed;
    const MigrationCosts::Table& table = costs.table(machines, ahead.removed);
    const std::vector<State>& previous = levels.back();
    Level level(size);
    for (std::size_t at = 0; at < previous.size(); ++at) {
      const State& state = previous[at];
      bool fits = false;
      for (int to = 0; to < size; ++to) {
        if (shapes[to].machines() > next) continue;
        fits = true;
        double cost = table(state.shape, to);
        // To stay is to wait for the rest; a change on top of it costs its own time and one more restart.
        if (state.unfinished) cost = cost > 0 ? cost + costs.restart(to, false).count() : state.pending;
        const double left = interval.count() - cost;
        State after{to, left < 0, state.samples, 0, static_cast<int>(at)};
        if (left >= 0) {
          after.samples += shapes.speed(to) * left;
        } else {
          after.pending = -left;
        }
        level.offer(after, previous, shapes);
      }
      if (!fits) level.offer({size, false, state.samples, 0, static_cast<int>(at)}, previous, shapes);
    }
    levels.push_back(level.take());
    machines = next;
  }
  const auto best = std::max_element(levels.back().begin(), levels.back().end(), [](const State& a, const State& b) {
    return a.samples != b.samples ? a.samples < b.samples : a.pending > b.pending;
  });
  State state = *best;
  for (std::size_t level = levels.size() - 1; level > 1; --level)
    state = levels[level - 1][static_cast<std::size_t>(state.before)];
  if (levels.size() == 1 || state.shape == size) return std::nullopt;
  return state.shape;
}

QuietLookAhead::QuietLookAhead(const Shapes& shapes, const MigrationCosts& costs, Seconds interval, int intervals)
    : shapes_(shapes), costs_(costs), interval_(interval.count()), intervals_(intervals) {}

const std::vector<double>& QuietLookAhead::worth(int machines) const {
  const auto [entry, fresh] = worth_.try_emplace(machines, static_cast<std::size_t>(shapes_.size()), 0.0);
  if (!fresh) return entry->second;
  const MigrationCosts::Table& table = costs_.table(machines, 0);
  // One interval less than asked for: choice() adds the one that the event falls into.
  for (int left = 1; left < intervals_; ++left) {
    std::vector<double> next = entry->second;
    for (int from = 0; from < shapes_.size(); ++from) {
      if (shapes_[from].machines() > machines) continue;
      double& best = next[static_cast<std::size_t>(from)];
      best += shapes_.speed(from) * interval_;
      for (int to = 0; to < shapes_.size(); ++to) {
        // Where nothing is to happen, only more speed pays for a change.
        if (shapes_[to].machines() > machines || shapes_.speed(to) <= shapes_.speed(from)) continue;
        best = std::max(
            best, shapes_.speed(to) * (interval_ - table(from, to)) + entry->second[static_cast<std::size_t>(to)]);
      }
    }
    entry->second = std::move(next);
  }
  return entry->second;
}

std::optional<int> QuietLookAhead::choice(const Position& position, const Outlook& event) const {
  const int after = position.machines + event.added - event.removed;
  const std::vector<double>& ahead = worth(after);
  const MigrationCosts::Table& table = costs_.table(position.machines, event.removed);
  const int from = position.shape.value_or(shapes_.size());
  const bool busy = position.pending.count() > 0;
  std::optional<int> best;
  double most = 0;
  for (int to = 0; to < shapes_.size(); ++to) {
    if (shapes_[to].machines() > after) continue;
    double cost = table(from, to);
    if (busy) cost = cost > 0 ? cost + costs_.restart(to, false).count() : position.pending.count();
    const double samples = shapes_.speed(to) * (interval_ - cost) + ahead[static_cast<std::size_t>(to)];
    if (best && samples <= most) continue;
    most = samples;
    best = to;
  }
  return best;
}

}  // namespace mayfly
