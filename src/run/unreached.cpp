#include "run/unreached.h"

#include <algorithm>
#include <limits>
#include <map>

namespace mayfly {
namespace {

/// Of every pair one must go: each in turn, unless that is dearer than what was found. Ends after so many attempts with
/// the best until then; the first one is good already.
struct Search {
  const std::vector<std::pair<WorkerId, WorkerId>>& pairs;
  const std::function<double(WorkerId)>& worth;
  int attempts = 20'000;
  std::set<WorkerId> chosen{};
  std::set<WorkerId> best{};
  double least = std::numeric_limits<double>::infinity();

  void from(std::size_t at, double cost) {
    if (cost >= least || --attempts < 0) return;
    while (at < pairs.size() && (chosen.contains(pairs[at].first) || chosen.contains(pairs[at].second))) ++at;
    if (at == pairs.size()) {
      least = cost;
      best = chosen;
      return;
    }
    auto [first, second] = pairs[at];
    if (often(second, at) > often(first, at)) std::swap(first, second);
    for (const WorkerId worker : {first, second}) {
      chosen.insert(worker);
      from(at + 1, cost + worth(worker));
      chosen.erase(worker);
    }
  }
  /// In pairs from this one on, by worth: who is in many goes first.
  double often(WorkerId worker, std::size_t at) const {
    const auto count = std::count_if(pairs.begin() + static_cast<std::ptrdiff_t>(at), pairs.end(),
                                     [&](const auto& pair) { return pair.first == worker || pair.second == worker; });
    return static_cast<double>(count) / worth(worker);
  }
};

}  // namespace

void Unreached::add(WorkerId from, WorkerId to) {
  if (from == to) return;
  pairs_.insert(std::minmax(from, to));
  reporters_.insert(from);
}

void Unreached::remove(WorkerId worker) {
  std::erase_if(pairs_, [&](const auto& pair) { return pair.first == worker || pair.second == worker; });
}

std::vector<WorkerId> Unreached::cheapest(const std::function<double(WorkerId)>& worth) const {
  const std::vector<std::pair<WorkerId, WorkerId>> pairs(pairs_.begin(), pairs_.end());
  Search search{.pairs = pairs, .worth = worth};
  search.from(0, 0);
  return {search.best.begin(), search.best.end()};
}

}  // namespace mayfly
