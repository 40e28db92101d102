#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/rng.h"
#include "simulate/replay.h"

// Promises by a deadline, kept on any weather. docs/models.md#deadline
namespace mayfly {
namespace {

constexpr Seconds kCheck = PolicyOptions{}.check;
constexpr Seconds kStart = PolicyOptions{}.start;

/// Up to `machines` side by side, a sample a second each.
Job rented_or_not(int machines, Seconds restart) {
  std::vector<Shape> all;
  std::vector<double> speeds;
  for (int n = 1; n <= machines; ++n) {
    all.push_back({n, 1});
    speeds.push_back(n);
  }
  const Shapes shapes(all, speeds);
  return {.shapes = shapes,
          .costs = MigrationCosts::constant(shapes, restart),
          .type = "a",
          .spot = {0.9},
          .on_demand = UsdPerHour{3}};
}

/// One machine after the other comes, or goes.
struct Changing {
  Series series{.type = "a", .zone = "z", .changes = {{.time = Seconds(0)}}};
  void set(Seconds time, int available) {
    Change& last = series.changes.back();
    const int change = available - last.available;
    if (change == 0) return;
    if (time <= last.time) {
      last = {.time = last.time, .added = available, .available = available};
      return;
    }
    series.changes.push_back(
        {.time = time, .added = std::max(0, change), .removed = std::max(0, -change), .available = available});
  }
};

/// Stays of both states are drawn around a mean, from much shorter than a restart to much longer.
Series random_weather(Rng& rng, int machines, Seconds duration) {
  Changing market;
  const double mean = 60 * (1 << rng.below(9));
  const bool bursts = rng.chance(0.5);
  int available = rng.below(machines + 1);
  for (Seconds time(0); time < duration; time += Seconds(mean * 2 * rng.below(1000) / 1000 + 1)) {
    market.set(time, available);
    available = bursts ? rng.below(machines + 1) : std::clamp(available + (rng.chance(0.5) ? 1 : -1), 0, machines);
  }
  return market.series;
}

/// All machines for `there`, then none for `away`, again and again.
Series swinging(int machines, Seconds first, Seconds there, Seconds away, Seconds duration) {
  Changing market;
  for (Seconds time = first; time < duration; time += there + away) {
    market.set(time, machines);
    market.set(time + there, 0);
  }
  return market.series;
}

struct Task {
  int machines = 1;
  Seconds restart{};
  Seconds work{};  ///< of all machines
  Seconds deadline{};
};

void expect_kept(const Series& series, const Task& p, const std::string& what) {
  const Job job = rented_or_not(p.machines, p.restart);
  for (const PolicyName policy : {PolicyName::liveput, PolicyName::deadline}) {
    const Replay run =
        replay(series, p.deadline + Hours(10), job,
               {.policy = policy, .promise = {.samples = p.work.count() * p.machines, .deadline = p.deadline}});
    EXPECT_TRUE(run.reached && run.time <= p.deadline)
        << name(policy) << ", " << what << ": " << p.machines << " machines, restart " << p.restart.count()
        << " s, work " << p.work.count() << " s, deadline " << p.deadline.count() << " s, ended at " << run.time.count()
        << " s with " << run.samples << " samples";
  }
}

/// From the tightest deadline that can be promised to one that leaves half the time free.
Task drawn_promise(Rng& rng) {
  constexpr std::array kMachines{1, 1, 2, 3, 5};
  constexpr std::array kRestarts{0.0, 30.0, 250.0, 720.0, 1800.0};
  Task p{.machines = kMachines[static_cast<std::size_t>(rng.below(5))],
         .restart = Seconds(kRestarts[static_cast<std::size_t>(rng.below(5))]),
         .work = Seconds(1800 + 600 * rng.below(100))};
  const double spare = rng.chance(0.3) ? 0 : 0.01 * rng.below(100);
  p.deadline = p.work * (1 + spare) + p.restart + kStart + kCheck + Seconds(1);
  return p;
}

TEST(APromiseByADeadline, IsKeptInRandomWeather) {
  for (std::uint64_t seed = 1; seed <= 300 && !testing::Test::HasFailure(); ++seed) {
    Rng rng(seed);
    const Task p = drawn_promise(rng);
    expect_kept(random_weather(rng, p.machines, p.deadline), p, "seed " + std::to_string(seed));
  }
}

// Spot that goes a second before each check, as soon as a restart is over, in the middle of it, or when what was
// ordered comes; and is back at once, after a start, or after a restart.
TEST(APromiseByADeadline, IsKeptWhereTheMarketIsAgainstIt) {
  for (const int machines : {1, 3}) {
    for (const double restart : {30.0, 720.0}) {
      for (const double spare : {0.0, 0.5}) {
        Task p{.machines = machines, .restart = Seconds(restart), .work = Hours(3)};
        p.deadline = p.work * (1 + spare) + p.restart + kStart + kCheck + Seconds(1);
        for (const double there : {119.0, 299.0, restart / 2, restart + 1}) {
          for (const double away : {1.0, 181.0, restart + 1}) {
            for (const double first : {0.0, 299.0})
              expect_kept(swinging(machines, Seconds(first), Seconds(there), Seconds(away), p.deadline), p,
                          "there " + std::to_string(there) + ", away " + std::to_string(away));
          }
        }
      }
    }
  }
}

TEST(APromiseByADeadline, IsKeptWithoutAnyMarket) {
  for (const int machines : {1, 4}) {
    Task p{.machines = machines, .restart = Seconds(720), .work = Hours(40)};
    for (const double ratio : {1.0, 1.2, 1.5}) {
      p.deadline = ratio * p.work + p.restart + kStart + kCheck + Seconds(1);
      expect_kept(swinging(machines, p.deadline, Seconds(1), Seconds(1), p.deadline), p, "no market");
    }
  }
}

// A type without a price on demand, and a market that gives one machine of the two that it takes: late, and all of it
// trained by that one.
TEST(APromiseByADeadline, IsBrokenWhereNothingCanBeRented) {
  Job job = rented_or_not(2, Seconds(60));
  job.on_demand.reset();
  const Series series{.type = "a", .zone = "z", .changes = {{.time = Seconds(0), .added = 1, .available = 1}}};
  for (const PolicyName policy : {PolicyName::liveput, PolicyName::deadline}) {
    const Replay run =
        replay(series, Hours(10), job, {.policy = policy, .promise = {.samples = 2 * 3600.0, .deadline = Hours(1)}});
    EXPECT_NEAR(run.time.count(), 2 * 3600 + 60, 1e-3) << name(policy);
    EXPECT_NEAR(run.cost.value, (2 + 60.0 / 3600) * 0.9, 1e-6) << name(policy);
  }
}

// A market that never takes anything: 40 h at 0.9 USD/h and the start of 12 minutes. Nothing is rented.
TEST(APromiseByADeadline, CostsNothingWhereTheMarketKeepsIt) {
  const Job job = rented_or_not(1, Seconds(720));
  const Series series{.type = "a", .zone = "z", .changes = {{.time = Seconds(0), .added = 1, .available = 1}}};
  for (const PolicyName policy : {PolicyName::liveput, PolicyName::deadline}) {
    const Replay run =
        replay(series, Hours(80), job, {.policy = policy, .promise = {.samples = 40 * 3600.0, .deadline = Hours(60)}});
    EXPECT_NEAR(run.time.count(), (Hours(40) + Seconds(720)).count(), 1e-3) << name(policy);
    EXPECT_LT(run.cost.value, 40.2 * 0.9 + 3.0 * 0.2) << name(policy);
  }
}

}  // namespace
}  // namespace mayfly
