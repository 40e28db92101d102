// Cost of deciding on a shape: exact expectations against a sampler, look-ahead and liveput. docs/benchmarks.md.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <numeric>
#include <set>

#include "base/check.h"
#include "plan/liveput.h"
#include "plan/lookahead.h"
#include "support/pipelines.h"
#include "support/problems.h"
#include "trace/forecast.h"
#include "trace/load.h"

using namespace mayfly;

namespace {

constexpr int kDraws = 10'000;
constexpr int kHorizon = 12;

/// Of the processor, not of the clock: what else runs on the machine does not count.
double milliseconds_of(auto&& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

double at(std::vector<double> values, double quantile) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1))];
}

/// The p3 trace a minute at a time: Bamboo's, or the generated one that ships.
std::vector<Outlook> p3_minutes() {
  std::vector<Outlook> minutes;
  if (const auto choices = support::parcae_choices("bert")) {
    fmt::print("Events: the p3 trace of Bamboo.\n");
    for (const ParcaeChoice& choice : *choices) minutes.push_back({choice.added, choice.removed});
    return minutes;
  }
  fmt::print("Events: the first 683 minutes of data/traces/p3.json, generated; the recorded trace is not at hand.\n");
  const auto trace = load_trace("data/traces/p3.json");
  MAYFLY_CHECK(trace.has_value(), trace ? "" : trace.error().message.c_str());
  int machines = 0;
  for (const Interval& interval : intervals(capped(merged(*trace), 32), Seconds(60), Seconds(683 * 60))) {
    const int change = interval.available - machines;
    minutes.push_back({std::max(0, change), std::max(0, -change)});
    machines = interval.available;
  }
  return minutes;
}

/// Losses by stage of one set of victims.
void draw(Rng& rng, std::vector<int>& machines, Shape grid, int lost, std::vector<int>& by_stage) {
  std::fill(by_stage.begin(), by_stage.end(), 0);
  for (int k = 0; k < lost; ++k) {
    const int other = k + rng.below(static_cast<int>(machines.size()) - k);
    std::swap(machines[static_cast<std::size_t>(k)], machines[static_cast<std::size_t>(other)]);
    const int victim = machines[static_cast<std::size_t>(k)];
    if (victim < grid.machines()) ++by_stage[static_cast<std::size_t>(victim % grid.stages)];
  }
}

struct Event {
  int machines;
  int lost;
  auto operator<=>(const Event&) const = default;
};

