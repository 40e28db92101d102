#include "plan/liveput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "plan/lookahead.h"
#include "support/pipelines.h"
#include "support/problems.h"

namespace mayfly {
namespace {

struct Way {
  int mode;
  Outlook event;
  double probability;
};
/// Every way an interval may go.
std::vector<Way> ways(const Weather& weather, int mode, int machines) {
  const auto [lose, gain] = weather.rates(mode);
  const double l = machines > 0 ? lose : 0;
  const double g = machines < weather.most() ? gain : 0;
  std::vector<Way> all{{weather.next_mode(mode, {}), {}, 1 - l - g}};
  const auto losses = weather.loss_sizes(machines);
  for (int k = 1; k <= machines; ++k)
    all.push_back({weather.next_mode(mode, {0, k}), {0, k}, l * losses[static_cast<std::size_t>(k)]});
  const auto arrivals = weather.arrival_sizes(machines);
  for (int k = 1; k <= weather.most() - machines; ++k)
    all.push_back({weather.next_mode(mode, {k, 0}), {k, 0}, g * arrivals[static_cast<std::size_t>(k)]});
  return all;
}

/// The definition, by recursion: the best (after, or before the event) of all choices at each of the intervals to come.
class Expectimax {
 public:
  Expectimax(const Shapes& shapes, const MigrationCosts& costs, const Weather& weather, Sight sight)
      : shapes_(shapes), costs_(costs), weather_(weather), sight_(sight) {}

  double value(int intervals, int mode, int machines, int shape) const {
    if (intervals == 0) return 0;
    if (sight_ == Sight::informed) {
      double sum = 0;
      for (const Way& way : ways(weather_, mode, machines)) {
        const int after = machines + way.event.added - way.event.removed;
        double most = -INFINITY;
        for (int to = 0; to < shapes_.size(); ++to) {
          if (shapes_[to].machines() <= after) most = std::max(most, taking(intervals, way, machines, shape, to));
        }
        if (std::isinf(most)) most = value(intervals - 1, way.mode, after, shapes_.size());
        sum += way.probability * most;
      }
      return sum;
    }
    double most = -INFINITY;
    for (int plan = 0; plan <= shapes_.size(); ++plan) {
      if (plan == shapes_.size() && shape != shapes_.size()) continue;  // no plan is to stop
      double sum = 0;
      for (const Way& way : ways(weather_, mode, machines)) {
        const int after = machines + way.event.added - way.event.removed;
        const auto to = plan < shapes_.size() ? fitted(shapes_, plan, after) : std::nullopt;
        sum += way.probability * (to ? taking(intervals, way, machines, shape, *to)
                                     : value(intervals - 1, way.mode, after, shapes_.size()));
      }
      most = std::max(most, sum);
    }
    return most;
  }

 private:
  double taking(int intervals, const Way& way, int machines, int shape, int to) const {
    const int after = machines + way.event.added - way.event.removed;
    const auto from = shape == shapes_.size() ? std::nullopt : std::optional(shape);
    return shapes_.speed(to) * (60 - costs_.expected(machines, from, way.event.removed, to).count()) +
           value(intervals - 1, way.mode, after, to);
  }

