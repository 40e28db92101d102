#include "report/replay_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/trail.h"

namespace mayfly {
namespace {

/// Points of a curve.
constexpr std::size_t kMostPoints = 600;

Json moments_json(const std::vector<Moment>& moments) {
  Json list = Json::array();
  for (const Moment& moment : moments) {
    list.push_back({{"t_s", moment.time.count()},
                    {"available", moment.available},
                    {"data_parallel", moment.shape.data_parallel},
                    {"stages", moment.shape.stages}});
    if (moment.shape.extra > 0) list.back()["extra"] = moment.shape.extra;
  }
  return list;
}

Json row_json(const PolicyReplay& row, double ideal) {
  const MachineTime& time = row.replay.machine_time;
  const double total = std::max(time.total(), 1e-300);
  Json json{{"policy", row.policy},
            {"samples", row.replay.samples},
            {"samples_per_s", row.replay.samples / std::max(row.replay.time.count(), 1e-300)},
            {"cost_usd", row.replay.cost.value},
            {"time_s", row.replay.time.count()},
            {"share",
             {{"useful", time.useful / total},
              {"redundant", time.redundant / total},
              {"reconfigure", time.reconfigure / total},
              {"lost", time.lost / total},
              {"idle", time.idle / total}}},
            {"machine_hours", time.total() / 3600},
            {"changes", row.replay.changes},
            {"preemptions", row.replay.preemptions}};
  if (ideal > 0) json["share_of_ideal"] = row.replay.samples / ideal;
  if (row.replay.finished) json["finished"] = name(*row.replay.finished);
  json["intervals"] = moments_json(row.replay.moments);
  Trail progress(kMostPoints);
  Trail money(kMostPoints);
  for (const Milestone& milestone : row.replay.milestones) progress.add(milestone.time.count(), milestone.samples);
  for (const Spending& spending : row.replay.spendings) money.add(spending.time.count(), spending.spent.value);
  json["progress"] = {{"t_s", progress.times()}, {"samples", progress.values()}};
  json["money"] = {{"t_s", money.times()}, {"usd", money.values()}};
  return json;
}

}  // namespace

Json replayed_trace_json(const Trace& trace, const Series& series, const TraceStats& stats, std::size_t zones) {
  return {{"name", trace.name},
          {"type", series.type},
          {"zones", zones},
          {"observation", name(trace.observation)},
          {"duration_s", trace.duration.count()},
          {"mean_available", stats.mean_available.value_or(0)},
          {"max_available", stats.max_available},
          {"preemption_events", stats.preemption_events}};
}

Json replay_json(const Profile& profile, const Trace& trace, const ReplayQuestion& question, const ReplayAnswer& answer,
                 Seconds took) {
  const Promise& promise = question.options.promise;
  Json policies = Json::array();
  for (const PolicyReplay& row : answer.rows) policies.push_back(row_json(row, promise.samples ? 0 : answer.ideal));
  Json json{{"trace", replayed_trace_json(trace, answer.series, answer.stats, answer.zones)},
            {"profile", profile.name},
            {"sight", question.options.sight == Sight::blind ? "blind" : "informed"},
            {"samples_target", promise.samples ? Json(*promise.samples) : Json()},
            {"deadline_s", promise.deadline ? Json(promise.deadline->count()) : Json()},
            {"budget_usd", promise.budget ? Json(promise.budget->value) : Json()},
            {"policies", std::move(policies)},
            {"time_s", took.count()}};
  if (answer.job.standing.value > 0) json["servers_usd_per_hour"] = answer.job.standing.value;
  if (!promise.samples) json["ideal_samples"] = answer.ideal;
  if (answer.optimum) json["offline_optimum_samples"] = *answer.optimum;
  if (answer.job.costs.error().count() > 0) json["cost_error_s"] = answer.job.costs.error().count();
  return json;
}

}  // namespace mayfly
