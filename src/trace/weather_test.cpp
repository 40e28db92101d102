#include "trace/weather.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace mayfly {
namespace {

/// A size from probabilities by size.
int drawn(Rng& rng, const std::vector<double>& sizes) {
  double rest = rng.uniform();
  for (std::size_t size = 1; size + 1 < sizes.size(); ++size) {
    rest -= sizes[size];
    if (rest < 0) return static_cast<int>(size);
  }
  return static_cast<int>(sizes.size()) - 1;
}

// A loss has chance 0.4 in the interval after a loss and 0.05 otherwise, and takes 1, 2 or 3 alike; an arrival, if
// there is no loss, 0.1 and brings 2. 200,000 intervals: some 17,000 in the rarest state, so the standard error is
// below 0.004.
TEST(Weather, LearnsTheRatesOfItsProcess) {
  Weather weather(40, 2);
  Rng rng(1);
  for (int k = 0; k < 200'000; ++k) {
    Outlook event;
    if (rng.chance(weather.mode() == 1 ? 0.4 : 0.05)) {
      event.removed = 1 + rng.below(3);
    } else if (rng.chance(0.1)) {
      event.added = 2;
    }
    weather.observe(20, event);
  }
  for (int mode = 0; mode < weather.modes(); ++mode) {
    const double lose = mode == 1 ? 0.4 : 0.05;
    EXPECT_NEAR(weather.rates(mode).first, lose, 0.016) << mode;
    EXPECT_NEAR(weather.rates(mode).second, (1 - lose) * 0.1, 0.01) << mode;
  }
  const auto sizes = weather.loss_sizes(20);
  for (std::size_t k = 1; k <= 3; ++k) EXPECT_NEAR(sizes[k], 1.0 / 3, 0.02);
  EXPECT_NEAR(weather.arrival_sizes(20)[2], 1, 0.01);
}

// Nothing seen: one event in 60 intervals. A quiet hour halves it: 1 / 120 pooled, and the state the hour was spent in
// has (10 / 120) / (60 + 10) of its own.
TEST(Weather, StartsFromOneEventInSixtyIntervals) {
  Weather weather(8);
  EXPECT_DOUBLE_EQ(weather.rates(0).first, 1.0 / 60);
  EXPECT_DOUBLE_EQ(weather.rates(3).second, 1.0 / 60);
  for (int k = 0; k < 60; ++k) weather.observe(4, {});
  EXPECT_DOUBLE_EQ(weather.rates(3).first, 1.0 / 120);
  EXPECT_DOUBLE_EQ(weather.rates(0).first, 10.0 / 120 / 70);
}

// Memory 2: state 0 is calm, 1 and 2 follow a loss, 3 and 4 an arrival. A loss outweighs an arrival.
TEST(Weather, StateIsTheTimeSinceTheLastEvent) {
  Weather weather(9, 2);
  ASSERT_EQ(weather.modes(), 5);
  const struct {
    Outlook seen;
    int mode;
  } steps[] = {{{0, 0}, 0}, {{0, 1}, 1}, {{0, 0}, 2}, {{0, 0}, 0}, {{3, 0}, 3}, {{0, 0}, 4}, {{2, 0}, 3},
               {{1, 1}, 1}, {{0, 2}, 1}, {{0, 0}, 2}, {{1, 0}, 3}, {{0, 0}, 4}, {{0, 0}, 0}};
  for (const auto& step : steps) {
    EXPECT_EQ(weather.next_mode(weather.mode(), step.seen), step.mode);
    weather.observe(5, step.seen);
    EXPECT_EQ(weather.mode(), step.mode);
  }
  EXPECT_EQ(weather.events(), 7);  // three losses, four arrivals: {1, 1} is one of each
  Weather forgetful(9, 0);
  forgetful.observe(5, {0, 1});
  EXPECT_EQ(forgetful.modes(), 1);
  EXPECT_EQ(forgetful.mode(), 0);
}

Weather stormy(std::uint64_t seed, int most) {
  Weather weather(most, 3);
  Rng rng(seed);
  int machines = most;
  for (int k = 0; k < 300; ++k) {
    Outlook event;
    if (rng.chance(0.2)) {
      event.removed = rng.chance(0.1) ? machines : rng.below(std::min(machines, 15) + 1);
    } else if (rng.chance(0.3)) {
      event.added = rng.below(most - machines + 1);
    }
    weather.observe(machines, event);
    machines += event.added - event.removed;
  }
  return weather;
}

TEST(Weather, SizesSumToOne) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Weather weather = stormy(seed, 24);
    for (int n = 0; n <= 24; ++n) {
      const auto losses = weather.loss_sizes(n);
      const auto arrivals = weather.arrival_sizes(n);
      ASSERT_EQ(losses.size(), static_cast<std::size_t>(n) + 1);
      ASSERT_EQ(arrivals.size(), static_cast<std::size_t>(24 - n) + 1);
      EXPECT_NEAR(std::accumulate(losses.begin(), losses.end(), 0.0), n > 0 ? 1 : 0, 1e-12);
      EXPECT_NEAR(std::accumulate(arrivals.begin(), arrivals.end(), 0.0), n < 24 ? 1 : 0, 1e-12);
      EXPECT_EQ(losses[0], 0);
    }
  }
}