/// Every change possible after every kind of loss: exact, and by draws shared among the targets of one (event, shape).
void compare_with_sampler(const std::string& name, const std::vector<Outlook>& minutes) {
  const Profile profile = support::shipped_profile(name);
  const Shapes shapes = *pipeline_shapes(profile);
  std::set<Event> events;
  int machines = 0;
  for (const Outlook& minute : minutes) {
    if (minute.removed > 0) events.insert({machines, minute.removed});
    machines += minute.added - minute.removed;
  }
  const auto for_targets = [&](const Event& event, auto&& use) {
    for (int to = 0; to < shapes.size(); ++to) {
      if (shapes[to].machines() <= event.machines - event.lost) use(to);
    }
  };
  const auto for_rows = [&](auto&& use) {
    for (const Event& event : events) {
      for (int from = 0; from < shapes.size(); ++from) {
        if (shapes[from].machines() <= event.machines) use(event, from);
      }
    }
  };
  const MigrationCosts costs = *MigrationCosts::make(profile, shapes);
  int keys = 0;
  const double exact = milliseconds_of([&] {
    for_rows([&](const Event& event, int from) {
      const auto& table = costs.table(event.machines, event.lost);
      for_targets(event, [&](int to) {
        (void)table(from, to);
        ++keys;
      });
    });
  });
  // Two samplers: one costs every draw, one counts equal draws and costs each kind once. On every 40th row.
  constexpr int kEvery = 40;
  double plain = 0;
  double counted = 0;
  double worst = 0;
  int row = 0;
  int timed = 0;
  for_rows([&](const Event& event, int from) {
    if (row++ % kEvery != 0) return;
    Rng rng(static_cast<std::uint64_t>(row));
    std::vector<int> all(static_cast<std::size_t>(event.machines));
    std::iota(all.begin(), all.end(), 0);
    std::vector<int> by_stage(static_cast<std::size_t>(shapes[from].stages));
    std::vector<double> sums(static_cast<std::size_t>(shapes.size()), 0);
    plain += milliseconds_of([&] {
      for (int k = 0; k < kDraws; ++k) {
        draw(rng, all, shapes[from], event.lost, by_stage);
        for_targets(event, [&](int to) {
          sums[static_cast<std::size_t>(to)] +=
              costs.outcome(event.machines, from, event.lost, by_stage, to).count() / kDraws;
        });
      }
    });
    for_targets(event, [&](int to) {
      ++timed;
      const double mean = costs.expected(event.machines, from, event.lost, to).count();
      if (mean > 0) worst = std::max(worst, std::abs(sums[static_cast<std::size_t>(to)] / mean - 1));
    });
    counted += milliseconds_of([&] {
      std::map<std::vector<int>, int> kinds;
      for (int k = 0; k < kDraws; ++k) {
        draw(rng, all, shapes[from], event.lost, by_stage);
        ++kinds[by_stage];
      }
      for (const auto& [kind, count] : kinds) {
        for_targets(event, [&](int to) {
          sums[static_cast<std::size_t>(to)] +=
              count * costs.outcome(event.machines, from, event.lost, kind, to).count();
        });
      }
    });
  });
  const double scale = static_cast<double>(keys) / timed;
  fmt::print("| {} | {} | {} | {:.1f} | {:.0f} | {:.0f} x | {:.0f} | {:.0f} x | {:.2f} % | {:g} |\n", name,
             events.size(), keys, exact, plain * scale, plain * scale / exact, counted * scale, counted * scale / exact,
             100 * worst, costs.error().count());
}

/// One decision per minute of the trace, told the future or that nothing will happen after the event.
void time_decisions(const std::string& name, const std::vector<Outlook>& minutes) {
  const Profile profile = support::shipped_profile(name);
  const Shapes shapes = *pipeline_shapes(profile);
  for (const bool told : {true, false}) {
    const MigrationCosts costs = *MigrationCosts::make(profile, shapes);
    std::vector<double> times;
    for (const bool warm : {false, true}) {
      times.clear();
      Position position;
      for (std::size_t i = 0; i < minutes.size(); ++i) {
        const std::size_t length = std::min<std::size_t>(kHorizon, minutes.size() - i);
        std::vector<Outlook> outlook(length);
        for (std::size_t k = 0; k < length; ++k) outlook[k] = told || k == 0 ? minutes[i + k] : Outlook{};
        times.push_back(
            milliseconds_of([&] { position.shape = look_ahead(shapes, costs, Seconds(60), position, outlook); }));
        position.machines += minutes[i].added - minutes[i].removed;
      }
      fmt::print("| look-ahead, {}, {}, {} | {:.3f} | {:.3f} | {:.3f} |\n", name, told ? "told the future" : "quiet",
                 warm ? "warm" : "cold", at(times, 0.5), at(times, 0.99), at(times, 1));
    }
  }
  for (const Sight sight : {Sight::informed, Sight::blind}) {
    const MigrationCosts fresh = *MigrationCosts::make(profile, shapes);
    Liveput liveput(shapes, fresh, 32, {.sight = sight});
    Weather weather(32);
    int machines = 0;
    std::vector<double> learning;
    std::vector<double> choosing;
    double first = 0;
    std::optional<int> shape;
    for (std::size_t i = 0; i < minutes.size(); ++i) {
      if (i % 60 == 59) {
        const double time = milliseconds_of([&] { liveput.learn(weather); });
        (i == 59 ? first : learning.emplace_back()) = time;
      }
      if (i >= 60) {
        choosing.push_back(milliseconds_of([&] {
          shape = sight == Sight::informed
                      ? liveput.choice(weather.next_mode(weather.mode(), minutes[i]), machines, shape, minutes[i])
                      : liveput.blind_choice(weather.mode(), machines, shape);
        }));
        const int after = machines + minutes[i].added - minutes[i].removed;
        if (shape) shape = fitted(shapes, *shape, after);
      }
      weather.observe(machines, minutes[i]);
      machines += minutes[i].added - minutes[i].removed;
    }
    const char* kind = sight == Sight::informed ? "informed" : "blind";
    fmt::print("| liveput learn, {}, {}, cold | {:.1f} | - | - |\n", name, kind, first);
    fmt::print("| liveput learn, {}, {}, warm | {:.1f} | {:.1f} | {:.1f} |\n", name, kind, at(learning, 0.5),
               at(learning, 0.99), at(learning, 1));
    fmt::print("| liveput choice, {}, {} | {:.4f} | {:.4f} | {:.4f} |\n", name, kind, at(choosing, 0.5),
               at(choosing, 0.99), at(choosing, 1));
  }
}

