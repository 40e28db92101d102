#include "simulate/risk.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/problems.h"
#include "trace/generate.h"

namespace mayfly {
namespace {

Trace trace_of(std::vector<Series> series, Seconds duration) {
  return {.name = "made", .duration = duration, .series = std::move(series)};
}

PlanLine line_of(const std::string& type, Market market, int count, double rate = 1) {
  return {.type = type, .market = market, .count = count, .rate = {rate}};
}

/// Half the machines, half the pace; all of them do a job in 100 s.
PaceOf proportional(int machines) {
  return [machines](const std::vector<int>& counts) {
    int there = 0;
    for (const int count : counts) there += count;
    return there / (100.0 * machines);
  };
}

/// As many side by side, each change of which costs `recovery`.
Job side_by_side(int machines, Seconds recovery) {
  const Shapes shapes = unmeasured_job(machines).shapes;
  return {.shapes = shapes, .costs = MigrationCosts::constant(shapes, recovery)};
}

Course proportional_course(const PlanOption& option, const Trace& trace, int machines, Seconds recovery) {
  Scene scene = *scene_of(option, trace);
  scene.pace = proportional(machines);
  return course_of(scene, side_by_side(machines, recovery), {.policy = PolicyName::persist}, 1);
}

Series from_four_to_two() {
  return {.type = "a",
          .changes = {{.time = Seconds(0), .added = 4, .available = 4},
                      {.time = Seconds(1000), .removed = 2, .available = 2}}};
}

// 4 of 4: 10 s of recovery, then 990 s: 9.9 jobs. Then 10 s of recovery and half the pace: 990 s more are 4.95 jobs.
TEST(Course, PaysForChangesAndTrainsWithWhatIsThere) {
  const PlanOption option{.cluster = {line_of("a", Market::spot, 4, 3.6)}, .hourly = 4 * 3.6};
  const Course course = proportional_course(option, trace_of({from_four_to_two()}, Seconds(2000)), 4, Seconds(10));
  EXPECT_NEAR(course.at(10).done, 0, 1e-9);
  EXPECT_NEAR(course.at(1000).done, 9.9, 1e-9);
  EXPECT_NEAR(course.at(1010).done, 9.9, 1e-9);
  EXPECT_NEAR(course.at(2000).done, 14.85, 1e-9);
  // 0.001 USD/s a machine: 4 for 1000 s, then 2, recovery included.
  EXPECT_NEAR(course.at(1000).spent, 4, 1e-9);
  EXPECT_NEAR(course.at(2000).spent, 6, 1e-9);
  // From 950 s: half a job by 1000 s, the other half in 100 s after the recovery.
  ASSERT_TRUE(course.reached(950, 1));
  EXPECT_NEAR(*course.reached(950, 1), 1110, 1e-9);
  EXPECT_FALSE(course.reached(1950, 1));
}

// Two on demand at 1 USD/h, servers at 0.5: 2.5 USD/h whatever the market does, and the market's 4 and 2 at 3.6.
TEST(Course, PaysForServersAndForMachinesOnDemand) {
  const PlanOption option{.cluster = {line_of("a", Market::spot, 4, 3.6), line_of("b", Market::on_demand, 2, 1)},
                          .hourly = 4 * 3.6 + 2 + 0.5};
  const Course course = proportional_course(option, trace_of({from_four_to_two()}, Seconds(2000)), 6, Seconds(0));
  EXPECT_NEAR(course.at(1000).done, 10, 1e-9);
  EXPECT_NEAR(course.at(2000).done, 10 + 10 * 4.0 / 6, 1e-9);
  EXPECT_NEAR(course.at(2000).spent, 6 + 2.5 * 2000 / 3600, 1e-9);
}

/// Machines of each line, supplies before what is rented, that a replay of the plan holds in the end.
std::vector<int> held_at_the_end(const std::vector<PlanLine>& cluster, const Trace& trace) {
  int machines = 0;
  for (const PlanLine& line : cluster) machines += line.count;
  Scene scene = *scene_of(PlanOption{.cluster = cluster}, trace);
  std::vector<int> last;
  scene.pace = [&](const std::vector<int>& counts) {
    last = counts;
    return 1.0;
  };
  course_of(scene, side_by_side(machines, Seconds(0)), {.policy = PolicyName::ideal}, 1);
  return last;
}

TEST(SceneOfAPlan, MachinesOnDemandStay) {
  EXPECT_EQ(held_at_the_end({line_of("a", Market::on_demand, 3), line_of("a", Market::spot, 3)},
                            trace_of({from_four_to_two()}, Seconds(2000))),
            (std::vector<int>{2, 3}));
}

// Lines of one type share what there is: 4 machines for 3 and 2 wanted.
TEST(SceneOfAPlan, LinesOfOneTypeShareItsSeries) {
  Series four = from_four_to_two();
  four.changes.pop_back();
  EXPECT_EQ(
      held_at_the_end({line_of("a", Market::spot, 3), line_of("a", Market::spot, 2)}, trace_of({four}, Seconds(2000))),
      (std::vector<int>{3, 1}));
}

TEST(SceneOfAPlan, ZonesAreOneUnlessTheLineNamesOne) {
  Series east = from_four_to_two();
  east.zone = "east";
  Series west{.type = "a", .zone = "west", .changes = {{.time = Seconds(0), .added = 1, .available = 1}}};
  const Trace trace = trace_of({east, west}, Seconds(2000));
  EXPECT_EQ(held_at_the_end({line_of("a", Market::spot, 9)}, trace), std::vector<int>{3});
  PlanLine there = line_of("a", Market::spot, 9);
  there.zone = "west";
  EXPECT_EQ(held_at_the_end({there}, trace), std::vector<int>{1});
}

TEST(SceneOfAPlan, ATraceOfOtherTypesSaysNothing) {
  const PlanOption option{.cluster = {line_of("b", Market::spot, 1)}};
  const auto scene = scene_of(option, trace_of({from_four_to_two()}, Seconds(2000)));
  ASSERT_FALSE(scene);
  EXPECT_NE(scene.error().message.find("says nothing of b"), std::string::npos);
  EXPECT_NE(scene.error().message.find("it has a"), std::string::npos);
  Series any = from_four_to_two();
  any.type.clear();
  EXPECT_TRUE(scene_of(option, trace_of({any}, Seconds(2000))));
}

// The trace's mean price is 2: 3 and 1 are half as much again and half of the plan's 10.
TEST(SceneOfAPlan, PricesMoveAsTheTracesDo) {
  Series series = from_four_to_two();
  series.prices = {{Seconds(0), {3}}, {Seconds(1000), {1}}};
  const auto scene =
      scene_of(PlanOption{.cluster = {line_of("a", Market::spot, 4, 10)}}, trace_of({series}, Seconds(2000)));
  ASSERT_TRUE(scene);
  EXPECT_EQ(scene->supplies[0].lines[0].prices, (std::vector<PricePoint>{{Seconds(0), {15}}, {Seconds(1000), {5}}}));
}

Course steady(double end) { return Course({{}, {end, end / 3600, end / 3600}}); }

TEST(Assess, WithoutWeatherOnlyThePredictionErrs) {
  // Deadline = planned time * e^(sd): one deviation above the middle, 84.13 %.
  const RiskQuestion question{.deadline = Seconds(3600 * std::exp(0.1)), .planned = Seconds(3600), .relative_sd = 0.1};
  const Risk risk = assess(steady(1e6), question, {.windows = 100'000});
  EXPECT_NEAR(risk.in_time->middle, 0.8413, 0.004);
  EXPECT_NEAR(*risk.cost.p50, 1, 0.002);
  EXPECT_NEAR(*risk.cost.p95, std::exp(0.1645), 0.005);
}

TEST(Assess, SameSeedSameAnswer) {
  const RiskQuestion question{.deadline = Seconds(4000), .planned = Seconds(3600), .relative_sd = 0.1};
  EXPECT_EQ(assess(steady(1e6), question, {}).in_time->middle, assess(steady(1e6), question, {}).in_time->middle);
}

TEST(Assess, JobsThatNeverEndHaveNoCost) {
  const Course idle({{}, {1e5, 0, 1}});
  const Risk risk = assess(idle, {.deadline = Seconds(4000), .planned = Seconds(3600)}, {.windows = 100});
  EXPECT_EQ(risk.in_time->middle, 0);
  EXPECT_FALSE(risk.cost.p50);
}

// Good hours and bad ones take turns of 10 h: a job of an hour fits into the next hour if now is good.
TEST(Assess, WhatIsNowDecidesWhatComesNext) {
  std::vector<Course::Point> points{{}};
  for (int i = 0; i < 40; ++i) {
    const auto& last = points.back();
    points.push_back({last.time + 36000, last.done + (i % 2 == 0 ? 10.0 : 0.0), last.spent + 1});
  }
  const Course course(points);
  const RiskQuestion question{.work = 0.9, .deadline = Seconds(3600), .planned = Seconds(0.9 * 3600)};
  EXPECT_NEAR(assess(course, question, {}).in_time->middle, 0.5, 0.05);
  const double good = 36 * 36000.0 + 7200;
  EXPECT_GT(assess(course, question, {.now = Seconds(good)}).in_time->middle, 0.85);
  EXPECT_LT(assess(course, question, {.now = Seconds(good + 36000)}).in_time->middle, 0.15);
}

// bench/risk does the same with 10,000 windows and every preset.
TEST(Assess, PromisesAreKeptOnTheGenerator) {
  const auto course = [](std::uint64_t seed) {
    const auto trace =
        generated_trace({.machines = 8, .duration = Hours(24 * 365), .gap = Seconds(300), .type = "a", .seed = seed});
    return proportional_course({.cluster = {line_of("a", Market::spot, 8)}}, *trace, 8, Seconds(60));
  };
  const Course learned = course(1);
  const Course tried = course(2);
  const RiskQuestion job{.work = 144, .deadline = Seconds(15800), .planned = Seconds(14400)};
  const double promised = assess(learned, job, {}).in_time->middle;
  int kept = 0;
  constexpr int kWindows = 2000;
  for (int i = 0; i < kWindows; ++i) {
    const double from = i * (tried.duration() / kWindows);
    const auto reached = tried.reached(from, job.work);
    kept += reached && *reached <= from + job.deadline->count() ? 1 : 0;
  }
  EXPECT_GT(promised, 0.1);
  EXPECT_LT(promised, 0.98);
  EXPECT_NEAR(kept / static_cast<double>(kWindows), promised, 0.03);
}

/// The spotDNN evaluation on a trace of its types in which p3 machines are scarce.
struct Scarce {
  Profile profile = support::shipped_profile("spotdnn-resnet110");
  Catalog catalog = support::shipped_catalog("spotdnn");
  Trace trace{};
  PlanRequest request{.target = ToLoss{0.8}, .deadline = Seconds(2700), .frontier = false};

  Scarce() {
    auto made = generated_trace(
        {.machines = 6, .duration = Hours(24 * 30), .lifetime = ExponentialLife{.mean = Hours(2)}, .rejoin = Hours(1)});
    trace = *std::move(made);
    request.risk = risk_on(profile, catalog, request, trace, {.windows = 1000});
  }
  std::variant<Plan, Infeasible> plan() const { return *make_plan(profile, catalog, request); }
};

TEST(Confidence, BuysMarginOrSaysNo) {
  Scarce scarce;
  const auto bare = std::get<Plan>(scarce.plan());
  ASSERT_TRUE(bare.chosen.risk);
  EXPECT_LT(bare.chosen.risk->in_time->middle, 0.9);
  scarce.request.confidence = 0.9;
  const auto sure = std::get<Plan>(scarce.plan());
  EXPECT_GE(sure.chosen.risk->in_time->middle, 0.9);
  EXPECT_GT(expected_cost(sure.chosen), expected_cost(bare.chosen));
  scarce.request.confidence = 0.999;
  scarce.request.markets = {Market::spot};
  const auto answer = scarce.plan();
  const auto* no = std::get_if<Infeasible>(&answer);
  ASSERT_NE(no, nullptr);
  EXPECT_EQ(no->binding, "confidence");
  ASSERT_TRUE(no->nearest && no->nearest->risk);
}

TEST(Confidence, PipelinesAreReplayed) {
  const Profile profile = support::shipped_profile("parcae-bert");
  const Catalog catalog = support::shipped_catalog("default");
  const auto trace = generated_trace({.machines = 32, .duration = Hours(48), .type = "p3.2xlarge"});
  PlanRequest request{.target = ForSteps{2000}, .deadline = Hours(4), .frontier = false};
  request.retired = true;  // p3.2xlarge, of the paper
  request.risk = risk_on(profile, catalog, request, *trace, {.windows = 500});
  const auto answer = make_plan(profile, catalog, request);
  ASSERT_TRUE(answer) << answer.error().message;
  const auto& plan = std::get<Plan>(*answer);
  ASSERT_TRUE(plan.chosen.risk);
  // Machines go now and then, so half the windows take at least as long as predicted.
  EXPECT_GE(*plan.chosen.risk->time.p50, 0.97 * plan.chosen.time);
}

}  // namespace
}  // namespace mayfly
