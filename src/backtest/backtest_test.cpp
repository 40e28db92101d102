#include "backtest/backtest.h"

#include <gtest/gtest.h>

#include "backtest/backtest_page.h"
#include "support/problems.h"
#include "trace/generate.h"

namespace mayfly {
namespace {

/// The spotDNN evaluation by an hour, on ten days in which p3 machines come and go, with prices.
struct Past10 {
  Profile profile = support::shipped_profile("spotdnn-resnet110");
  Catalog catalog = support::shipped_catalog("spotdnn");
  Trace trace{};
  PlanRequest request{.target = ToLoss{0.8}, .deadline = Hours(1), .frontier = false};
  BacktestOptions options{.confidence = 0.8, .starts = 24};

  explicit Past10(std::uint64_t seed = 1) {
    GeneratorOptions weather{.machines = 4, .duration = Hours(240)};
    weather.lifetime = ExponentialLife{.mean = Hours(3)};
    weather.rejoin = Hours(2);
    weather.gap = Seconds(300);
    weather.type = "p3.2xlarge";
    weather.seed = seed;
    trace = *generated_trace(weather);
    trace.series[0].prices = {{Seconds(0), {0.9}}, {Hours(100), {1.4}}, {Hours(180), {0.7}}};
    request.quota = {{"p3.2xlarge", 4}, {"*", 2}};
    request.spot_types = {"p3.2xlarge"};
  }
  Backtest run() const { return *backtest(profile, catalog, request, {trace}, options); }
};

/// What was known of a trace by then.
Trace until(const Trace& trace, Seconds end) {
  Trace known = trace;
  known.duration = end;
  for (Series& series : known.series) {
    std::erase_if(series.changes, [&](const Change& change) { return change.time >= end; });
    std::erase_if(series.prices, [&](const PricePoint& point) { return point.time >= end; });
    series.stays.clear();
  }
  return known;
}

/// Machines start, and cost something beside their hours.
void take_time_and_money(PlanRequest& request, Seconds start, Usd each) {
  request.start = [start](const InstanceType&) { return start; };
  request.beside = [each](const PlanOption& option) {
    double machines = 0;
    for (const PlanLine& line : option.cluster) machines += line.count;
    return machines * each;
  };
}

// As plan --trace --now --confidence says it with a trace that ends there: searched anew for each start.
TEST(Backtest, StatesWhatThePlannerWouldHaveStated) {
  Past10 past;
  take_time_and_money(past.request, Seconds(300), Usd{0.05});
  past.trace.series[0].stays.clear();
  const Backtest test = past.run();
  ASSERT_EQ(test.starts.size(), 24U);
  int spot = 0;
  for (const Start& start : test.starts) {
    const Trace known = until(past.trace, Seconds(start.time));
    PlanRequest request = past.request;
    request.confidence = past.options.confidence;
    request.risk =
        risk_on(past.profile, past.catalog, request, known,
                {.windows = 10, .now = known.duration, .prices = SpotPrices::as_traced, .all_may_come = true});
    const auto answer = *make_plan(past.profile, past.catalog, request);
    const auto* plan = std::get_if<Plan>(&answer);
    ASSERT_EQ(plan != nullptr, start.entrant.has_value());
    if (plan == nullptr) continue;
    const Entrant& chosen = test.histories[0].field.entrants[*start.entrant];
    EXPECT_EQ(plan->chosen.cluster, chosen.option.cluster) << start.time;
    EXPECT_NEAR(plan->chosen.risk->in_time->middle, start.promised, 1e-9);
    EXPECT_EQ(chosen.lead, Seconds(300));
    spot += chosen.needs_market() ? 1 : 0;
  }
  EXPECT_GT(spot, 5);
}

/// Two machines at most until `cut`, then `available` for good, at `price`.
Past10 followed_by(Seconds cut, int available, double price) {
  Past10 past;
  past.options.starts = 477;  // every half hour
  Series& series = past.trace.series[0];
  series = capped(series, 2);
  series.stays.clear();
  std::erase_if(series.changes, [&](const Change& change) { return change.time >= cut; });
  const int before = series.changes.back().available;
  series.changes.push_back({.time = cut,
                            .added = std::max(0, available - before),
                            .removed = std::max(0, before - available),
                            .available = available});
  series.prices = {{Seconds(0), {0.9}}, {cut, {price}}};
  return past;
}

// The market takes everything for good, or has more than it ever had.
TEST(Backtest, KnowsNothingOfTheFuture) {
  const Seconds cut = Hours(120);
  const Backtest one = followed_by(cut, 0, 9).run(), other = followed_by(cut, 4, 0.1).run();
  bool differs = false;
  int promises = 0;
  for (std::size_t i = 0; i < one.starts.size(); ++i) {
    const Start& a = one.starts[i];
    const Start& b = other.starts[i];
    if (a.time >= cut.count()) {
      differs = differs || a.promised != b.promised;
      continue;
    }
    EXPECT_EQ(a.entrant, b.entrant) << a.time;
    EXPECT_NEAR(a.promised, b.promised, 1e-9) << a.time;
    promises += a.entrant && one.histories[0].field.entrants[*a.entrant].needs_market() ? 1 : 0;
  }
  EXPECT_TRUE(differs);
  EXPECT_GT(promises, 20);
}

TEST(Backtest, SameSeedSameAnswer) {
  const Past10 past;
  EXPECT_EQ(past.run().starts, past.run().starts);
}

TEST(Backtest, WantsADeadlineToLearnFromAndOneToTry) {
  Past10 past;
  past.request.deadline = Hours(121);
  const auto test = backtest(past.profile, past.catalog, past.request, {past.trace}, past.options);
  ASSERT_FALSE(test);
  EXPECT_NE(test.error().message.find("lasts 10d: want at least 10d2h"), std::string::npos) << test.error().message;
}

// On the market alone nothing keeps it with 99.9 %: every start is counted, none has a plan, and there is no money.
TEST(Backtest, NoPlanIsAnAnswer) {
  Past10 past;
  past.request.markets = {Market::spot};
  past.options.confidence = 0.999;
  const Summary summary = summary_of(past.run());
  EXPECT_EQ(summary.starts, 24);
  EXPECT_EQ(summary.planned, 0);
  EXPECT_FALSE(summary.promises);
  EXPECT_EQ(summary.compared, 0);
}

TEST(Backtest, PageStandsAlone) {
  const Past10 past;
  const Backtest test = past.run();
  const Summary summary = summary_of(test);
  const std::string page =
      backtest_html({.job = "<b>", .target = "loss 0.8", .test = test, .summary = summary, .options = past.options});
  EXPECT_NE(page.find("&lt;b&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_NE(page.find("Promised against kept"), std::string::npos);
}

// Four promises a day, all kept on one and none on the other: a half, but worth one promise, not eight. Deviation from
// the half: 2 a day, 8 in squares; variance 8 / 8^2 x 2 / 1 = 0.25 = 0.5 x 0.5 / 1. Wilson with n = 1: 0.5 -+ 1.96 / (1
// + 1.96^2) x sqrt(0.25 + 1.96^2 / 4).
TEST(Calibration, CountsDays) {
  std::vector<Statement> statements;
  for (int i = 0; i < 4; ++i) {
    statements.push_back({.chance = 0.6, .day = 1, .kept = true});
    statements.push_back({.chance = 0.8, .day = 2, .kept = false});
  }
  const Calibration both = calibration_of(statements);
  EXPECT_EQ(both.promises, 8);
  EXPECT_EQ(both.days, 2);
  EXPECT_NEAR(both.promised, 0.7, 1e-12);
  EXPECT_NEAR(both.kept, 0.5, 1e-12);
  EXPECT_NEAR(both.low, 0.0546, 1e-4);
  EXPECT_NEAR(both.high, 0.9454, 1e-4);
  EXPECT_EQ(calibration_of(statements, 0.7, 0.9).kept_count, 0);
}

// 100 h there, 50 h not, at 1 and 2 USD/h; a job of an hour. Its machine is ordered at 99.25 h and trains from 99.5 h:
// half of the job is done at once, the rest when the machine is back, at 150 h. All of it is at 1 USD/h but the last
// half. A quarter of an hour at the plan's price comes before, and 0.25 USD beside.
TEST(Backtest, JobsGoOnAsTheTraceDid) {
  const Trace trace{.name = "made",
                    .duration = Hours(200),
                    .series = {{.type = "p3.2xlarge",
                                .changes = {{.time = Seconds(0), .added = 1, .available = 1},
                                            {.time = Hours(100), .removed = 1, .available = 0},
                                            {.time = Hours(150), .added = 1, .available = 1}},
                                .prices = {{Seconds(0), {1}}, {Hours(150), {2}}}}}};
  Past10 past;
  past.trace = trace;
  past.profile.recovery = Seconds(0);
  past.request.quota = {{"p3.2xlarge", 1}, {"*", 0}};
  past.request.markets = {Market::spot};
  past.request.servers = {};
  past.request.target = ForEpochs{200};
  past.request.deadline = Hours(2);
  take_time_and_money(past.request, Seconds(900), Usd{0.25});
  past.options = {.confidence = 0.5, .starts = 785};  // every quarter of an hour from 2 h to 198 h
  const Backtest test = past.run();
  ASSERT_EQ(test.starts.size(), 785U);
  const Start& start = test.starts[389];
  ASSERT_NEAR(start.time, 99.25 * 3600, 1e-6);
  ASSERT_TRUE(start.entrant);
  const Entrant& plan = test.histories[0].field.entrants[*start.entrant];
  const double work = (plan.option.time - 900) * start.error;  // s
  ASSERT_GT(work, 1800);
  const RuleRun& run = *start.runs[0];
  EXPECT_FALSE(start.kept);
  EXPECT_NEAR(run.time, 50.75 * 3600 + work - 1800, 1e-3);
  // Before: half an hour at 1 USD/h, after: the rest at 2; what stands by, its servers, is paid throughout.
  const double servers = plan.option.hourly - plan.option.cluster[0].rate.value;
  const double before = plan.option.hourly / 4 + 0.25;
  EXPECT_NEAR(run.cost, before + 0.5 + 2 * (work - 1800) / 3600 + servers * (run.time - 900) / 3600, 1e-4);
}

}  // namespace
}  // namespace mayfly
