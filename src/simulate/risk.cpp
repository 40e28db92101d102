#include "simulate/risk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/rng.h"
#include "base/text.h"

namespace mayfly {
namespace {

constexpr double kMinutes = 600;  ///< what "now" lasts
constexpr double kGiveUp = 10;    ///< deadlines (or planned times) after which a run counts as never finished

/// The part of a course that is known, and how it is cut.
struct Cut {
  double known = 0;    ///< s, from the trace's start
  double horizon = 0;  ///< s, what a window must hold
  double block = 0;    ///< s, of resamples

  double starts() const { return known - horizon; }
};

Cut cut_of(const Course& course, const RiskQuestion& question, const RiskOptions& options) {
  Cut cut{.known = course.duration(), .horizon = question.deadline.value_or(question.planned).count()};
  if (options.now) cut.known = std::min(cut.known, options.now->count());
  constexpr double kHour = 3600;
  constexpr double kBlocks = 8;
  cut.block = std::min(cut.known, std::clamp(cut.horizon, kHour, std::max(kHour, cut.known / kBlocks)));
  return cut;
}

/// A run that begins at `at` and, where its stretch of the trace ends, goes on at another place drawn from `rng`.
WindowRun run_from(const Course& course, const Cut& cut, double at, double stretch, double work, double limit,
                   Rng& rng) {
  WindowRun run;
  double left = work;
  for (;;) {
    const double end = std::min(cut.known, at + stretch);
    const auto here = course.at(at);
    const auto reached = course.reached(at, left);
    const bool done = reached && *reached <= end;
    const auto there = course.at(done ? *reached : end);
    run.time += there.time - here.time;
    run.cost += there.spent - here.spent;
    run.finished = done;
    if (done || run.time > limit) return run;
    left -= there.done - here.done;
    stretch = cut.block;
    at = rng.uniform() * std::max(0.0, cut.known - stretch);
  }
}

/// How a moment looks: the pace of the last minutes and of the last hour, in parts of the planned pace.
struct Look {
  double minutes = 0;
  double hour = 0;
};
Look look_at(const Course& course, double time, double full) {
  constexpr double kHour = 3600;
  return {course.pace(time, kMinutes) / full, course.pace(time, kHour) / full};
}
double likeness(const Look& a, const Look& b) {
  constexpr double kWidth = 0.1;
  const double minutes = (a.minutes - b.minutes) / kWidth;
  const double hour = (a.hour - b.hour) / (2 * kWidth);
  return std::exp(-(minutes * minutes + hour * hour) / 2);
}

/// Where windows begin.
struct Starts {
  std::vector<double> at{};
  double still = 0;  ///< share of windows that should go on as it is now instead
};

/// `count` starts in [0, last], evenly, or where something is known of the moment: as often as they look like it. Two
/// more opinions count as a window each: that of all windows alike, and that everything stays as it is. The longer the
/// trace, the less they weigh.
Starts starts_of(const Course& course, const Cut& cut, const RiskQuestion& question, const RiskOptions& options,
                 double last, int count, Rng& rng) {
  Starts starts;
  const double cell = last / count;
  for (int i = 0; i < count; ++i) starts.at.push_back((i + rng.uniform()) * cell);
  if (!options.now) return starts;
  constexpr double kAny = 1;
  constexpr double kStill = 1;
  const double full = question.work / question.planned.count();
  const Look now = look_at(course, cut.known, full);
  // Windows overlap: those side by side are what counts.
  const double each = (1 + last / cut.horizon) / count;
  std::vector<double> weights;
  double sum = 0;
  for (const double start : starts.at) {
    weights.push_back(each * likeness(look_at(course, start, full), now) + kAny / count);
    sum += weights.back();
  }
  starts.still = kStill / (sum + kStill);
  std::vector<double> drawn;
  double passed = 0;
  const double phase = rng.uniform();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    passed += weights[i];
    while (static_cast<double>(drawn.size()) + phase < passed / sum * count) drawn.push_back(starts.at[i]);
  }
  starts.at = std::move(drawn);
  return starts;
}

/// The smallest value that at least `share` of the sorted ones do not exceed; nothing where that is infinite.
std::optional<double> quantile(const std::vector<double>& sorted, double share) {
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  const double value = sorted[std::max<std::size_t>(at, 1) - 1];
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Wilson's interval for 8 of 10.
Estimate with_wilson(double share, double independent) {
  constexpr double z = 1.2816;
  const double n = std::max(1.0, independent);
  const double centre = (share + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return {share, std::clamp(centre - half, 0.0, share), std::clamp(centre + half, share, 1.0)};
}

}  // namespace

std::vector<WindowRun> window_runs(const Course& course, const RiskQuestion& question, const RiskOptions& options) {
  const Cut cut = cut_of(course, question, options);
  if (cut.known <= 0 || cut.block <= 0) return {};
  Rng rng(options.seed);
  const int real = cut.starts() > 0 ? (options.windows + 1) / 2 : 0;
  const int made = options.windows - real;
  std::vector<WindowRun> runs;
  const double limit = kGiveUp * std::max(cut.horizon, question.planned.count());
  // What goes on as it is: from now for as long as the horizon, on the way things are.
  const double pace = course.pace(cut.known, kMinutes);
  const double price = course.price(cut.known, kMinutes);
  const auto add = [&](const Starts& starts, double stretch) {
    double owed = 0;
    for (const double start : starts.at) {
      owed += starts.still;
      double work = question.work * std::exp(question.relative_sd * rng.normal());
      if (owed < 1) {
        runs.push_back(run_from(course, cut, start, stretch, work, limit, rng));
        continue;
      }
      owed -= 1;
      const bool done = work <= pace * cut.horizon;
      const double time = done ? work / pace : cut.horizon;
      runs.push_back({.time = time, .cost = price * time, .finished = done});
      if (done) continue;
      work -= pace * cut.horizon;
      const WindowRun rest = run_from(course, cut, start, stretch, work, limit, rng);
      runs.back() = {.time = time + rest.time, .cost = price * time + rest.cost, .finished = rest.finished};
    }
  };
  if (real > 0)
    add(starts_of(course, cut, question, options, cut.starts(), real, rng), std::numeric_limits<double>::infinity());
  if (made > 0) {
    const double last = std::max(0.0, cut.known - cut.block);
    add(starts_of(course, cut, question, options, last, made, rng), cut.block);
  }
  return runs;
}

Risk assess(const Course& course, const RiskQuestion& question, const RiskOptions& options) {
  const auto runs = window_runs(course, question, options);
  Risk risk{.windows = static_cast<int>(runs.size())};
  if (runs.empty()) return risk;
  const Cut cut = cut_of(course, question, options);
  std::vector<double> times;
  std::vector<double> costs;
  int in_time = 0;
  int in_budget = 0;
  for (const WindowRun& run : runs) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    times.push_back(run.finished ? run.time : kNever);
    costs.push_back(run.finished ? run.cost : kNever);
    in_time += question.deadline && times.back() <= question.deadline->count() ? 1 : 0;
    in_budget += question.budget && costs.back() <= question.budget->value ? 1 : 0;
  }
  std::sort(times.begin(), times.end());
  std::sort(costs.begin(), costs.end());
  const auto share = [&](int count) { return count / static_cast<double>(runs.size()); };
  if (question.deadline) risk.in_time = with_wilson(share(in_time), cut.known / cut.horizon);
  if (question.budget) risk.in_budget = with_wilson(share(in_budget), cut.known / cut.horizon);
  risk.resamples = cut.starts() > 0 ? risk.windows / 2 : risk.windows;
  risk.time_p50 = quantile(times, 0.5);
  risk.time_p95 = quantile(times, 0.95);
  risk.cost_p50 = quantile(costs, 0.5);
  risk.cost_p95 = quantile(costs, 0.95);
  return risk;
}

namespace {

bool takes_what_is_there(PolicyName policy) {
  return policy == PolicyName::liveput || policy == PolicyName::reactive || policy == PolicyName::persist ||
         policy == PolicyName::ideal;
}

/// Functions are always to be had: only the prediction's own error counts.
Course steady_course(const PlanOption& option, Seconds horizon) {
  const double end = 100 * std::max(option.time, horizon.count());
  return Course({{}, {end, end / std::max(option.time, 1e-6), option.hourly * end / 3600}});
}

int machines_of(const PlanOption& option) {
  int sum = 0;
  for (const PlanLine& line : option.cluster) sum += line.count;
  return sum;
}

/// As the plan will be run: its workers side by side, or in the profile's pipelines.
Result<Job> job_of(const PlanOption& option, const Problem& problem, const Profile& profile, const Catalog& catalog) {
  JobRequest request{.type = option.cluster.front().type,
                     .recovery = profile.recovery.value_or(Seconds{0}),
                     .least_machines = problem.fewest,
                     .most_machines = machines_of(option)};
  if (!option.servers.empty()) request.servers = {option.servers.front().type, option.servers.front().count};
  for (const PlanLine& line : option.cluster) request.mix.push_back({line.type, line.count});
  return make_job(profile, catalog, request);
}

}  // namespace

RiskOfPlan risk_on(const Profile& profile, const Catalog& catalog, const PlanRequest& request, const Trace& trace,
                   const RiskOptions& options) {
  return [&, options](const PlanOption& option, const Problem* problem, const Candidate* candidate) -> Result<Risk> {
    const Seconds elapsed = request.progress ? request.progress->elapsed : Seconds{0};
    RiskQuestion question{.budget = request.budget, .planned = Seconds(option.time)};
    if (request.deadline) question.deadline = *request.deadline - elapsed;
    if (problem == nullptr) {
      question.relative_sd = model_sd(Predictor::lambda);
      RiskOptions always = options;
      always.now.reset();
      return assess(steady_course(option, question.deadline.value_or(Seconds{0})), question, always);
    }
    std::vector<Group> groups;
    for (std::size_t k = 0; k < problem->kinds.size(); ++k) {
      if (candidate->counts[k] > 0) groups.push_back({&problem->kinds[k].worker, candidate->counts[k]});
    }
    // A re-plan begins with a change of its own.
    if (question.deadline) *question.deadline -= problem->recovery;
    question.planned -= problem->recovery;
    question.relative_sd = relative_sd(problem->predictor, problem->target, profile, groups);
    auto scene = scene_of(option, trace);
    if (!scene) return unexpected(scene.error());
    constexpr double kLongest = 30;
    if (const Seconds asked = question.deadline.value_or(question.planned); asked > kLongest * trace.duration)
      return fail("trace {} lasts {}: too short to say anything of {} (at most {:g} times as long)", trace.name,
                  format_duration(trace.duration), format_duration(asked), kLongest);
    if (!profile.pipeline && !takes_what_is_there(options.policy))
      return fail("policy {} needs a profile with pipelines; others train with what is there (liveput, or ideal)",
                  name(options.policy));
    const auto job = job_of(option, *problem, profile, catalog);
    if (!job) return unexpected(job.error());
    if (!profile.pipeline) scene->pace = pace_of(*scene, *problem, candidate->server);
    const auto shape = job->shapes.best(machines_of(option));
    const double work = profile.pipeline && shape ? option.time * job->shapes.speed(*shape) : 1;
    const ReplayOptions replay{
        .policy = options.policy, .interval = std::max(Seconds(60), trace.gap), .seed = options.seed};
    return assess(course_of(*scene, *job, replay, work), question, options);
  };
}

}  // namespace mayfly
