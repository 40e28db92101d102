#include "engine/role.h"

namespace mayfly {

Json role_json(const MachineRole& role) {
  return {{"type", role.type},
          {"zone", role.zone},
          {"market", name(role.market)},
          {"usd_per_hour", role.price.value},
          {"server", role.server},
          {"batch", role.batch},
          {"limits", limits_json(role.limits)}};
}

MachineRole role_from(const Json& json) {
  const auto market = parse_market(json.value("market", ""));
  return {.type = json.value("type", ""),
          .zone = json.value("zone", ""),
          .market = market ? *market : Market::spot,
          .price = {json.value("usd_per_hour", 0.0)},
          .server = json.value("server", false),
          .batch = json.value("batch", 0),
          .limits = limits_from(json.value("limits", Json::object()))};
}

}  // namespace mayfly
