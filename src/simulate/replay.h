#pragma once

#include <string>
#include <vector>

#include "control/controller.h"
#include "control/job.h"
#include "simulate/physics.h"
#include "simulate/scene.h"

namespace mayfly {

enum class Foresight {
  none,    ///< what the policy learns by itself
  oracle,  ///< the true future
  parcae,  ///< Parcae's forecast: ARIMA with its corrections
};

struct ReplayOptions {
  PolicyName policy = PolicyName::liveput;
  Sight sight = Sight::informed;
  Foresight foresight = Foresight::none;
  Seconds interval{60};
  int lookahead = 12;
  Promise promise{};
  SystemFigures figures{};
  std::uint64_t seed = 1;
  bool journal = false;
  bool milestones = false;
  /// The policy reckons with as many machines as the scene takes, not with the most it ever has.
  bool all_may_come = false;
};

/// Machine-seconds by what they were good for.
struct MachineTime {
  double useful = 0;
  double redundant = 0;    ///< the neighbour's work, in case
  double reconfigure = 0;  ///< while the shape changed
  double lost = 0;         ///< trained and thrown away
  double idle = 0;         ///< held, without work
  double total() const { return useful + redundant + reconfigure + lost + idle; }
};

struct Moment {
  Seconds time{};
  int available = 0;
  Shape shape{};
  bool operator==(const Moment&) const = default;
};

/// Samples done so far; straight lines between milestones, drops where work was lost.
struct Milestone {
  Seconds time{};
  double samples = 0;
  bool operator==(const Milestone&) const = default;
};

/// Money spent so far; straight lines between.
struct Spending {
  Seconds time{};
  Usd spent{};
  bool operator==(const Spending&) const = default;
};

struct Replay {
  double samples = 0;
  Usd cost{};
  Seconds time{};        ///< until the target, the budget's end or the end of the trace
  bool reached = false;  ///< the target, where there is one
  std::optional<Finish::Why> finished{};
  MachineTime machine_time{};
  int changes = 0;  ///< of shape
  int preemptions = 0;
  std::vector<Moment> moments{};
  std::vector<std::string> journal{};
  std::vector<Milestone> milestones{};  ///< where asked for, as are spendings
  std::vector<Spending> spendings{};
};

/// What would have happened: the controller that will run, driven by the scene's weather with simulated time. Machines
/// beyond the largest shape are not taken. The policy on-demand rents as many as the market ever had, and needs none.
Replay replay(const Scene& scene, const Job& job, const ReplayOptions& options);
Replay replay(const Series& series, Seconds duration, const Job& job, const ReplayOptions& options);

/// The same by intervals, as Parcae's files are made: a decision each interval, before its event (blind) or on it, with
/// a look-ahead over the true or forecast future.
Replay replay_by_interval(const Series& series, Seconds duration, const Job& job, const ReplayOptions& options);

/// Samples of the best choices with the whole trace known: the ceiling of every policy that pays the published costs.
double offline_optimum(const Series& series, Seconds duration, const Job& job, Seconds interval);

}  // namespace mayfly