  const Shapes& shapes_;
  const MigrationCosts& costs_;
  const Weather& weather_;
  Sight sight_;
};

Weather random_weather(Rng& rng, int most) {
  Weather weather(most, 2);
  int machines = rng.below(most + 1);
  for (int k = 0; k < 30; ++k) {
    Outlook event;
    if (rng.chance(0.3)) {
      event.removed = rng.below(machines + 1);
    } else if (rng.chance(0.4)) {
      event.added = rng.below(most - machines + 1);
    }
    weather.observe(machines, event);
    machines += event.added - event.removed;
  }
  return weather;
}

// Values of every state, and of the choice taken, against the definition. Shapes of up to four machines.
TEST(Liveput, ValuesAreThoseOfTheDefinition) {
  const std::vector<std::vector<Shape>> tables{{{1, 1}, {2, 2}}, {{1, 1}, {1, 2}, {3, 1}}, {{1, 2}, {2, 1}, {4, 1}}};
  for (const Sight sight : {Sight::informed, Sight::blind}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Rng rng(seed);
      const auto& table = tables[seed % tables.size()];
      std::vector<double> speeds;
      for (const Shape& shape : table) speeds.push_back(shape.machines() * (0.5 + rng.uniform()));
      const Shapes shapes(table, speeds);
      const auto costs = *MigrationCosts::make(support::random_pipeline(rng, 0.3), shapes);
      const Weather weather = random_weather(rng, 4);
      Liveput liveput(shapes, costs, 4, {.sight = sight, .horizon = 3, .keep = 0});
      liveput.learn(weather);
      const Expectimax definition(shapes, costs, weather, sight);
      for (int mode = 0; mode < weather.modes(); ++mode) {
        for (int n = 0; n <= 4; ++n) {
          for (int shape = 0; shape <= shapes.size(); ++shape) {
            if (shape < shapes.size() && shapes[shape].machines() > n) continue;
            ASSERT_NEAR(liveput.value(mode, n, shape), definition.value(3, mode, n, shape), 1e-9)
                << "seed " << seed << " mode " << mode << " machines " << n << " shape " << shape;
          }
        }
      }
    }
  }
}

// After a million quiet intervals an event is expected once in a million.
Weather quiet_weather(int most) {
  Weather weather(most);
  for (int k = 0; k < 1'000'000; ++k) weather.observe(most / 2, {});
  return weather;
}
// Liveput looks at the interval of the event and `horizon` more.
TEST(Liveput, InQuietWeatherChoosesAsIfNothingWereToHappen) {
  const Weather weather = quiet_weather(16);
  for (const char* name : {"parcae-bert", "parcae-resnet152"}) {
    const Profile profile = support::shipped_profile(name);
    const Shapes shapes = *pipeline_shapes(profile);
    const auto costs = *MigrationCosts::make(profile, shapes);
    Liveput liveput(shapes, costs, 16, {.horizon = 5, .keep = 0});
    liveput.learn(weather);
    for (const int machines : {7, 10, 13, 16}) {
      for (const Outlook event : {Outlook{0, 0}, Outlook{0, 3}, Outlook{3, 0}}) {
        if (machines + event.added > 16) continue;
        std::vector<Outlook> outlook(6);
        outlook[0] = event;
        for (int shape = 0; shape < shapes.size(); ++shape) {
          if (shapes[shape].machines() > machines) continue;
          const auto ahead = look_ahead(shapes, costs, Seconds(60), {machines, shape}, outlook);
          EXPECT_EQ(liveput.choice(0, machines, shape, event), ahead) << name << " " << machines << " " << shape;
        }
      }
    }
  }
}

// 2 x 1 trains at 11/s, 1 x 1 at 10/s, and a change costs 30 s, 330 samples: it pays after 330 / 60 = 5.5 intervals. In
// quiet weather there are 13; where the second machine leaves every other interval it never does.
TEST(Liveput, ChangesOnlyIfItPaysBeforeTheNextEvent) {
  const Shapes shapes({{1, 1}, {2, 1}}, {10, 11});
  const auto costs = MigrationCosts::constant(shapes, Seconds(30));
  Liveput liveput(shapes, costs, 2, {});
  Weather quiet(2);
  for (int k = 0; k < 1000; ++k) quiet.observe(1, {});
  liveput.learn(quiet);
  EXPECT_EQ(liveput.choice(quiet.next_mode(0, {1, 0}), 1, 0, {1, 0}), 1);
  Weather storm(2);
  for (int k = 0; k < 1000; ++k) storm.observe(k % 2 == 0 ? 1 : 2, k % 2 == 0 ? Outlook{1, 0} : Outlook{0, 1});
  liveput.learn(storm);
  EXPECT_EQ(liveput.choice(storm.next_mode(0, {1, 0}), 1, 0, {1, 0}), 0);
  Liveput blind(shapes, costs, 2, {.sight = Sight::blind});
  blind.learn(quiet);
  EXPECT_EQ(blind.blind_choice(0, 2, 0), 1);
  blind.learn(storm);
  EXPECT_EQ(blind.blind_choice(storm.next_mode(0, {1, 0}), 2, 0), 0);
}

// Both train at 10/s and changing is free.
TEST(Liveput, OfEqualsItStays) {
  const Shapes shapes({{1, 2}, {2, 1}}, {10, 10});
  const auto costs = MigrationCosts::constant(shapes, Seconds(0));
  for (const Sight sight : {Sight::informed, Sight::blind}) {
    Liveput liveput(shapes, costs, 2, {.sight = sight});
    liveput.learn(Weather(2));
    for (const int shape : {0, 1}) {
      EXPECT_EQ(sight == Sight::informed ? liveput.choice(0, 2, shape, {}) : liveput.blind_choice(0, 2, shape), shape);
    }
  }
}

TEST(Liveput, HasNoAnswerWhereNothingFits) {
  const Shapes shapes({{1, 2}}, {10});
  const auto costs = MigrationCosts::constant(shapes, Seconds(1));
  Liveput liveput(shapes, costs, 2, {});
  liveput.learn(Weather(2));
  EXPECT_EQ(liveput.choice(0, 2, 0, {0, 1}), std::nullopt);
  EXPECT_EQ(liveput.choice(0, 1, std::nullopt, {1, 0}), 0);
}

// Shapes use two machines at most, six are held: the four others are spares. The weather may also know of fewer, or of
// more than are ever asked for.
TEST(Liveput, HoldsMoreMachinesThanAnyShapeUses) {
  const Shapes shapes({{1, 1}, {2, 1}}, {10, 20});
  const auto costs = MigrationCosts::constant(shapes, Seconds(30));
  for (const Sight sight : {Sight::informed, Sight::blind}) {
    Weather weather(6, 2);
    weather.observe(2, {4, 0});
    Liveput liveput(shapes, costs, 6, {.sight = sight, .horizon = 3, .keep = 0});
    liveput.learn(weather);
    const Expectimax definition(shapes, costs, weather, sight);
    for (int n = 0; n <= 6; ++n) EXPECT_NEAR(liveput.value(0, n, 2), definition.value(3, 0, n, 2), 1e-9) << n;
    if (sight == Sight::informed) {
      EXPECT_EQ(liveput.choice(0, 6, 1, {0, 1}), 1);
    } else {
      EXPECT_EQ(liveput.blind_choice(0, 6, 1), 1);
    }
  }
}

// One machine may be held where three were: an arrival of any size brings one.
TEST(Liveput, TakesNoMoreThanItMayHold) {
  const Shapes shapes({{1, 1}}, {10});
  const auto costs = MigrationCosts::constant(shapes, Seconds(0));
  Liveput few(shapes, costs, 1, {.horizon = 2});
  Liveput many(shapes, costs, 5, {.horizon = 2});
  Weather weather(3);
  weather.observe(0, {3, 0});
  few.learn(weather);
  many.learn(weather);
  // In the first interval 60 x 10 samples if a machine comes; in the second, if one has come and stayed or comes then.
  const double first = weather.rates(0).second;
  const double stays = 1 - weather.rates(weather.next_mode(0, {1, 0})).first;
  EXPECT_NEAR(few.value(0, 0, 1), 600 * (first + first * stays + (1 - first) * first), 1e-9);
  // With more machines than the weather has ever counted, one is there for both unless all are lost at once.
  EXPECT_LE(many.value(0, 5, 0), 1200);
  EXPECT_GT(many.value(0, 5, 0), 1100);
}

// 5 machines, 2 x 3 planned: one pipeline of three. 2 machines: none of three fits, so the fastest that does.
TEST(Fitted, KeepsTheDepthIfItCan) {
  const Shapes shapes({{1, 1}, {1, 2}, {1, 3}, {2, 3}}, {1, 3, 4, 7});
  EXPECT_EQ(fitted(shapes, 3, 6), 3);
  EXPECT_EQ(fitted(shapes, 3, 5), 2);
  EXPECT_EQ(fitted(shapes, 3, 2), 1);
  EXPECT_EQ(fitted(shapes, 3, 0), std::nullopt);
}

}  // namespace
}  // namespace mayfly
