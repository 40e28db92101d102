#include "report/replay_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/trail.h"

namespace mayfly {
namespace {

/// The offline optimum of a longer trace is left out: it is a yardstick, not worth a wait.
constexpr double kMostStepsToOptimum = 50'000;
/// Points of a curve.
constexpr std::size_t kMostPoints = 600;

/// One entry for each interval, as the published files have them.
std::vector<Moment> on_grid(const std::vector<Moment>& moments, Seconds interval, Seconds duration) {
  std::vector<Moment> grid;
  std::size_t at = 0;
  for (Seconds time{0}; time < duration; time = interval * static_cast<double>(grid.size())) {
    while (at + 1 < moments.size() && moments[at + 1].time <= time) ++at;
    grid.push_back(at < moments.size() && moments[at].time <= time ? moments[at] : Moment{});
    grid.back().time = time;
  }
  return grid;
}

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

bool by_interval(const ReplayQuestion& question, PolicyName policy) {
  const bool blind = question.options.sight == Sight::blind;
  if (policy == PolicyName::persist) return blind || question.parcae;
  return policy == PolicyName::liveput && (blind || question.oracle || question.parcae);
}

Result<Series> pooled(const Trace& trace) {
  Trace machines = trace;
  std::erase_if(machines.series, [](const Series& series) { return series.changes.empty(); });
  if (machines.series.empty()) return fail("{}: prices only, want a trace of machines", trace.name);
  return machines.series.size() == 1 ? machines.series[0] : merged(machines);
}

Result<ReplayAnswer> replay_answer(const Profile& profile, const Catalog& catalog, const Trace& trace,
                                   const ReplayQuestion& question) {
  auto series = pooled(trace);
  if (!series) return unexpected(series.error());
  const auto zones = static_cast<std::size_t>(
      std::count_if(trace.series.begin(), trace.series.end(), [](const Series& s) { return !s.changes.empty(); }));
  const TraceStats stats = trace_stats(*series, trace.duration, trace.start_unix);
  JobRequest request{.type = profile.pipeline ? "" : question.type,
                     .most_machines = stats.max_available,
                     .migration = question.migration};
  const auto even = make_job(profile, catalog, request);
  if (!even) return unexpected(even.error());
  request.uneven = question.uneven;
  auto job = make_job(profile, catalog, request);
  if (!job) return unexpected(job.error());
  ReplayAnswer answer{.job = *std::move(job), .series = *std::move(series), .zones = zones, .stats = stats};
  if (zones > 1) answer.notes.push_back(fmt::format("{} series pooled; --zone or --type chooses one", zones));
  if (stats.max_available < answer.job.shapes.least_machines())
    answer.notes.push_back(fmt::format("never more than {} machines, and the smallest shape needs {}: nothing trains",
                                       stats.max_available, answer.job.shapes.least_machines()));
  if (stats.max_available > answer.job.shapes.most_machines())
    answer.notes.push_back(fmt::format("machines beyond {}, the largest shape of the profile, are not taken",
                                       answer.job.shapes.most_machines()));
  ReplayOptions whole = question.options;
  whole.policy = PolicyName::ideal;
  whole.promise = {};
  whole.journal = false;
  answer.ideal = replay(answer.series, trace.duration, *even, whole).samples;
  for (const PolicyName policy : question.policies) {
    ReplayOptions one = question.options;
    one.policy = policy;
    if (policy == PolicyName::liveput && question.oracle) one.foresight = Foresight::oracle;
    if (policy == PolicyName::liveput && !question.oracle && question.parcae) one.foresight = Foresight::parcae;
    answer.rows.push_back(
        {std::string(name(policy)), by_interval(question, policy)
                                        ? replay_by_interval(answer.series, trace.duration, answer.job, one)
                                        : replay(answer.series, trace.duration, answer.job, one)});
    if (question.options.sight == Sight::blind || question.parcae) {
      auto& moments = answer.rows.back().replay.moments;
      moments = on_grid(moments, question.options.interval, trace.duration);
    }
  }
  if (question.optimum && !question.options.promise.samples &&
      trace.duration / question.options.interval <= kMostStepsToOptimum)
    answer.optimum = offline_optimum(answer.series, trace.duration, answer.job, question.options.interval);
  return answer;
}

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
  if (!promise.samples) json["ideal_samples"] = answer.ideal;
  if (answer.optimum) json["offline_optimum_samples"] = *answer.optimum;
  if (answer.job.costs.error().count() > 0) json["cost_error_s"] = answer.job.costs.error().count();
  return json;
}

}  // namespace mayfly
