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
#include "plan/problem.h"

namespace mayfly {

/// The strategies of `--policy`.
enum class PolicyName { on_demand, checkpoint, redundant, template_, reactive, persist, liveput, deadline, ideal };
std::string_view name(PolicyName policy);
std::optional<PolicyName> policy_named(std::string_view word);
const std::vector<std::string>& policy_names();
/// How a strategy's changes are carried out.
Mechanism mechanism(PolicyName policy);

/// What is held of one kind of machines, and what was seen of it since the run began.
struct Holding {
  MachineKind kind{};
  int usable = 0;
  int ordered = 0;     ///< on their way
  Seconds oldest{};    ///< when the first of these was ordered
  UsdPerHour price{};  ///< of one, as last heard
  int arrivals = 0;
  int lost = 0;            ///< announced or not; those given back are none
  Seconds machine_time{};  ///< of all that were ever held
  /// Of one machine; nothing while none was held.
  std::optional<double> lost_per_hour() const;
  bool operator==(const Holding&) const = default;
};

/// What a strategy may look at when machines have come or gone.
struct Situation {
  Seconds now{};
  int before = 0;     ///< usable machines when it was last asked
  Outlook outlook{};  ///< what has happened to them since
  std::optional<int> shape{};
  Seconds pending{0};               ///< estimated rest of a change under way
  std::vector<Holding> holdings{};  ///< by kind
  double done = 0;                  ///< samples
  std::optional<double> target{};
  std::optional<Seconds> deadline{};
  double ratio = 1;  ///< measured speed over the predicted one
  int machines() const { return before + outlook.added - outlook.removed; }
  int usable(Market market) const;
  int ordered(Market market) const;
};

/// Machines of a kind to hold, those on their way included.
struct Want {
  MachineKind kind{};
  int count = 0;
  bool operator==(const Want&) const = default;
};

struct Decision {
  std::optional<int> shape{};  ///< nothing: no machine trains
  bool rebuild = false;        ///< start anew even in the same shape
  Mechanism mechanism = Mechanism::migrate;
  std::vector<Want> wants{};       ///< of kinds that are not named everything stays as it is
  std::optional<Seconds> again{};  ///< ask again at this time, whatever happens
  std::string reason{};
  std::string warning{};  ///< the promise is in danger, and nothing may be ordered that would keep it
};

/// One strategy. Knows the past it has been shown and nothing else.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual Decision decide(const Situation& situation) = 0;
  /// Of which market a machine goes when a newcomer is one more than any shape has. Those on demand are the dearer
  /// ones.
  virtual Market surplus(const Situation&, [[maybe_unused]] Market newcomer) const { return Market::on_demand; }
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
  /// With a deadline: machines on demand that may be ordered. Empty: of the kind there is. None where all have a limit
  /// of 0.
  std::vector<Offer> offers{};
};

/// `shapes` and `costs` must outlive the policy.
std::unique_ptr<Policy> make_policy(PolicyName name, const Shapes& shapes, const MigrationCosts& costs,
                                    const PolicyOptions& options);

/// The depth at which neighbour redundancy runs: half again as deep as the fastest shape (Bamboo), of the depths there
/// are the nearest above, else the deepest.
int redundant_depth(const Shapes& shapes);

}  // namespace mayfly
