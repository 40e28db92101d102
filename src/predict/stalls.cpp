#include "predict/stalls.h"

#include <algorithm>
#include <functional>

namespace mayfly {
namespace {

/// What `with` takes longer than `without`, round by round; the share is of `whole`.
Stall difference(const std::vector<double>& with, const std::vector<double>& without,
                 const std::vector<double>& whole) {
  std::vector<double> lost(with.size());
  std::transform(with.begin(), with.end(), without.begin(), lost.begin(), std::minus<>());
  Stall stall{.seconds = signed_rank_interval(lost)};
  const double step = signed_rank_interval(whole).value;
  if (step > 0) stall.share = std::max(0.0, stall.seconds.value / step);
  return stall;
}

}  // namespace

Result<Stalls> stalls(const StallRuns& runs) {
  const std::size_t rounds = runs.one.size();
  if (rounds == 0) return fail("no round was measured");
  for (const auto* other : {&runs.all, &runs.cold, &runs.warm}) {
    if (other->size() != rounds) return fail("{} rounds of one condition, {} of another", rounds, other->size());
  }
  if (!runs.machines.empty() && runs.machines.size() != rounds)
    return fail("{} rounds on one machine, {} on several", rounds, runs.machines.size());
  Stalls found{.step = signed_rank_interval(runs.cold),
               .interconnect = difference(runs.all, runs.one, runs.all),
               .prep = difference(runs.warm, runs.all, runs.warm),
               .fetch = difference(runs.cold, runs.warm, runs.cold)};
  if (!runs.machines.empty()) found.network = difference(runs.machines, runs.all, runs.all);
  return found;
}

}  // namespace mayfly
