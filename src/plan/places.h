#pragma once

#include <optional>
#include <vector>

#include "plan/planner.h"

namespace mayfly {

/// A candidate together with the place it belongs to: an index into the planner's problems.
struct Placed {
  std::size_t site = 0;
  Candidate candidate{};
};
/// The same machines and servers in the same place.
bool same(const Placed& a, const Placed& b);

/// What a cluster has beyond the running machines.
std::vector<MachineCount> beyond(const std::vector<PlanLine>& cluster, const std::vector<MachineCount>& running);

/// What a search over all places found, and how sure that is.
struct Found {
  std::vector<Placed> best{};
  bool optimal = true;  ///< the first is proven
  double gap = 0;
  double unproven = kNoCutoff;  ///< USD (or s), at least, of what is neither the first nor was seen; see `best_few`
};

/// The problems of a request, searched together: a site whose clusters are all dearer than those of another is left as
/// soon as that is known.
class Places {
 public:
  /// The request must outlive it.
  Places(std::vector<Problem> sites, const PlanRequest& request);

  const std::vector<Problem>& sites() const { return sites_; }
  long long evaluated() const { return evaluated_; }

  Found search(SearchMethod method, const SearchOptions& options);

  /// By the request's search: the best cluster, with its proof, and the runners-up as far as they are found at once.
  /// What is not among them costs `unproven` at least.
  Found best_few();

  /// The lines of a candidate, with what it costs beside its machines.
  PlanOption option(const Placed& placed) const;
  PlanOption with_beside(PlanOption option) const;
  /// Share of the option's cost by which another could be cheaper, as searches know of a site's costs beside machines
  /// only what one machine has of them.
  double doubt(const Placed& placed, const PlanOption& option) const;

  void set_target(const Target& target);
  void set_caution(double caution);
  void set_deadline(std::optional<Seconds> deadline);
  /// As the request has it.
  void reset_deadline() { set_deadline(deadline_); }

 private:
  SearchResult search_site(const Problem& problem, SearchMethod method, const SearchOptions& options) const;
  double value(const Placed& placed, Goal goal) const;
  double cutoff(SearchMethod method, SearchOptions options);
  double least_beside(const Problem& site) const;

  const PlanRequest& request_;
  std::vector<Problem> sites_;
  std::vector<double> beside_;  ///< USD of each site's clusters beside their machines, at least
  std::optional<Seconds> deadline_{};
  long long evaluated_ = 0;
};

}  // namespace mayfly
