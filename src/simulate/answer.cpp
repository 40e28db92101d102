#include "simulate/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace mayfly {
namespace {

/// The offline optimum of a longer trace is left out: it is a yardstick, not worth a wait.
constexpr double kMostStepsToOptimum = 50'000;

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
                     .servers = question.servers,
                     .most_machines = stats.max_available,
                     .migration = question.migration};
  const auto even = make_job(profile, catalog, request);
  if (!even) return unexpected(even.error());
  if (!even->on_demand) return fail("{} has no on-demand price in catalogue '{}'", even->type, catalog.name);
  request.uneven = question.uneven;
  auto job = make_job(profile, catalog, request);
  if (!job) return unexpected(job.error());
  ReplayAnswer answer{.job = *std::move(job), .series = *std::move(series), .zones = zones, .stats = stats};
  if (zones > 1)
    answer.notes.push_back(
        fmt::format("{} series, of which the cheapest is taken first; --zone or --type chooses one", zones));
  std::set<std::string> others;
  for (const Series& one : trace.series) {
    if (!one.changes.empty() && !one.type.empty() && one.type != answer.job.type) others.insert(one.type);
  }
  if (!others.empty())
    answer.notes.push_back(fmt::format("machines of {} count as {}, of which speeds are known; --type chooses",
                                       fmt::join(others, ", "), answer.job.type));
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
  const Scene scene = scene_of(trace, answer.job);
  answer.ideal = replay(scene_of(trace, *even), *even, whole).samples;
  for (const PolicyName policy : question.policies) {
    ReplayOptions one = question.options;
    one.policy = policy;
    if (policy == PolicyName::liveput && question.oracle) one.foresight = Foresight::oracle;
    if (policy == PolicyName::liveput && !question.oracle && question.parcae) one.foresight = Foresight::parcae;
    answer.rows.push_back(
        {std::string(name(policy)), by_interval(question, policy)
                                        ? replay_by_interval(answer.series, trace.duration, answer.job, one)
                                        : replay(scene, answer.job, one)});
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

}  // namespace mayfly
