#include "report/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "base/text.h"

namespace mayfly {
namespace {

void put_risk(Json& json, const Risk& risk) {
  const auto put_chance = [&](const std::string& key, const std::optional<Estimate>& chance) {
    json[key] = chance ? Json(chance->middle) : Json();
    if (!chance) return;
    json[key + "_p10"] = *chance->p10;
    json[key + "_p90"] = *chance->p90;
  };
  put_chance("deadline_probability", risk.in_time);
  if (risk.in_budget) put_chance("budget_probability", risk.in_budget);
  json["cost_usd_p50"] = or_null(risk.cost.p50);
  json["cost_usd_p95"] = or_null(risk.cost.p95);
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json option_json(const PlanOption& option) {
  Json json{{"cluster", lines_json(option.cluster)}, {"servers", lines_json(option.servers)}};
  if (option.fleet) {
    json["platform"] = option.platform;
    json["functions"] = option.fleet->functions;
    json["memory_mib"] = option.fleet->memory_mib;
  }
  json["time_s"] = finite_or_null(expected_time(option));
  json["cost_usd"] = finite_or_null(expected_cost(option));
  json["exchange"] = name(option.exchange);
  if (option.risk) put_risk(json, *option.risk);
  return json;
}

/// What the table of weather says of each spot line.
Json usual_json(const PlanContext& context, const PlanOption& option) {
  Json json = Json::array();
  const WeatherTable& table = context.weather->usual;
  const auto word = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  for (const PlanLine& line : option.cluster) {
    const InstanceType* type = line.market == Market::spot ? context.catalog.find(line.type) : nullptr;
    if (type == nullptr) continue;
    const WeatherTable::Rule& rule = table.rule_of(*type);
    const SpotWeather& weather = rule.weather;
    const auto source = std::find_if(table.sources.begin(), table.sources.end(),
                                     [&](const Source& one) { return one.id == weather.source; });
    json.push_back({{"type", line.type},
                    {"losses_per_hour", weather.losses_per_hour},
                    {"spread", weather.spread},
                    {"wait_s", weather.wait.count()},
                    {"together", weather.together},
                    {"seen", {{"cloud", word(rule.cloud)}, {"gpu", word(rule.gpu)}, {"region", word(rule.region)}}},
                    {"source", source->title},
                    {"date", source->date}});
  }
  return json;
}

/// The plan's own, with what it was tried on.
void put_weather(Json& json, const PlanContext& context, const PlanOption& option) {
  if (!option.risk) return;
  put_risk(json, *option.risk);
  const PlanWeather& weather = *context.weather;
  Json& risk = json["risk"] = {{"windows", option.risk->windows},
                               {"time_s_p50", or_null(option.risk->time.p50)},
                               {"time_s_p95", or_null(option.risk->time.p95)},
                               {"confidence", or_null(context.request.confidence)},
                               {"seed", weather.options.seed}};
  if (!weather.trace) {
    risk["trace"] = Json();
    risk["usual"] = usual_json(context, option);
    return;
  }
  risk["trace"] = weather.trace->name;
  risk["observation"] = name(weather.trace->observation);
  risk["duration_s"] = weather.trace->duration.count();
  risk["policy"] = name(weather.options.policy);
  risk["resamples"] = option.risk->resamples;
  risk["from_now"] = weather.options.now.has_value();
}

Json options_json(const std::vector<PlanOption>& options) {
  Json json = Json::array();
  for (const PlanOption& option : options) json.push_back(option_json(option));
  return json;
}

Json target_json(const Target& target) {
  if (const auto* loss = std::get_if<ToLoss>(&target)) return {{"loss", loss->loss}};
  if (const auto* epochs = std::get_if<ForEpochs>(&target)) return {{"epochs", epochs->epochs}};
  return {{"steps", std::get<ForSteps>(target).steps}};
}

Json header_json(const PlanContext& context, bool feasible) {
  Json json{{"format", "mayfly-plan/1"},
            {"feasible", feasible},
            {"profile", context.profile.name},
            {"catalog", context.catalog.name},
            {"predictor", name(context.request.predictor)},
            {"target", target_json(context.request.target)}};
  json["deadline_s"] = context.request.deadline ? Json(context.request.deadline->count()) : Json();
  json["budget_usd"] = context.request.budget ? Json(context.request.budget->value) : Json();
  return json;
}

/// The loss along the way, where the profile has a curve and the way begins at its start.
Json course_json(const PlanContext& context, const Plan& plan) {
  constexpr int kPoints = 40;
  Json course = Json::array();
  if (!context.profile.loss || !plan.speed || context.request.progress) return course;
  int workers = 0;
  for (const PlanLine& line : plan.chosen.cluster) workers += line.count;
  const LossConditions at{plan.speed->batch, workers, plan.speed->cc, context.profile.sync};
  for (int i = 1; i <= kPoints; ++i) {
    const double steps = plan.iterations * i / kPoints;
    const double loss = loss_after(*context.profile.loss, at, steps);
    if (std::isfinite(loss)) course.push_back({{"time_s", steps / plan.speed->updates_per_s}, {"loss", loss}});
  }
  return course;
}

Json machines_json(const std::vector<MachineCount>& machines) {
  Json json = Json::array();
  for (const auto& [type, count] : machines) json.push_back({{"type", type}, {"n", count}});
  return json;
}

}  // namespace

Json lines_json(const std::vector<PlanLine>& lines) {
  Json json = Json::array();
  for (const PlanLine& line : lines) {
    json.push_back({{"type", line.type},
                    {"market", name(line.market)},
                    {"zone", line.zone.empty() ? Json() : Json(line.zone)},
                    {"n", line.count},
                    {"usd_per_hour", line.rate.value}});
  }
  return json;
}

Json memory_json(const MemoryFit& fit) {
  Json json{{"need", 1e3 * fit.need.peak},  {"need_low", 1e3 * fit.need.low}, {"need_high", 1e3 * fit.need.high},
            {"have", 1e3 * fit.have},       {"fits", name(fit.fits)},         {"chance", fit.chance},
            {"basis", name(fit.need.basis)}};
  if (fit.need.impossible_peak) json["impossible_peak"] = 1e3 * *fit.need.impossible_peak;
  return json;
}

Json plan_json(const PlanContext& context, const Plan& plan) {
  Json json = header_json(context, true);
  json["cluster"] = lines_json(plan.chosen.cluster);
  json["exchange"] = name(plan.chosen.exchange);
  json["servers"] = lines_json(plan.chosen.servers);
  if (plan.chosen.fleet) {
    json["platform"] = plan.chosen.platform;
    json["functions"] = plan.chosen.fleet->functions;
    json["memory_mib"] = plan.chosen.fleet->memory_mib;
    json["restarts"] = plan.functions->restarts;
  }
  if (!context.request.existing.empty()) {
    json["addition"] = machines_json(plan.addition);
    json["addition_servers"] = machines_json(plan.added_servers);
    json["addition_cost_usd"] = plan.chosen.added_cost;
  }
  put(json, "time_s", plan.time);
  put(json, "cost_usd", plan.cost);
  put_weather(json, context, plan.chosen);
  if (!plan.chosen.risk) json["deadline_probability"] = or_null(chance_in_time(context, plan));
  json["bare_time_s"] = plan.chosen.time;
  json["bare_cost_usd"] = plan.chosen.cost;
  json["usd_per_hour"] = plan.chosen.hourly;
  json["basis"] = name(plan.basis);
  json["iterations"] = plan.iterations;
  if (plan.speed) {
    json["step_s"] = 1 / plan.speed->updates_per_s;
    json["samples_per_s"] = plan.speed->samples_per_s;
    json["wa_batch"] = plan.speed->batch;
    json["convergence_coefficient"] = plan.speed->cc;
    json["bottleneck"] = name(plan.speed->bottleneck());
    json["breakdown_s"] = breakdown_json(*plan.speed);
  }
  if (plan.peak_share) json["peak_share"] = *plan.peak_share;
  json["memory_mb"] = plan.memory ? memory_json(*plan.memory) : Json();
  json["search"] = {{"method", plan.search},
                    {"evaluated", plan.evaluated},
                    {"time_s", context.took.count()},
                    {"optimal", plan.optimal},
                    {"gap", context.request.confidence ? Json() : Json(plan.gap)}};
  if (plan.assessed > 0) json["search"]["assessed"] = plan.assessed;
  json["saving"] = Json::object();
  if (plan.on_demand_cost) json["saving"]["on_demand_cost_usd"] = *plan.on_demand_cost;
  if (plan.all_fastest) json["saving"]["all_fastest"] = option_json(*plan.all_fastest);
  if (plan.all_slowest) json["saving"]["all_slowest"] = option_json(*plan.all_slowest);
  json["ties"] = options_json(plan.ties);
  json["runners_up"] = options_json(plan.runners_up);
  json["frontier"] = options_json(plan.frontier);
  json["considered"] = options_json(plan.considered);
  json["course"] = course_json(context, plan);
  json["notes"] = plan.notes;
  return json;
}

Json plan_json(const PlanContext& context, const Infeasible& answer) {
  Json json = header_json(context, false);
  json["binding"] = answer.binding;
  json["reason"] = answer.reason;
  json["nearest"] = answer.nearest ? option_json(*answer.nearest) : Json::object();
  if (answer.nearest_loss) json["nearest"]["loss"] = *answer.nearest_loss;
  json["search"] = {{"method", name(context.request.search)}, {"time_s", context.took.count()}};
  json["notes"] = answer.notes;
  return json;
}

std::optional<double> chance_in_time(const PlanContext& context, const Plan& plan) {
  if (!context.request.deadline || plan.relative_sd <= 0) return {};
  const Seconds elapsed = context.request.progress ? context.request.progress->elapsed : Seconds{0};
  const double left = (*context.request.deadline - elapsed).count();
  return left > 0 ? normal_share(std::log(left / plan.time.middle) / plan.relative_sd) : 0;
}

void put(Json& json, const std::string& key, const Estimate& estimate) {
  json[key] = estimate.middle;
  if (estimate.p10) json[key + "_p10"] = *estimate.p10;
  if (estimate.p90) json[key + "_p90"] = *estimate.p90;
}

Json breakdown_json(const Speed& speed) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kParts; ++i) {
    if (speed.breakdown[i] > 0) json[std::string(name(static_cast<Part>(i)))] = speed.breakdown[i];
  }
  return json;
}

}  // namespace mayfly
