#include "simulate/replay.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/pipelines.h"
#include "support/problems.h"
#include "trace/load.h"
#include "trace/stats.h"

namespace mayfly {
namespace {

Trace shipped_trace(const std::string& name) {
  const auto trace = load_trace(std::filesystem::path(MAYFLY_SOURCE_DIR) / "data/traces" / (name + ".json"));
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  return *trace;
}
Job job_of(const std::string& profile) {
  auto job = make_job(support::shipped_profile(profile), support::shipped_catalog("default"), {});
  EXPECT_TRUE(job.has_value()) << job.error().message;
  return *std::move(job);
}
/// The first hours of a shipped trace, with the BERT job.
struct Fixture {
  explicit Fixture(const std::string& trace = "p3", Seconds length = Hours(12))
      : duration(length), series(slice(shipped_trace(trace).series[0], Seconds(0), length)) {}
  Replay run(const ReplayOptions& options) const { return replay(series, duration, job, options); }
  Seconds duration;
  Series series;
  Job job = job_of("parcae-bert");
};

std::string journal_of(const Replay& replay) {
  std::string text = "{\"format\":\"mayfly-journal/1\"}\n";
  for (const std::string& line : replay.journal) text += line + "\n";
  return text;
}

TEST(Replay, IsTheSameToTheLastByteOfItsJournalForTheSameSeed) {
  const Fixture p3;
  for (const std::string& word : policy_names()) {
    ReplayOptions options{.policy = *policy_named(word), .seed = 5, .journal = true};
    if (options.policy == PolicyName::deadline) options.promise = {.samples = 5e6, .deadline = Hours(12)};
    const std::string first = journal_of(p3.run(options));
    EXPECT_EQ(first, journal_of(p3.run(options))) << word;
    EXPECT_GT(first.size(), 1'000u) << word;
  }
}

/// The commands that a controller gives when told a journal's events, as journal lines; ticks are in it.
std::vector<std::string> commands_again(const std::vector<std::string>& journal, Controller controller) {
  controller.keep_journal(true);
  std::vector<std::string> lines;
  for (const std::string& line : journal) {
    const auto told = event_in(line);
    if (!told) continue;
    for (std::string& record : controller.step(told->time, told->event).records) lines.push_back(std::move(record));
  }
  return lines;
}

// Without clock, trace or physics: the events alone decide.
TEST(Replay, JournalToldAgainGivesTheSameCommands) {
  const Fixture p3;
  for (const std::string& word : policy_names()) {
    ReplayOptions options{.policy = *policy_named(word), .journal = true};
    options.promise = {.samples = 12e6, .deadline = Hours(9), .budget = Usd{150}};
    const Replay replay = p3.run(options);
    int most = 0;
    for (const Change& change : p3.series.changes) most = std::max(most, change.available);
    Controller controller(p3.job.shapes,
                          make_policy(options.policy, p3.job.shapes, p3.job.costs,
                                      {.most_machines = std::min(most, p3.job.shapes.most_machines())}),
                          {.promise = options.promise, .most_machines = p3.job.shapes.most_machines()});
    EXPECT_EQ(commands_again(replay.journal, std::move(controller)), replay.journal) << word;
  }
}

TEST(Replay, JournalIsATraceOfItsMachines) {
  const Fixture p3;
  const Replay replay = p3.run({.policy = PolicyName::checkpoint, .journal = true});
  const auto trace = parse_trace(journal_of(replay), "journal");
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  ASSERT_EQ(trace->series.size(), 1u);
  const Series held = capped(p3.series, p3.job.shapes.most_machines());
  const TraceStats stats = trace_stats(trace->series[0], trace->duration, std::nullopt);
  EXPECT_EQ(stats.instances_preempted, replay.preemptions);
  for (const Change& change : held.changes)
    EXPECT_EQ(available_at(trace->series[0], change.time), change.available) << change.time.count();
}

TEST(Replay, SharesOfMachineTimeAddUpToTheMachines) {
  const Fixture p3;
  double machine_seconds = 0;
  const Series held = capped(p3.series, p3.job.shapes.most_machines());
  for (std::size_t i = 0; i < held.changes.size(); ++i) {
    const Seconds end = i + 1 < held.changes.size() ? held.changes[i + 1].time : p3.duration;
    machine_seconds += held.changes[i].available * (end - held.changes[i].time).count();
  }
  for (const PolicyName policy : {PolicyName::checkpoint, PolicyName::redundant, PolicyName::template_,
                                  PolicyName::reactive, PolicyName::persist, PolicyName::liveput, PolicyName::ideal}) {
    const Replay replay = p3.run({.policy = policy});
    EXPECT_NEAR(replay.machine_time.total() / machine_seconds, 1, 1e-9) << name(policy);
  }
}

TEST(Replay, NobodyTrainsMoreThanTheIdeal) {
  const Fixture p3;
  const double ideal = p3.run({.policy = PolicyName::ideal}).samples;
  for (const PolicyName policy :
       {PolicyName::checkpoint, PolicyName::redundant, PolicyName::reactive, PolicyName::persist, PolicyName::liveput})
    EXPECT_LT(p3.run({.policy = policy}).samples, ideal) << name(policy);
}

TEST(Replay, DearerMachinesNeverCostLess) {
  Fixture p3;
  p3.series.prices.clear();
  double before = 0;
  for (const double price : {0.3, 0.9, 0.91, 3.0}) {
    p3.job.spot = {price};
    const double cost = p3.run({.policy = PolicyName::reactive}).cost.value;
    EXPECT_GT(cost, before);
    before = cost;
  }
}

// 10 USD at 0.9 USD/h each: spent to the cent, and not a cent more.
TEST(Replay, StopsWhenTheBudgetIsSpent) {
  Fixture p3;
  p3.series.prices.clear();
  p3.job.spot = {0.9};
  for (const PolicyName policy : {PolicyName::reactive, PolicyName::persist, PolicyName::liveput}) {
    const Replay replay = p3.run({.policy = policy, .promise = {.budget = Usd{10}}});
    EXPECT_EQ(replay.finished, Finish::Why::budget) << name(policy);
    EXPECT_NEAR(replay.cost.value, 10, 1e-9) << name(policy);
    EXPECT_LT(replay.time, p3.duration);
  }
}

// 2 machines for two minutes at 6 and then 12 USD/h: 2 * (0.1 + 0.2) USD, whichever replay steps through them.
TEST(Replay, PaysTheTracesPricesByEventAndByInterval) {
  const Job job = job_of("parcae-bert");
  const Series series{.changes = {{.time = Seconds(0), .added = 2, .available = 2}},
                      .prices = {{Seconds(0), {6}}, {Seconds(60), {12}}}};
  const ReplayOptions options{.policy = PolicyName::persist};
  EXPECT_NEAR(replay(series, Seconds(120), job, options).cost.value, 0.6, 1e-9);
  EXPECT_NEAR(replay_by_interval(series, Seconds(120), job, options).cost.value, 0.6, 1e-9);
}

/// Up to three machines side by side, one sample a second each.
Job three_wide() {
  const Shapes shapes({{1, 1}, {2, 1}, {3, 1}}, {1, 2, 3});
  return {.shapes = shapes,
          .costs = MigrationCosts::constant(shapes, Seconds(0)),
          .type = "a",
          .spot = {1},
          .on_demand = UsdPerHour{10}};
}
Series machines_in(const std::string& zone, int count, std::vector<PricePoint> prices) {
  return {.type = "a",
          .zone = zone,
          .changes = {{.time = Seconds(0), .added = count, .available = count}},
          .prices = std::move(prices)};
}

// An hour: two machines in east at 1, then 4 USD/h, one in west at 2: (2 * 2.5 + 2) USD.
TEST(Replay, EverySeriesHasItsOwnPrices) {
  const Trace trace{.duration = Hours(1),
                    .series = {machines_in("east", 2, {{Seconds(0), {1}}, {Seconds(1800), {4}}}),
                               machines_in("west", 1, {{Seconds(0), {2}}})}};
  const Job job = three_wide();
  const Replay run = replay(scene_of(trace, job), job, {.policy = PolicyName::reactive});
  EXPECT_NEAR(run.cost.value, 7, 1e-9);
  EXPECT_NEAR(run.samples, 3 * 3600, 1e-6);
}

// Three of five are taken: two of west at 2 and one of east at 3. When west loses its two, east's others stand in.
TEST(Replay, TakesTheCheapestAndThenWhatIsLeft) {
  Series west = machines_in("west", 2, {{Seconds(0), {2}}});
  west.changes.push_back({.time = Seconds(1800), .removed = 2, .available = 0});
  const Trace trace{.duration = Hours(1), .series = {machines_in("east", 3, {{Seconds(0), {3}}}), west}};
  const Job job = three_wide();
  const Replay run = replay(scene_of(trace, job), job, {.policy = PolicyName::reactive});
  EXPECT_NEAR(run.cost.value, 0.5 * (2 * 2 + 3) + 0.5 * 9, 1e-9);
  EXPECT_EQ(run.preemptions, 2);
  EXPECT_NEAR(run.samples, 3 * 3600, 1e-6);
}

// Servers at 0.5 USD/h are paid while training lasts: one machine trains 3600 samples in an hour of two.
TEST(Replay, PaysServersUntilTheTarget) {
  Job job = three_wide();
  job.standing = {0.5};
  const Replay run =
      replay(machines_in("east", 1, {}), Hours(2), job, {.policy = PolicyName::reactive, .promise = {.samples = 3600}});
  EXPECT_TRUE(run.reached);
  EXPECT_NEAR(run.cost.value, 1.5, 1e-9);
  // By intervals the whole trace is replayed: a machine at 1 USD/h and the servers, for two hours.
  const Replay blind = replay_by_interval(machines_in("east", 1, {}), Hours(2), job,
                                          {.policy = PolicyName::persist, .sight = Sight::blind});
  EXPECT_NEAR(blind.cost.value, 3, 1e-9);
}

TEST(Replay, StopsAtTheTarget) {
  const Replay replay = Fixture().run({.policy = PolicyName::persist, .promise = {.samples = 1e6}});
  EXPECT_TRUE(replay.reached);
  EXPECT_NEAR(replay.samples, 1e6, 1e-3);
}

// The longest drought of the shipped trace lies within what 12 hours more than the pace of the market would need.
TEST(Replay, DeadlineIsMetWhereTheMarketAloneMissesIt) {
  const Fixture drought("drought", Hours(96));
  const Replay whole = drought.run({.policy = PolicyName::persist});
  const Promise promise{.samples = 1.1 * whole.samples, .deadline = Hours(90)};
  const Replay market = drought.run({.policy = PolicyName::persist, .promise = promise});
  const Replay kept = drought.run({.policy = PolicyName::deadline, .promise = promise});
  EXPECT_FALSE(market.reached);
  ASSERT_TRUE(kept.reached);
  EXPECT_LE(kept.time, *promise.deadline);
}

// A trace with fewer machines than the smallest shape needs: on demand does it alone.
TEST(Replay, DeadlineIsMetWithoutAnyMarket) {
  const Job job = job_of("parcae-bert");
  const Series series{.changes = {{.time = Seconds(0), .added = 1, .available = 1}}};
  const Promise promise{.samples = 1e5, .deadline = Hours(6)};
  const Replay kept = replay(series, Hours(6), job, {.policy = PolicyName::deadline, .promise = promise});
  EXPECT_TRUE(kept.reached);
}

/// The p3 trace as Parcae's files have it; totals of the same optimiser written independently.
struct Released {
  std::string model{};
  std::string profile{};
  double ideal = 0;
  double reactive = 0;
  double oracle = 0;
};
class ReleasedRun : public testing::TestWithParam<Released> {};

Series series_of(const std::vector<ParcaeChoice>& choices_made) {
  Series series;
  for (std::size_t i = 0; i < choices_made.size(); ++i) {
    const auto& choice = choices_made[i];
    if (choice.added == 0 && choice.removed == 0) continue;
    series.changes.push_back({.time = Seconds(60.0 * static_cast<double>(i)),
                              .added = choice.added,
                              .removed = choice.removed,
                              .available = choice.before + choice.added - choice.removed});
  }
  return series;
}

TEST_P(ReleasedRun, TotalsAndChoicesAreReproduced) {
  const auto choices = support::parcae_choices(GetParam().model);
  if (!choices) GTEST_SKIP() << "no released choices for " << GetParam().model << " in ../shared/data";
  const Series series = series_of(*choices);
  const Seconds duration(60.0 * static_cast<double>(choices->size()));
  const Job job = job_of(GetParam().profile);
  EXPECT_NEAR(replay(series, duration, job, {.policy = PolicyName::ideal}).samples / GetParam().ideal, 1, 1e-6);
  EXPECT_NEAR(replay(series, duration, job, {.policy = PolicyName::reactive}).samples / GetParam().reactive, 1, 1e-6);
  const Replay oracle =
      replay_by_interval(series, duration, job, {.sight = Sight::blind, .foresight = Foresight::oracle});
  EXPECT_NEAR(oracle.samples / GetParam().oracle, 1, 0.0005);
  int same = 0;
  ASSERT_EQ(oracle.moments.size(), choices->size());
  for (std::size_t i = 0; i < choices->size(); ++i) {
    const auto& truth = (*choices)[i].truth;
    same += oracle.moments[i].shape == Shape{truth[0], truth[1]} ? 1 : 0;
  }
  EXPECT_EQ(same, 683);
}

// The released file is one draw of the forecast's Poisson term; independent draws agreed with it 645 to 673 times.
TEST_P(ReleasedRun, ForecastChoicesAgreeAsFarAsTheDrawsAllow) {
  const auto choices = support::parcae_choices(GetParam().model);
  if (!choices) GTEST_SKIP() << "no released choices for " << GetParam().model << " in ../shared/data";
  const Replay predicted = replay_by_interval(series_of(*choices), Seconds(60.0 * 683), job_of(GetParam().profile),
                                              {.sight = Sight::blind, .foresight = Foresight::parcae});
  int same = 0;
  ASSERT_EQ(predicted.moments.size(), choices->size());
  for (std::size_t i = 0; i < choices->size(); ++i) {
    const auto& released = (*choices)[i].predict;
    same += predicted.moments[i].shape == Shape{released[0], released[1]} ? 1 : 0;
  }
  EXPECT_GE(same, 645);
}

// Shares of ideal, from docs/benchmarks.md#replay: blind persistence 95.03 / 94.69, oracle 97.26 / 97.23.
TEST_P(ReleasedRun, LiveputNeverTrainsLessThanPersistence) {
  const auto choices = support::parcae_choices(GetParam().model);
  if (!choices) GTEST_SKIP() << "no released choices for " << GetParam().model << " in ../shared/data";
  const Series series = series_of(*choices);
  const Seconds duration(60.0 * 683);
  const Job job = job_of(GetParam().profile);
  EXPECT_GE(replay(series, duration, job, {}).samples,
            replay(series, duration, job, {.policy = PolicyName::persist}).samples);
  const double persist =
      replay_by_interval(series, duration, job, {.policy = PolicyName::persist, .sight = Sight::blind}).samples;
  const double blind = replay_by_interval(series, duration, job, {.sight = Sight::blind}).samples;
  EXPECT_GE(blind - persist, 0.1 * (GetParam().oracle - persist));
}

INSTANTIATE_TEST_SUITE_P(Parcae, ReleasedRun,
                         testing::Values(Released{"bert", "parcae-bert", 18'585'497.6, 16'680'333.0, 18'075'307},
                                         Released{"resnet152", "parcae-resnet152", 95'231'958.5, 86'766'352.3,
                                                  92'596'482}),
                         [](const auto& run) { return run.param.model; });

}  // namespace
}  // namespace mayfly
