#include "plan/climb.h"

#include <algorithm>

namespace mayfly {
namespace {

void offer_homogeneous(const Problem& problem, Evaluator& evaluator, Best& best) {
  // Machines that are there stay in every cluster, so that hardly one is of a single kind: they alone are the start.
  const bool from_scratch =
      std::all_of(problem.kinds.begin(), problem.kinds.end(), [](const Kind& k) { return k.existing == 0; });
  Candidate candidate;
  std::vector<int> counts(problem.kinds.size());
  if (!from_scratch) {
    int running = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) running += counts[k] = problem.kinds[k].existing;
    if (running < problem.fewest || running > problem.most) return;
    for (std::size_t server = 0; server < problem.servers.size(); ++server) {
      if (evaluator.evaluate(counts, server, candidate)) best.offer(candidate);
    }
    return;
  }
  for (std::size_t server = 0; server < problem.servers.size(); ++server) {
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const int most = std::min({problem.kinds[k].limit(), problem.most, 64});
      for (counts[k] = problem.fewest; counts[k] <= most; ++counts[k]) {
        if (evaluator.evaluate(counts, server, candidate)) best.offer(candidate);
      }
      counts[k] = 0;
    }
  }
}

void improve(const Problem& problem, Evaluator& evaluator, Best& best) {
  if (best.list().empty()) return;
  Candidate candidate;
  constexpr int kMostSteps = 200;
  for (int step = 0; step < kMostSteps; ++step) {
    const Candidate from = best.list().front();
    std::vector<int> counts = from.counts;
    const auto try_counts = [&](int machines) {
      if (machines < problem.fewest || machines > problem.most) return;
      if (evaluator.evaluate(counts, from.server, candidate)) best.offer(candidate);
    };
    for (std::size_t out = 0; out <= counts.size(); ++out) {
      if (out < counts.size() && counts[out] <= problem.kinds[out].existing) continue;
      if (out < counts.size()) --counts[out];
      const int rest = from.machines - (out < counts.size() ? 1 : 0);
      if (rest > 0 && out < counts.size()) try_counts(rest);
      for (std::size_t in = 0; in < counts.size(); ++in) {
        if (counts[in] >= problem.kinds[in].limit()) continue;
        ++counts[in];
        try_counts(rest + 1);
        --counts[in];
      }
      if (out < counts.size()) ++counts[out];
    }
    if (best.list().front().counts == from.counts) return;
  }
}

/// Where no cluster of one kind is in time, the fastest mix may be.
void offer_fastest(const Problem& problem, Best& best) {
  Problem unhurried = problem;
  unhurried.deadline.reset();
  const SearchOptions options{.goal = Goal::fastest};
  Best fastest(unhurried, options);
  Evaluator fast(unhurried);
  offer_homogeneous(unhurried, fast, fastest);
  improve(unhurried, fast, fastest);
  Candidate candidate;
  for (const Candidate& one : fastest.list()) {
    if (Evaluator(problem).evaluate(one.counts, one.server, candidate)) best.offer(candidate);
  }
}

}  // namespace

void climb(const Problem& problem, Evaluator& evaluator, Best& best) {
  offer_homogeneous(problem, evaluator, best);
  if (best.list().empty() && problem.deadline) offer_fastest(problem, best);
  improve(problem, evaluator, best);
}

}  // namespace mayfly
