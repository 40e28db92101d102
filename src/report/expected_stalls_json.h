#pragma once

#include "base/json.h"
#include "predict/expected_stalls.h"

namespace mayfly {

/// What Stash (ICDCS 2023) says of its own measurements, in its abstract; on which machines is not told there.
inline constexpr double kPublishedInterconnectShare = 0.9;
inline constexpr double kPublishedNetworkSlowdown = 5;
inline constexpr const char* kPublishedStalls = "Stash, ICDCS 2023 (arXiv 2208.14344), abstract";

/// An answer of `predict --stalls`; what it points into outlives it.
struct OutlookAnswer {
  const Profile& profile;
  const Catalog& catalog;
  Market market = Market::spot;
  const StallTable& table;
  std::optional<StallOutlook> cluster{};
  std::vector<StallMachines> machines{};  ///< of the cluster
  std::optional<UsdPerHour> price{};      ///< of all of them
  std::vector<DearerSlower> slower{};
  std::vector<LargerForLess> larger{};
  std::vector<SpreadOut> apart{};
  std::vector<std::string> notes{};
};

/// One of the cluster's types; any where no cluster is named.
bool is_shown(const OutlookAnswer& answer, const InstanceType& type);
/// The machine that waits longest for its own GPUs, and that for others; nothing where there is none.
const StallRow* most_interconnect(const OutlookAnswer& answer);
const SpreadOut* most_network(const OutlookAnswer& answer);

/// Of one epoch; nothing where the profile does not say how many samples it has.
std::optional<Estimate> epoch_time(const Profile& profile, const StallOutlook& outlook);
std::optional<Estimate> epoch_cost(const Profile& profile, const StallOutlook& outlook,
                                   const std::optional<UsdPerHour>& price);

/// docs/formats.md#predict-stalls
Json expected_stalls_json(const OutlookAnswer& answer);

}  // namespace mayfly