/// Synthetic shapes of up to so many machines, costs as of GPT-1.5B.
void grow(int machines) {
  const Shapes shapes = support::grid_shapes(machines, {1, 2, 4, 8, 16});
  const MigrationCosts costs = *MigrationCosts::make(support::gpt_pipeline(), shapes);
  const int lost = 2;
  const double table = milliseconds_of([&] {
    const auto& entries = costs.table(machines, lost);
    for (int from = 0; from < shapes.size(); ++from) {
      for (int to = 0; to < shapes.size(); ++to) {
        if (shapes[to].machines() <= machines - lost) (void)entries(from, to);
      }
    }
  });
  std::vector<Outlook> outlook(kHorizon);
  outlook[0] = {0, lost};
  const Position position{.machines = machines, .shape = shapes.best(machines)};
  std::vector<double> times;
  for (int run = 0; run < 10; ++run)
    times.push_back(milliseconds_of([&] { (void)look_ahead(shapes, costs, Seconds(60), position, outlook); }));
  fmt::print("| {} | {} | {:.1f} | {:.3f} | {:.3f} |", machines, shapes.size(), table, times[0], at(times, 0.5));
  Weather weather(machines);
  Rng rng(1);
  for (int k = 0; k < 500; ++k)
    weather.observe(machines / 2, {rng.chance(0.1) ? 1 + rng.below(4) : 0, rng.chance(0.1) ? 1 + rng.below(4) : 0});
  Liveput liveput(shapes, costs, machines, {});
  const double cold = milliseconds_of([&] { liveput.learn(weather); });
  const double warm = milliseconds_of([&] { liveput.learn(weather); });
  fmt::print(" {:.0f} | {:.0f} |\n", cold, warm);
}

}  // namespace

int main() {
  const auto minutes = p3_minutes();
  fmt::print(
      "\nAll changes after all kinds of loss, {} draws each where sampled (every 40th row, scaled):\n\n"
      "| profile | kinds of loss | changes | exact ms | sampler ms | ratio | counting sampler ms | ratio | sampler off "
      "by "
      "up to | error s |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
      kDraws);
  for (const char* name : {"parcae-bert", "parcae-resnet152"}) compare_with_sampler(name, minutes);
  fmt::print("\nOne decision, {} intervals ahead, ms:\n\n| what | median | p99 | max |\n| --- | --- | --- | --- |\n",
             kHorizon);
  for (const char* name : {"parcae-bert", "parcae-resnet152"}) time_decisions(name, minutes);
  fmt::print(
      "\nGrowth, shapes of every width and 1, 2, 4, 8 or 16 stages, ms:\n\n"
      "| machines | shapes | cost table of one event | look-ahead, cold | warm | learn, cold | warm |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const int machines : {16, 32, 64, 128, 256}) grow(machines);
}
