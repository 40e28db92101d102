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
  double lag = 0;                   ///< s by which they begin later than the quickest kind of the problem
  double most_share = 1e300;        ///< samples of a shared step that a machine has memory for
  double least_share = 0;           ///< and below which some of its GPUs would have none

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

/// A quota on a sum over kinds, as clouds have them.
struct QuotaGroup {
  std::string name{};
  double limit = 0;                  ///< never below what runs already
  std::vector<double> use{};         ///< of one machine, by kind
  std::vector<double> server_use{};  ///< of all servers, by choice
};

/// Everything a search needs; plain numbers, no files, no clock.
struct Problem {
  const Profile* profile = nullptr;
  Workload job{};
  Predictor predictor = Predictor::queue;
  Target target{};
  std::optional<Progress> progress{};
  Seconds recovery{0};  ///< paid before training goes on: machines start or, when re-planning, the cluster changes;
                        ///< at least, as some kinds have a lag besides
  std::optional<Seconds> deadline{};
  double caution = 0;  ///< standard deviations of its error by which a prediction may be too short for the deadline
  int fewest = 1;      ///< workers
  int most = 1'000'000;
  std::vector<Kind> kinds{};  ///< by name
  std::vector<ServerChoice> servers{};
  std::vector<QuotaGroup> groups{};
};

/// No quota on a sum is exceeded by these counts with this server choice.
bool within_quotas(const Problem& problem, const std::vector<int>& counts, std::size_t server);
/// How many machines of a kind may still be added to the counts, by the quotas on sums alone.
int room_for(const Problem& problem, const std::vector<int>& counts, std::size_t server, std::size_t kind);
/// The problem with these kinds alone, in their order.
Problem only_kinds(const Problem& problem, const std::vector<std::size_t>& kinds);

/// A cluster and what is predicted for it.
struct Candidate {
  std::vector<int> counts{};  ///< per kind, the existing ones included
  std::size_t server = 0;     ///< index into Problem::servers
  double time = 0;            ///< s
  double latest = 0;          ///< s, with the problem's caution: what the deadline is held against
  double lead = 0;            ///< s of both before training goes on
  double updates = 0;         ///< that are left
  double samples = 0;         ///< of those
  double hourly = 0;          ///< USD/h that the plan adds, servers included
  double cost = 0;            ///< USD of that
  int machines = 0;
};

/// Seconds that are left for the work itself, whatever the cluster: a bound for searches. Nothing without a deadline.
std::optional<double> most_work_time(const Problem& problem);

/// Error of the candidate's prediction.
double predicted_sd(const Problem& problem, const Candidate& candidate);

/// Orders candidates: cost to the nano-dollar, then time, then number of machines, then names.
bool cheaper(const Candidate& a, const Candidate& b);
/// The same with time (to the nanosecond) before cost.
bool faster(const Candidate& a, const Candidate& b);

/// Samples of a shared step that a machine of the kind gets; nothing where each has its own batch.
std::optional<double> share_of_step(const Problem& problem, const std::vector<int>& counts, std::size_t kind);

/// Predicts clusters of one problem. Allocation-free after construction.
class Evaluator {
 public:
  explicit Evaluator(const Problem& problem);

  /// Time and cost of the counts; false where the target is out of this cluster's reach or a quota on a sum forbids
  /// it. Requires a worker.
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
