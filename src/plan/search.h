#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "plan/problem.h"

namespace mayfly {

enum class Goal { cheapest, fastest };

inline constexpr double kNoCutoff = std::numeric_limits<double>::infinity();

struct SearchOptions {
  Goal goal = Goal::cheapest;
  int keep = 1;                       ///< how many of the best clusters to return
  double cutoff = kNoCutoff;          ///< USD (or s): dearer (or slower) clusters are of no interest
  long long most_nodes = 20'000'000;  ///< after which `exact` stops and reports the gap; 0: climb only
  bool bound_the_rest = true;         ///< false: when stopped, do not spend time on the gap either
};

struct SearchResult {
  std::vector<Candidate> best{};  ///< within the deadline, best first
  long long evaluated = 0;        ///< predictions made for whole clusters
  bool optimal = false;           ///< proven
  double gap = 0;                 ///< (best - bound) / best where it is not
  double unproven = kNoCutoff;    ///< what was not looked at costs (or takes) at least that
};

/// Branch and bound over every count vector and server choice; proves what it returns. docs/models.md#exact.
SearchResult exact_search(const Problem& problem, const SearchOptions& options = {});

/// The same where all workers make one step together, whose samples do not depend on the cluster (queue alone).
bool has_barrier(const Problem& problem);
SearchResult barrier_search(const Problem& problem, const SearchOptions& options = {});

/// Every count vector and server choice. For checking.
SearchResult exhaustive_search(const Problem& problem, const SearchOptions& options = {});
/// How many clusters exhaustive_search would look at.
double exhaustive_size(const Problem& problem);

/// spotDNN's search: windows of consecutive machines in a list sorted by iteration time, sizes within its bounds.
SearchResult window_search(const Problem& problem, const SearchOptions& options = {});
struct WorkerBounds {
  int lower = 1;
  int upper = 0;
};
/// spotDNN (15), (16); for other predictors 1 and the number of machines there are.
WorkerBounds window_bounds(const Problem& problem);

/// A bounded scan as Cynthia and lambdaDNN do it: in each lane the first feasible size, of those the cheapest.
struct Lane {
  int lower = 1;
  int upper = 0;
  /// The candidate of that size; nothing where it misses the deadline.
  std::function<std::optional<Candidate>(int size)> at{};
};
std::optional<std::size_t> first_feasible_lane(const std::vector<Lane>& lanes, Candidate& out);

/// Cynthia's search: per type bounds on the workers, servers of the same type.
SearchResult cynthia_search(const Problem& problem, const SearchOptions& options = {});

/// Keeps the best few; candidates with the same counts and servers count once.
class Best {
 public:
  Best(const Problem& problem, const SearchOptions& options) : problem_(&problem), options_(&options) {}
  void offer(const Candidate& candidate);
  /// What anything better must cost (or take) at most: no more than the last of a full list, or the cutoff.
  double worst() const;
  const std::vector<Candidate>& list() const { return list_; }

 private:
  bool full() const { return list_.size() >= static_cast<std::size_t>(options_->keep); }

  const Problem* problem_;
  const SearchOptions* options_;
  std::vector<Candidate> list_;
};

}  // namespace mayfly
