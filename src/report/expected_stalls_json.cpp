#include "report/expected_stalls_json.h"

#include <algorithm>

#include "report/plan_json.h"

namespace mayfly {
namespace {

Json stall_part_json(const ExpectedStall& stall) {
  Json json{{"stall_s", stall.seconds}};
  put(json, "stall_share", stall.share);
  json["link"] = stall.link;
  json["basis"] = name(stall.basis);
  if (!stall.parts) return json;
  json["waiting_s"] = stall.parts->waiting;
  json["latency_s"] = stall.parts->latency;
  json["traffic_s"] = stall.parts->traffic;
  json["hidden_s"] = stall.parts->hidden;
  return json;
}

Json network_json(const StallOutlook& several) {
  Json json = stall_part_json(*several.network);
  json["machines"] = several.machines;
  put(json, "slowdown", several.slowdown);
  return json;
}

void put_or_null(Json& json, const std::string& key, const std::optional<Estimate>& estimate) {
  if (estimate) {
    put(json, key, *estimate);
  } else {
    json[key] = nullptr;
  }
}

void put_outlook(Json& json, const OutlookAnswer& answer, const StallOutlook& outlook,
                 const std::optional<UsdPerHour>& price) {
  json["basis"] = name(outlook.basis);
  json["step_s"] = outlook.step;
  json["step_alone_s"] = outlook.alone;
  json["batch"] = outlook.batch;
  put(json, "samples_per_s", outlook.samples_per_s);
  json["usd_per_hour"] = price ? Json(price->value) : Json();
  put_or_null(json, "epoch_s", epoch_time(answer.profile, outlook));
  put_or_null(json, "epoch_usd", epoch_cost(answer.profile, outlook, price));
  json["bottleneck"] = name(outlook.bottleneck);
  json["interconnect"] = stall_part_json(outlook.interconnect);
}

Json row_json(const OutlookAnswer& answer, const StallRow& row) {
  const InstanceType& type = *row.type;
  Json json{{"type", type.name}, {"cloud", type.cloud}, {"region", type.region}, {"gpus", type.gpu_count}};
  json["retired"] = type.retired.empty() ? Json() : Json(type.retired);
  json["gpu"] = type.gpu ? Json(type.gpu->model) : Json();
  put_outlook(json, answer, row.one, row.price);
  json["market"] = name(row.on_demand ? Market::on_demand : answer.market);
  const auto samples = row.samples_per_usd();
  json["samples_per_usd"] = samples ? Json(*samples) : Json();
  json["network"] = row.several && row.several->network ? network_json(*row.several) : Json();
  return json;
}

Json cluster_json(const OutlookAnswer& answer) {
  Json json = Json::object();
  json["machines"] = Json::array();
  for (const auto& [type, count] : answer.machines) json["machines"].push_back({{"type", type->name}, {"n", count}});
  put_outlook(json, answer, *answer.cluster, answer.price);
  json["network"] = answer.cluster->network ? network_json(*answer.cluster) : Json();
  return json;
}

void put_findings(Json& json, const OutlookAnswer& answer) {
  json["dearer_and_slower"] = Json::array();
  for (const auto& one : answer.slower) {
    json["dearer_and_slower"].push_back(
        {{"type", one.row->type->name},
         {"than", one.than->type->name},
         {"usd_per_hour_ratio", one.row->price->value / one.than->price->value},
         {"speed_ratio", one.row->one.samples_per_s.middle / one.than->one.samples_per_s.middle},
         {"certain", one.certain}});
  }
  json["larger_for_less"] = Json::array();
  for (const auto& one : answer.larger) {
    json["larger_for_less"].push_back(
        {{"type", one.row->type->name}, {"than", one.than->type->name}, {"samples_per_usd_ratio", one.ratio}});
  }
  json["spread_out"] = Json::array();
  for (const auto& one : answer.apart) {
    Json pair{{"type", one.type->name}, {"n", one.machines}, {"than", one.one->type->name}};
    put(pair, "slowdown", one.slowdown);
    pair["cost_ratio"] = one.cost ? Json(*one.cost) : Json();
    json["spread_out"].push_back(std::move(pair));
  }
}

}  // namespace

bool is_shown(const OutlookAnswer& answer, const InstanceType& type) {
  return answer.machines.empty() || std::any_of(answer.machines.begin(), answer.machines.end(),
                                                [&](const StallMachines& some) { return some.type == &type; });
}

const StallRow* most_interconnect(const OutlookAnswer& answer) {
  const StallRow* most = nullptr;
  for (const StallRow& row : answer.table.rows) {
    if (!is_shown(answer, *row.type)) continue;
    if (most == nullptr || row.one.interconnect.share.middle > most->one.interconnect.share.middle) most = &row;
  }
  return most;
}

const SpreadOut* most_network(const OutlookAnswer& answer) {
  return answer.apart.empty() ? nullptr : &answer.apart.front();
}

std::optional<Estimate> epoch_time(const Profile& profile, const StallOutlook& outlook) {
  if (!profile.samples) return std::nullopt;
  const Estimate& speed = outlook.samples_per_s;
  Estimate time{.middle = profile.samples->value / speed.middle};
  if (speed.p90) time.p10 = profile.samples->value / *speed.p90;
  if (speed.p10) time.p90 = profile.samples->value / *speed.p10;
  return time;
}

std::optional<Estimate> epoch_cost(const Profile& profile, const StallOutlook& outlook,
                                   const std::optional<UsdPerHour>& price) {
  auto cost = epoch_time(profile, outlook);
  if (!cost || !price) return std::nullopt;
  cost->middle *= price->value / 3600;
  if (cost->p10) *cost->p10 *= price->value / 3600;
  if (cost->p90) *cost->p90 *= price->value / 3600;
  return cost;
}

Json expected_stalls_json(const OutlookAnswer& answer) {
  Json json{{"profile", answer.profile.name}, {"catalog", answer.catalog.name}, {"predictor", "queue"}};
  json["cluster"] = answer.cluster ? cluster_json(answer) : Json();
  json["machines"] = Json::array();
  for (const StallRow& row : answer.table.rows) {
    if (is_shown(answer, *row.type)) json["machines"].push_back(row_json(answer, row));
  }
  put_findings(json, answer);
  Json here = Json::object();
  const auto* inside = most_interconnect(answer);
  const auto* between = most_network(answer);
  here["interconnect_stall_share"] = inside ? Json(inside->one.interconnect.share.middle) : Json();
  here["interconnect_type"] = inside ? Json(inside->type->name) : Json();
  here["network_slowdown"] = between ? Json(between->slowdown.middle) : Json();
  here["network_type"] = between ? Json(between->type->name) : Json();
  json["most"] = {{"here", here},
                  {"published",
                   {{"interconnect_stall_share", kPublishedInterconnectShare},
                    {"network_slowdown", kPublishedNetworkSlowdown},
                    {"source", kPublishedStalls}}}};
  json["left_out"] = {{"no_speed", answer.table.no_speed}, {"memory", answer.table.too_small}};
  json["notes"] = answer.notes;
  return json;
}

}  // namespace mayfly
