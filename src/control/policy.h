#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/event.h"
#include "plan/contest.h"
#include "plan/liveput.h"
#include "plan/lookahead.h"

namespace mayfly {

/// The strategies of `--policy`.
enum class PolicyName { on_demand, checkpoint, redundant, template_, reactive, persist, liveput, deadline, ideal };
std::string_view name(PolicyName policy);
std::optional<PolicyName> policy_named(std::string_view word);
const std::vector<std::string>& policy_names();
/// How a strategy's changes are carried out.
Mechanism mechanism(PolicyName policy);

/// What a strategy may look at when machines have come or gone.
struct Situation {
  Seconds now{};
  int before = 0;     ///< usable machines when it was last asked
  Outlook outlook{};  ///< what has happened to them since
  std::optional<int> shape{};
  Seconds pending{0};  ///< estimated rest of a change under way
  int on_demand = 0;   ///< rented on demand: usable now or on their way
  int ordered = 0;     ///< of those, on their way
  double done = 0;     ///< samples
  std::optional<double> target{};
  std::optional<Seconds> deadline{};
  double ratio = 1;  ///< measured speed over the predicted one
  int machines() const { return before + outlook.added - outlook.removed; }
};

struct Decision {
  std::optional<int> shape{};      ///< nothing: nobody trains
  bool rebuild = false;            ///< start anew even in the same shape
  Mechanism mechanism = Mechanism::migrate;
  int on_demand = 0;               ///< machines to hold on demand, those on their way included
  std::optional<Seconds> again{};  ///< ask again at this time, whatever happens
  std::string reason{};
};

/// One strategy. Knows the past it has been shown and nothing else.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual Decision decide(const Situation& situation) = 0;
};

struct PolicyOptions {
  Seconds interval{60};
  int lookahead = 12;
  int most_machines = 0;  ///< ever held
  /// checkpoint only: growth is looked for this often.
  Seconds poll{300};
  /// With a deadline: whether it holds is looked at this often.
  Seconds check{300};
  /// From the order of a machine on demand to its first step.
  Seconds start{300};
};

/// `shapes` and `costs` must outlive the policy.
std::unique_ptr<Policy> make_policy(PolicyName name, const Shapes& shapes, const MigrationCosts& costs,
                                    const PolicyOptions& options);

/// The depth at which neighbour redundancy runs: half again as deep as the fastest shape (Bamboo), of the depths there
/// are the nearest above, else the deepest.
int redundant_depth(const Shapes& shapes);

}  // namespace mayfly