// One event took all of 6: of 3 prior and seen events in all, a third; the rest is 2/3 of 1/2, 1/4, 1/8, ... and what
// exceeds three machines counts as three: 1/3, 1/6, 1/6 + 1/3.
TEST(Weather, ALossOfAllIsALossOfAllAtAnyCount) {
  Weather weather(8);
  weather.observe(6, {0, 6});
  const auto sizes = weather.loss_sizes(3);
  EXPECT_NEAR(sizes[1], 1.0 / 3, 1e-12);
  EXPECT_NEAR(sizes[2], 1.0 / 6, 1e-12);
  EXPECT_NEAR(sizes[3], 0.5, 1e-12);
}

TEST(Weather, AFullClusterExpectsNoArrivals) {
  Weather weather(8);
  for (int k = 0; k < 1000; ++k) weather.observe(8, {});
  // Where none could have come, none having come teaches nothing.
  EXPECT_DOUBLE_EQ(weather.rates(0).second, 1.0 / 60);
  EXPECT_EQ(weather.arrival_sizes(8), std::vector<double>{0});
  const auto next = weather.distribution(8, 1)[0];
  EXPECT_NEAR(next[8], 1 - weather.rates(0).first, 1e-12);
  // Nor does an empty one expect losses.
  EXPECT_NEAR(weather.distribution(0, 1)[0][0], 1 - weather.rates(0).second, 1e-12);
}

// 20,000 runs of 8 intervals drawn by the rates and sizes themselves; each count's share within 4.5 standard errors.
TEST(Weather, DistributionIsThatOfItsRunsOut) {
  const Weather weather = stormy(3, 12);
  constexpr int kIntervals = 8;
  constexpr int kRuns = 20'000;
  const auto rows = weather.distribution(9, kIntervals);
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(kIntervals));
  std::vector<std::vector<double>> shares(kIntervals, std::vector<double>(13, 0));
  Rng rng(4);
  for (int run = 0; run < kRuns; ++run) {
    int mode = weather.mode();
    int machines = 9;
    for (int k = 0; k < kIntervals; ++k) {
      const auto [lose, gain] = weather.rates(mode);
      const double draw = rng.uniform();
      Outlook event;
      if (machines > 0 && draw < lose) {
        event.removed = drawn(rng, weather.loss_sizes(machines));
      } else if (machines < 12 && draw > 1 - gain) {
        event.added = drawn(rng, weather.arrival_sizes(machines));
      }
      mode = weather.next_mode(mode, event);
      machines += event.added - event.removed;
      shares[static_cast<std::size_t>(k)][static_cast<std::size_t>(machines)] += 1.0 / kRuns;
    }
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    EXPECT_NEAR(std::accumulate(rows[k].begin(), rows[k].end(), 0.0), 1, 1e-12);
    for (std::size_t n = 0; n < rows[k].size(); ++n)
      EXPECT_NEAR(shares[k][n], rows[k][n], 4.5 * std::sqrt(rows[k][n] * (1 - rows[k][n]) / kRuns) + 1e-4)
          << k << " " << n;
  }
}

}  // namespace
}  // namespace mayfly
