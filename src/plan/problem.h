#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cloud/catalog.h"
#include "predict/prediction.h"
#include "predict/worker.h"

namespace mayfly {

/// One rung of a price ladder: up to `limit` machines at `rate` each.
struct Offer {
  std::string type{};
  Market market = Market::on_demand;
  std::string zone{};  ///< empty: any
  UsdPerHour rate{};
  int limit = 0;
  bool operator==(const Offer&) const = default;
};

/// Machines that no model can tell apart: one type from several markets and zones, or several types that do the job
/// alike. The cheapest offers are always taken first, so a count alone says what the machines cost.
struct Kind {
  std::string name{};  ///< of the cheapest type
  Worker worker{};
  std::vector<Offer> ladder{};      ///< the existing machines, then the others by rate
  std::vector<double> hourly{0.0};  ///< USD/h of the first n machines, n = 0 .. limit; running ones are free
  int existing = 0;                 ///< already running; part of every cluster

  int limit() const { return static_cast<int>(hourly.size()) - 1; }
};

/// How many machines of a type there may be, and how many of them run already.
struct TypeLimit {
  std::string type{};
  int quota = 0;
  int existing = 0;
};
/// Builds the ladder and the prices of the first n machines. Offers of a type count against its limit together.
Kind make_kind(const Worker& worker, std::vector<Offer> offers, std::vector<TypeLimit> limits);

/// The parameter servers a plan may use, ready made: type, number, price.
struct ServerChoice {
  std::string type{};  ///< empty: none
  Market market = Market::on_demand;
  ServerPool pool{};
  UsdPerHour hourly{};  ///< of all of them, as far as the plan has to pay for it
  UsdPerHour rate{};    ///< of one
};

/// Everything a search needs; plain numbers, no files, no clock.
struct Problem {
  const Profile* profile = nullptr;
  Workload job{};
  Predictor predictor = Predictor::queue;
  Target target{};
  std::optional<Progress> progress{};
  Seconds recovery{0};  ///< added to the time when re-planning
  std::optional<Seconds> deadline{};
  int fewest = 1;  ///< workers
  int most = 1'000'000;
  std::vector<Kind> kinds{};  ///< by name
  std::vector<ServerChoice> servers{};
};

/// A cluster and what is predicted for it.
struct Candidate {
  std::vector<int> counts{};  ///< per kind, the existing ones included
  std::size_t server = 0;     ///< index into Problem::servers
  double time = 0;            ///< s
  double hourly = 0;          ///< USD/h that the plan adds, servers included
  double cost = 0;            ///< USD of that
  int machines = 0;
};

/// Orders candidates: cost to the nano-dollar, then price per hour, then number of machines, then names.
bool cheaper(const Candidate& a, const Candidate& b);
/// The same with time (to the nanosecond) before cost.
bool faster(const Candidate& a, const Candidate& b);

/// Predicts clusters of one problem. Allocation-free after construction.
class Evaluator {
 public:
  explicit Evaluator(const Problem& problem);

  /// Time and cost of the counts; false where the target is out of this cluster's reach. Requires a worker.
  bool evaluate(const std::vector<int>& counts, std::size_t server, Candidate& out);
  /// Work left for a cluster of this speed; nothing where the target is out of reach.
  std::optional<double> work(const Speed& speed, int workers) const;
  const Problem& problem() const { return *problem_; }
  long long evaluated() const { return evaluated_; }

 private:
  const Problem* problem_;
  std::vector<Group> groups_;
  long long evaluated_ = 0;
};

}  // namespace mayfly
