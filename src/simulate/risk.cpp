#include "simulate/risk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/normal.h"
#include "base/rng.h"
#include "base/sample.h"
#include "base/text.h"

namespace mayfly {
namespace {

constexpr double kGiveUp = 10;  ///< deadlines (or planned times) after which a run counts as never finished

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

/// Nothing where it is infinite.
std::optional<double> quantile(const std::vector<double>& sorted, double share) {
  const double value = nearest_rank(sorted, share);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

Spread spread_of(const std::vector<double>& sorted) {
  return {.p10 = quantile(sorted, 0.1),
          .p50 = quantile(sorted, 0.5),
          .p90 = quantile(sorted, 0.9),
          .p95 = quantile(sorted, 0.95)};
}

/// The others stay on their sides of it.
void put_middle(Spread& spread, const std::optional<double>& middle) {
  if (!middle) return;
  spread.p50 = middle;
  if (spread.p10) spread.p10 = std::min(*spread.p10, *middle);
  for (auto* value : {&spread.p90, &spread.p95}) {
    if (*value) *value = std::max(**value, *middle);
  }
}

/// For 8 of 10.
Estimate with_wilson(double share, double independent) {
  const auto bounds = wilson_interval(share, std::max(1.0, independent), kTenthAbove);
  return {share, bounds.low, bounds.high};
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
  const double pace = course.pace(cut.known, kLookBack.count());
  const double price = course.price(cut.known, kLookBack.count());
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

Risk risk_of(const std::vector<WindowRun>& runs, const RiskQuestion& question, double independent) {
  Risk risk{.windows = static_cast<int>(runs.size())};
  if (runs.empty()) return risk;
  std::vector<double> times;
  std::vector<double> costs;
  int in_time = 0;
  int in_budget = 0;
  int in_both = 0;
  for (const WindowRun& run : runs) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    times.push_back(run.finished ? run.time : kNever);
    costs.push_back(run.finished ? run.cost : kNever);
    const bool timely = question.deadline && times.back() <= question.deadline->count();
    const bool cheap = question.budget && costs.back() <= question.budget->value;
    in_time += timely ? 1 : 0;
    in_budget += cheap ? 1 : 0;
    in_both += timely && cheap ? 1 : 0;
  }
  std::sort(times.begin(), times.end());
  std::sort(costs.begin(), costs.end());
  const auto share = [&](int count) { return count / static_cast<double>(runs.size()); };
  if (question.deadline) risk.in_time = with_wilson(share(in_time), independent);
  if (question.budget) risk.in_budget = with_wilson(share(in_budget), independent);
  if (question.deadline && question.budget) risk.in_both = share(in_both);
  risk.time = spread_of(times);
  risk.cost = spread_of(costs);
  return risk;
}

Risk assess(const Course& course, const RiskQuestion& question, const RiskOptions& options) {
  const auto runs = window_runs(course, question, options);
  const Cut cut = cut_of(course, question, options);
  // Windows overlap, so only as many count as fit into the trace side by side.
  Risk risk = risk_of(runs, question, cut.known / cut.horizon);
  risk.resamples = cut.starts() > 0 ? risk.windows / 2 : risk.windows;
  if (runs.empty() || !options.now || !question.deadline || question.deadline->count() <= 0) return risk;
  const Past past(course, question);
  const Seconds now(cut.known);
  risk.in_time = with_wilson(past.in_time(now), cut.known / cut.horizon);
  put_middle(risk.time, past.time_p50(now));
  put_middle(risk.cost, past.cost_p50(now));
  return risk;
}

namespace {

bool takes_what_is_there(PolicyName policy) {
  return policy == PolicyName::liveput || policy == PolicyName::reactive || policy == PolicyName::persist ||
         policy == PolicyName::ideal;
}

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

/// Work per second of what is rented on demand, without a machine of the market.
double pace_without_market(const Scene& scene, const Job& job, int fewest) {
  std::vector<int> counts;
  for (const Supply& supply : scene.supplies) counts.resize(counts.size() + supply.lines.size());
  int machines = 0;
  for (const Rented& rented : scene.rented) {
    counts.push_back(rented.count);
    machines += rented.count;
  }
  if (machines == 0 || machines < fewest) return 0;
  if (scene.pace) return scene.pace(counts);
  const auto shape = job.shapes.best(machines);
  return shape ? job.shapes.speed(*shape) : 0;
}

PlannedCourse course_of_functions(const PlanOption& option, RiskQuestion question) {
  question.relative_sd = model_sd(Predictor::lambda);
  question.least_pace = 1 / std::max(option.time, 1e-6);
  return {.course = steady_course(option, question.deadline.value_or(Seconds{0})), .question = question};
}

}  // namespace

RiskOptions with_care(RiskOptions options, Care care) {
  constexpr int kGlances = 400;
  if (care == Care::glance) options.windows = std::min(options.windows, kGlances);
  return options;
}

Risk steady_risk(const PlanOption& option, RiskQuestion question, RiskOptions options) {
  options.now.reset();
  const PlannedCourse made = course_of_functions(option, question);
  return assess(made.course, made.question, options);
}

namespace {

void add(Spread& spread, double more) {
  for (auto* value : {&spread.p10, &spread.p50, &spread.p90, &spread.p95}) {
    if (*value) **value += more;
  }
}

/// From the order of the machines on.
RiskQuestion question_of(const PlanRequest& request, const PlanOption& option) {
  RiskQuestion question{.planned = Seconds(option.time)};
  if (request.budget) question.budget = Usd{request.budget->value - option.beside};
  const Seconds elapsed = request.progress ? request.progress->elapsed : Seconds{0};
  if (request.deadline) question.deadline = *request.deadline - elapsed;
  return question;
}

/// The same with what comes before the windows.
Risk later(Risk risk, Seconds lead, Usd paid) {
  add(risk.time, lead.count());
  add(risk.cost, paid.value);
  return risk;
}

}  // namespace

Result<PlannedCourse> planned_course(const Profile& profile, const Catalog& catalog, const PlanRequest& request,
                                     const Trace& trace, const RiskOptions& options, const PlanOption& option,
                                     const Problem* problem, const Candidate* candidate) {
  RiskQuestion question = question_of(request, option);
  if (problem == nullptr) return course_of_functions(option, question);
  // Machines start, or change when re-planning, before the windows begin.
  const Seconds lead{option.lead};
  const Usd paid{option.hourly * lead.count() / 3600};
  if (question.deadline) *question.deadline -= lead;
  if (question.budget) *question.budget = Usd{question.budget->value - paid.value};
  question.planned -= lead;
  question.relative_sd = predicted_sd(*problem, *candidate);
  auto scene = scene_of(option, trace, options.prices);
  if (!scene) return unexpected(scene.error());
  constexpr double kLongest = 30;
  if (const Seconds asked = question.deadline.value_or(question.planned); asked > kLongest * trace.duration)
    return fail("trace {} lasts {}: too short to say anything of {} (at most {:g} times as long)", trace.name,
                format_duration(trace.duration), format_duration(asked), kLongest);
  if (!profile.pipeline && !takes_what_is_there(options.policy))
    return fail("policy {} needs a profile with pipelines; others train with what is there (liveput, or ideal)",
                name(options.policy));
  const auto job = job_of(option, *problem, *problem->profile, catalog);
  if (!job) return unexpected(job.error());
  if (!profile.pipeline) scene->pace = pace_of(*scene, *problem, candidate->server);
  const auto shape = job->shapes.best(machines_of(option));
  const double work = profile.pipeline && shape ? question.planned.count() * job->shapes.speed(*shape) : 1;
  question.least_pace = pace_without_market(*scene, *job, problem->fewest) / work;
  const ReplayOptions replay{.policy = options.policy,
                             .interval = std::max(Seconds(60), trace.gap),
                             .seed = options.seed,
                             .all_may_come = options.all_may_come};
  return PlannedCourse{course_of(*scene, *job, replay, work), question, lead, paid};
}

RiskOfPlan risk_on(const Profile& profile, const Catalog& catalog, const PlanRequest& request, const Trace& trace,
                   const RiskOptions& options) {
  return [&, all = options](const PlanOption& option, const Problem* problem, const Candidate* candidate,
                            Care care) -> Result<Risk> {
    const RiskOptions own = with_care(all, care);
    if (problem == nullptr) return steady_risk(option, question_of(request, option), own);
    const auto made = planned_course(profile, catalog, request, trace, own, option, problem, candidate);
    if (!made) return unexpected(made.error());
    return later(assess(made->course, made->question, own), made->lead, made->paid);
  };
}

}  // namespace mayfly
