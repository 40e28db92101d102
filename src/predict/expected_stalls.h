#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/gpu_links.h"
#include "predict/prediction.h"
#include "predict/worker.h"

// What a job would wait for its gradients on machines that one does not have: docs/models.md#expected-stalls.
namespace mayfly {

/// Time of each step that exchanging gradients adds.
struct ExpectedStall {
  std::optional<ExchangeTime> parts{};  ///< s, by the model; nothing where the stall was measured
  double seconds = 0;
  Estimate share{};            ///< of the step in which it is seen
  std::string_view link = "";  ///< gpu links' name, or ring_link_name
  Basis basis = Basis::scaled;
};

/// Machines at one job, each GPU with the samples that one alone would have (weak scaling, as in Stash).
struct StallOutlook {
  int machines = 0;
  double alone = 0;  ///< s, the step of a single GPU of the slowest machine, data ready in memory
  double step = 0;   ///< s, of all, data ready in memory
  double batch = 0;  ///< samples of it
  ExpectedStall interconnect{};
  std::optional<ExpectedStall> network{};  ///< of several machines
  Estimate slowdown{.middle = 1};          ///< the step against that of one machine
  Estimate samples_per_s{};                ///< with the job's loader
  Part bottleneck = Part::compute;
  Basis basis = Basis::given;
};

/// So many machines of a type.
struct StallMachines {
  const InstanceType* type = nullptr;
  int count = 0;
};
/// Requires a profile whose workers reduce among themselves, and at least one machine. The error says what is missing
/// on a type; a network between several that is not known is one.
Result<StallOutlook> stall_outlook(const Profile& profile, const Catalog& catalog,
                                   const std::vector<StallMachines>& machines);

/// One type of a catalogue: alone, and as `several`.
struct StallRow {
  const InstanceType* type = nullptr;
  std::optional<UsdPerHour> price{};
  bool on_demand = false;  ///< the price is, though another market was asked for
  StallOutlook one{};
  std::optional<StallOutlook> several{};  ///< nothing where their network is not known
  /// Samples for a dollar; nothing without a price.
  std::optional<double> samples_per_usd() const;
};
struct StallTable {
  std::vector<StallRow> rows{};  ///< most samples for a dollar first, types without a price last
  int no_speed = 0;              ///< types that nothing measured can be scaled to, GPUs only
  int too_small = 0;             ///< types whose GPUs have too little memory
};
/// Every machine type of the catalogue that can do the job.
StallTable stall_table(const Profile& profile, const Catalog& catalog, Market market, int several);

/// A machine that costs more an hour and trains more slowly than another one of its cloud.
struct DearerSlower {
  const StallRow* row = nullptr;
  const StallRow* than = nullptr;
  bool certain = false;  ///< their bands do not meet
};
/// By prices of one market. For each such machine the fastest of those that cost less; what is certain first, then what
/// costs most for least.
std::vector<DearerSlower> dearer_and_slower(const StallTable& table);

/// A machine with more of the same GPUs that gives fewer samples for a dollar than a smaller one of its cloud.
struct LargerForLess {
  const StallRow* row = nullptr;
  const StallRow* than = nullptr;
  double ratio = 1;  ///< of its samples for a dollar to the other's, below 1
};
/// By prices of one market. For each such machine the best of the smaller ones; differences below 5 % are left out.
std::vector<LargerForLess> larger_for_less(const StallTable& table);

/// As many GPUs, in several machines instead of one (Stash's pairs: 2 x p3.8xlarge against p3.16xlarge).
struct SpreadOut {
  const InstanceType* type = nullptr;
  int machines = 0;
  const StallRow* one = nullptr;
  Estimate slowdown{};           ///< time of the several against that of the one
  std::optional<double> cost{};  ///< money for each sample, likewise; nothing where their prices are of two markets
};
/// Slowest first.
std::vector<SpreadOut> spread_out(const Profile& profile, const Catalog& catalog, const StallTable& table);

}  // namespace mayfly
