#include "trace/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace mayfly {
namespace {

/// What a trace turned out to have, counted here so that the generator is not checked by its own terms.
struct Measured {
  double mean_available = 0;
  int events = 0;
  double share_multi = 0;
  double share_to_zero = 0;
  double mean_multi = 0;
  double mean_life = 0;  ///< hours held per preemption
  std::vector<double> lives{};
  std::array<double, 24> lost_per_machine_hour{};
};
Measured measured(const Trace& trace, const Series& series) {
  Measured m;
  std::array<double, 24> held{};
  double hours = 0;
  double removed = 0;
  double removed_multi = 0;
  for (std::size_t i = 0; i < series.changes.size(); ++i) {
    const Change& change = series.changes[i];
    const double end = i + 1 < series.changes.size() ? series.changes[i + 1].time.count() : trace.duration.count();
    for (double t = change.time.count(); t < end;) {
      const double next = std::min(end, (std::floor(t / 3600) + 1) * 3600);
      held[static_cast<std::size_t>(t / 3600) % 24] += change.available * (next - t) / 3600;
      t = next;
    }
    hours += change.available * (end - change.time.count()) / 3600;
    if (change.removed == 0) continue;
    ++m.events;
    removed += change.removed;
    m.share_to_zero += change.available - change.added == 0 ? 1 : 0;
    m.share_multi += change.removed > 1 ? 1 : 0;
    removed_multi += change.removed > 1 ? change.removed : 0;
    // The step before a change is when its losses happened.
    m.lost_per_machine_hour[static_cast<std::size_t>((change.time.count() - 1) / 3600) % 24] += change.removed;
  }
  m.mean_available = hours / Hours(trace.duration).count();
  m.mean_life = hours / removed;
  m.mean_multi = removed_multi / m.share_multi;
  m.share_multi /= m.events;
  m.share_to_zero /= m.events;
  for (std::size_t h = 0; h < 24; ++h) m.lost_per_machine_hour[h] /= held[h];
  for (const Stay& stay : series.stays)
    if (stay.preempted) m.lives.push_back((stay.end - stay.begin).count() / 3600);
  return m;
}
double share_below(const std::vector<double>& values, double most) {
  const auto below = std::count_if(values.begin(), values.end(), [&](double value) { return value <= most; });
  return static_cast<double>(below) / static_cast<double>(values.size());
}
const GeneratorOptions& preset(const std::string& name) {
  return std::find_if(presets().begin(), presets().end(), [&](const Preset& p) { return p.name == name; })->options;
}

TEST(GeneratedTrace, IsWhatATraceMustBe) {
  for (const Preset& p : presets()) {
    GeneratorOptions options = p.options;
    options.zones = {"a", "b"};
    options.price = UsdPerHour{0.9};
    options.price_volatility = 0.2;
    const Trace trace = *generated_trace(options);
    ASSERT_EQ(trace.series.size(), 2U);
    EXPECT_NE(trace.series[0].changes, trace.series[1].changes);
    for (const Series& series : trace.series) {
      int available = 0;
      Seconds last{-1};
      for (const Change& change : series.changes) {
        EXPECT_GT(change.time, last);
        last = change.time;
        available += change.added - change.removed;
        ASSERT_EQ(change.available, available);
        ASSERT_LE(available, options.machines);
        ASSERT_GE(available, 0);
      }
      EXPECT_LT(last, trace.duration);
      // The stays say the same as the changes.
      std::map<Seconds, int> steps;
      for (const Stay& stay : series.stays) {
        ASSERT_LT(stay.begin, stay.end);
        ++steps[stay.begin];
        if (stay.preempted) --steps[stay.end];
      }
      for (const Change& change : series.changes) ASSERT_EQ(steps[change.time], change.added - change.removed);
      EXPECT_EQ(series.prices.front().time, Seconds(0));
    }
  }
}
TEST(GeneratedTrace, SameSeedSameTrace) {
  GeneratorOptions options = preset("p3");
  options.duration = Hours(24);
  EXPECT_EQ(*generated_trace(options), *generated_trace(options));
  GeneratorOptions other = options;
  other.seed = 2;
  EXPECT_NE(*generated_trace(options), *generated_trace(other));
}

// Half a year of the p3 preset: some 30,000 events. Asked: lives of 1.636 h, 50.6 % of events take several, 3.2 on
// average, 24.0 machines held.
TEST(GeneratedTrace, HasTheStatisticsAskedFor) {
  GeneratorOptions options = preset("p3");
  options.duration = Hours(24 * 180);
  const Trace trace = *generated_trace(options);
  const Measured m = measured(trace, trace.series[0]);
  EXPECT_NEAR(m.mean_life, 1.636, 0.01 * 1.636);
  EXPECT_NEAR(m.share_multi, 40.0 / 79, 0.01);
  EXPECT_NEAR(m.mean_multi, 3.2, 0.05);
  EXPECT_LT(m.share_to_zero, 0.001);
  EXPECT_NEAR(m.mean_available, 24.0, 0.24);
  for (const double hours : {0.5, 1.0, 2.0, 5.0})
    EXPECT_NEAR(share_below(m.lives, hours), dead_by(options.lifetime, Hours(hours)), 0.01) << hours;
}
TEST(GeneratedTrace, TakesAllAsOftenAsAsked) {
  const GeneratorOptions options{.machines = 8,
                                 .duration = Hours(24 * 365 * 4),
                                 .lifetime = ExponentialLife{Hours(10)},
                                 .share_multi = 0.4,
                                 .mean_multi = 2.5,
                                 .share_to_zero = 0.1,
                                 .rejoin = Hours(0.25)};
  const Trace trace = *generated_trace(options);
  const Measured m = measured(trace, trace.series[0]);
  EXPECT_NEAR(m.share_to_zero, 0.1, 0.01);
  EXPECT_NEAR(m.share_multi, 0.4, 0.015);
  EXPECT_NEAR(m.mean_life, 10, 0.2);
}
// Danger in the 12 hours from noon three times that of the others: 1.5 and 0.5 of the mean rate, one in 5 h.
TEST(GeneratedTrace, LosesByTheHour) {
  GeneratorOptions options{.duration = Hours(24 * 365), .lifetime = ExponentialLife{Hours(5)}};
  for (std::size_t hour = 0; hour < 24; ++hour) options.hours[hour] = hour < 12 ? 1 : 3;
  const Trace trace = *generated_trace(options);
  const Measured m = measured(trace, trace.series[0]);
  for (std::size_t hour = 0; hour < 24; ++hour)
    EXPECT_NEAR(m.lost_per_machine_hour[hour], hour < 12 ? 0.1 : 0.3, hour < 12 ? 0.01 : 0.02) << hour;
}
// SciSpot's F at 1, 3, 12, 22 and 23 h is .27751 .39894 .41370 .44347 .52468, and .82740 at 24 h, where lives end.
TEST(GeneratedTrace, BathtubLivesFollowTheirCurve) {
  GeneratorOptions options = preset("bathtub");
  options.duration = Hours(24 * 180);
  const Trace trace = *generated_trace(options);
  const Measured m = measured(trace, trace.series[0]);
  const std::vector<std::pair<double, double>> curve{
      {1, .27751}, {3, .39894}, {12, .41370}, {22, .44347}, {23, .52468}};
  for (const auto& [hours, dead] : curve) {
    EXPECT_NEAR(dead_by(options.lifetime, Hours(hours)), dead / .82740, 1e-5);
    EXPECT_NEAR(share_below(m.lives, hours), dead / .82740, 0.015) << hours;
  }
  EXPECT_EQ(share_below(m.lives, 24), 1);
}
// Grouped losses must not change how long machines live, even where the danger lies with the young and the old.
TEST(GeneratedTrace, GroupedLossesKeepTheLives) {
  GeneratorOptions options = preset("bathtub");
  options.duration = Hours(24 * 180);
  options.share_multi = 0.5;
  const Trace trace = *generated_trace(options);
  const Measured m = measured(trace, trace.series[0]);
  for (const double hours : {1.0, 3.0, 12.0, 23.0})
    EXPECT_NEAR(share_below(m.lives, hours), dead_by(options.lifetime, Hours(hours)), 0.02) << hours;
}
// CM-DARE's V100: 38 of 120 gone in the first hour, 49 in two, 60 in four. The weights of the hours of day stretch and
// squeeze lives, so the ages follow loosely; the hours without a loss there have none but those of the 24-hour limit.
TEST(GeneratedTrace, LifeTableFollowsAgeAndHour) {
  GeneratorOptions options = preset("gcp-v100");
  options.duration = Hours(24 * 180);
  options.hours.fill(1);
  const Trace even = *generated_trace(options);
  const Measured by_age = measured(even, even.series[0]);
  for (const auto& [hours, dead] : std::vector<std::pair<double, int>>{{1, 38}, {2, 49}, {4, 60}, {23, 67}})
    EXPECT_NEAR(share_below(by_age.lives, hours), dead / 120.0, 0.015) << hours;
  const Trace trace = *generated_trace(preset("gcp-v100"));
  for (const Stay& stay : trace.series[0].stays) {
    const double hour = std::fmod((stay.end.count() - 1) / 3600, 24);
    if (!stay.preempted || hour < 16 || hour >= 21) continue;
    EXPECT_NEAR((stay.end - stay.begin).count(), 86400, 61);
  }
}
TEST(GeneratedTrace, DroughtsEmptyTheZoneAndEnd) {
  GeneratorOptions options{.machines = 10,
                           .duration = Hours(24 * 365),
                           .lifetime = ExponentialLife{Hours(1e6)},
                           .rejoin = Seconds(60),
                           .droughts_per_day = 0.5,
                           .drought_length = Hours(3),
                           .drought_level = 2};
  const Trace trace = *generated_trace(options);
  const Measured m = measured(trace, trace.series[0]);
  // Droughts start while there is none: 0.5 a day outside, 3 h each, so one in 2 days and 3 h.
  EXPECT_NEAR(m.events, 365 / (2 + 3.0 / 24), 30);
  EXPECT_NEAR(m.mean_available, 10 - 8 * 3.0 / 51, 0.12);
  for (const Change& change : trace.series[0].changes) EXPECT_GE(change.available, 2);
}
// Gaps of ten minutes in which 32 machines of 1.6 h lose 3 on average: the lives still come out.
TEST(GeneratedTrace, CoarseGapsKeepTheRate) {
  GeneratorOptions options = preset("p3");
  options.gap = Seconds(600);
  options.duration = Hours(24 * 180);
  const Trace trace = *generated_trace(options);
  EXPECT_NEAR(measured(trace, trace.series[0]).mean_available, 24.0, 0.4);
}
TEST(GeneratedTrace, PricesRevertToTheirMean) {
  const GeneratorOptions options{.machines = 1,
                                 .duration = Hours(24 * 3650),
                                 .gap = Seconds(3600),
                                 .price = UsdPerHour{0.9},
                                 .price_volatility = 0.2};
  const Trace trace = *generated_trace(options);
  const auto& points = trace.series[0].prices;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Seconds end = i + 1 < points.size() ? points[i + 1].time : trace.duration;
    const double hours = Hours(end - points[i].time).count();
    sum += hours * points[i].price.value;
    squares += hours * std::pow(std::log(points[i].price.value), 2);
  }
  const double all = Hours(trace.duration).count();
  EXPECT_NEAR(sum / all, 0.9, 0.01);
  // The logarithm has mean ln 0.9 - 0.2^2/2 and deviation 0.2.
  EXPECT_NEAR(squares / all, 0.04 + std::pow(std::log(0.9) - 0.02, 2), 0.004);
}
TEST(GeneratedTrace, RefusesWhatMakesNoProcess) {
  EXPECT_FALSE(generated_trace({.machines = 0}));
  EXPECT_FALSE(generated_trace({.duration = Seconds(10)}));
  EXPECT_FALSE(generated_trace({.gap = Seconds(0)}));
  EXPECT_FALSE(generated_trace({.lifetime = ExponentialLife{Seconds(0)}}));
  EXPECT_FALSE(generated_trace({.lifetime = LifeTable{3, {2, 2}}}));
  EXPECT_FALSE(generated_trace({.lifetime = BathtubLife{.b = Seconds(1e12)}}));
  EXPECT_FALSE(generated_trace({.duration = Seconds(1e12)}));
  EXPECT_FALSE(generated_trace({.machines = 10000, .lifetime = ExponentialLife{Seconds(1e-3)}}));
  EXPECT_FALSE(generated_trace({.share_multi = 0.2, .share_to_zero = 0.3}));
  EXPECT_FALSE(generated_trace({.price = UsdPerHour{-1}}));
}

}  // namespace
}  // namespace mayfly
