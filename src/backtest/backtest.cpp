// Model: docs/models.md#backtest
#include "backtest/backtest.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "base/text.h"

namespace mayfly {

std::string_view name(Rule rule) {
  switch (rule) {
    case Rule::mayfly:
      return "mayfly";
    case Rule::on_demand:
      return "on-demand";
    case Rule::fixed:
      return "fixed";
    case Rule::uniform_progress:
      return "uniform-progress";
  }
  return "";
}

namespace {

constexpr double kDay = 86400;
constexpr std::size_t index(Rule rule) { return static_cast<std::size_t>(rule); }

/// Where starts may lie.
struct Span {
  double first = 0;
  double last = 0;
};

Result<Span> span_of(const Trace& trace, Seconds deadline, const BacktestOptions& options) {
  Span span{.first = deadline.count(), .last = (trace.duration - deadline).count()};
  if (span.last < span.first)
    return fail("trace {} lasts {}: want at least {}, a deadline to learn from and one to try", trace.name,
                format_duration(trace.duration), format_duration(2 * deadline));
  if (!options.since_unix) return span;
  if (!trace.start_unix) return fail("--since: trace {} has no dates", trace.name);
  span.first = std::max(span.first, *options.since_unix - *trace.start_unix);
  if (span.last < span.first)
    return fail("--since: trace {} ends {}, less than a deadline of {} later", trace.name,
                format_time(*trace.start_unix + trace.duration.count()), format_duration(deadline));
  return span;
}

Result<History> history_of(const Profile& profile, const Catalog& catalog, const PlanRequest& request,
                           const Trace& trace, const BacktestOptions& options) {
  PlanRequest wanted = request;
  wanted.confidence = options.confidence;
  const RiskOptions risk{
      .seed = options.seed, .policy = options.policy, .prices = SpotPrices::as_traced, .all_may_come = true};
  auto field = field_of(profile, catalog, wanted, trace, risk);
  if (!field) return unexpected(field.error());
  History history{
      .name = trace.name, .start_unix = trace.start_unix, .duration = trace.duration, .field = *std::move(field)};
  PlanRequest rented = wanted;
  rented.markets = {Market::on_demand};
  // Nothing to rent so is no reason to stop: that rule has no rows then.
  if (auto there = field_of(profile, catalog, rented, trace, risk)) history.rented = *std::move(there);
  // On demand the weather says nothing, so the choice is the same at all times.
  const Seconds any = trace.duration / 2;
  history.on_demand = choice_at(history.rented, chances_at(history.rented, any), any, options.confidence).entrant;
  return history;
}

/// With what comes before machines train, and what is paid for that and beside them: the same for every rule.
RuleRun with_lead(RuleRun run, const Entrant& plan) {
  run.time += plan.lead.count();
  run.cost += plan.before.value;
  return run;
}

/// How a plan goes if its machines are ordered at `start`.
RuleRun run_of(const Entrant& plan, double start, double error) {
  const double first = start + plan.lead.count();
  const auto from = plan.course.at(first);
  const auto end = plan.course.reached(first, plan.question.work * error);
  const double until = end.value_or(plan.course.duration());
  const double spent = plan.course.at(until).spent - from.spent;
  return with_lead({.finished = end.has_value(), .time = until - first, .cost = spent}, plan);
}

bool in_time(const Entrant& plan, const RuleRun& run) {
  return run.finished && run.time <= (plan.lead + *plan.question.deadline).count() * (1 + 1e-12);
}

class Trial {
 public:
  Trial(Backtest& test, const BacktestOptions& options) : test_(test), options_(options) {}

  /// `draw`: of the prediction's error, standard normal.
  void add(std::size_t history, double time, double draw) {
    const Field& field = test_.histories[history].field;
    const auto chances = chances_at(field, Seconds(time));
    const Choice choice = choice_at(field, chances, Seconds(time), options_.confidence);
    Start start{.history = history, .time = time, .entrant = choice.entrant, .promised = choice.chance};
    const long day = day_of(test_, start);
    for (std::size_t i = 0; i < chances.size(); ++i) {
      const Entrant& plan = field.entrants[i];
      if (!plan.needs_market()) continue;
      const double error = std::exp(plan.question.relative_sd * draw);
      test_.statements.push_back({chances[i], day, in_time(plan, run_of(plan, time, error))});
    }
    if (choice.entrant) run(start, field.entrants[*choice.entrant], draw);
    test_.starts.push_back(start);
  }

 private:
  void run(Start& start, const Entrant& plan, double draw) const {
    start.error = std::exp(plan.question.relative_sd * draw);
    const auto put = [&](Rule rule, const RuleRun& run, const Entrant& of) {
      start.runs[index(rule)] = run;
      start.in_time[index(rule)] = in_time(of, run);
    };
    put(Rule::mayfly, run_of(plan, start.time, start.error), plan);
    start.kept = start.in_time[index(Rule::mayfly)];
    const History& history = test_.histories[start.history];
    if (history.on_demand) {
      const Entrant& rented = history.rented.entrants[*history.on_demand];
      put(Rule::on_demand, run_of(rented, start.time, std::exp(rented.question.relative_sd * draw)), rented);
    }
    if (!plan.rental) return;
    const Rental& rental = history.field.rentals[*plan.rental];
    const RuleJob job{.start = start.time + plan.lead.count(),
                      .work = plan.question.planned.count() * start.error,
                      .deadline = plan.question.deadline->count()};
    put(Rule::fixed, with_lead(fixed_run(rental, job, options_.figures), plan), plan);
    put(Rule::uniform_progress, with_lead(uniform_progress_run(rental, job, options_.figures), plan), plan);
  }

  Backtest& test_;
  const BacktestOptions& options_;
};

}  // namespace

long day_of(const Backtest& test, const Start& start) {
  const History& history = test.histories[start.history];
  constexpr long kMostDays = 1'000'000;
  const double day = std::floor((std::fmod(history.start_unix.value_or(0), kDay) + start.time) / kDay);
  return static_cast<long>(start.history) * kMostDays + static_cast<long>(day);
}

Result<Backtest> backtest(const Profile& profile, const Catalog& catalog, const PlanRequest& request,
                          const std::vector<Trace>& traces, const BacktestOptions& options) {
  MAYFLY_CHECK(request.deadline && !traces.empty() && options.starts > 0, "a backtest has a deadline and a past");
  Backtest test{.deadline = *request.deadline};
  std::vector<Span> spans;
  double room = 0;
  for (const Trace& trace : traces) {
    const auto span = span_of(trace, *request.deadline, options);
    if (!span) return unexpected(span.error());
    spans.push_back(*span);
    room += span->last - span->first;
    auto history = history_of(profile, catalog, request, trace, options);
    if (!history) return unexpected(history.error());
    test.histories.push_back(*std::move(history));
  }
  Trial trial(test, options);
  Rng rng(options.seed);
  for (std::size_t h = 0; h < spans.size(); ++h) {
    const double length = spans[h].last - spans[h].first;
    const double share = room > 0 ? length / room : 1.0 / static_cast<double>(spans.size());
    const int count = std::max(1, static_cast<int>(std::lround(options.starts * share)));
    for (int i = 0; i < count; ++i)
      trial.add(h, spans[h].first + (count > 1 ? length * i / (count - 1) : length / 2), rng.normal());
  }
  return test;
}

}  // namespace mayfly
