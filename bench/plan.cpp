// Planner time for window, exact and exhaustive in one run: docs/benchmarks.md.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "plan/planner.h"
#include "simulate/usual_weather.h"
#include "support/problems.h"

using namespace mayfly;

namespace {

struct Row {
  const char* label;
  support::RandomProblem shape;
  int problems;
  bool window;
  int exhaustive;  // problems to search exhaustively
};

double milliseconds_of(auto&& search) {
  const auto start = std::chrono::steady_clock::now();
  search();
  return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double at(std::vector<double> values, double quantile) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1))];
}

void run(const Row& row) {
  std::vector<double> exact;
  std::vector<double> window;
  std::vector<double> exhaustive;
  int proven = 0;
  double dearer = 0;
  for (int seed = 1; seed <= row.problems; ++seed) {
    Profile profile;
    const Problem problem = support::random_problem(row.shape, static_cast<std::uint64_t>(seed), profile);
    SearchResult found;
    exact.push_back(milliseconds_of([&] { found = exact_search(problem); }));
    proven += found.optimal ? 1 : 0;
    if (row.window) {
      SearchResult windowed;
      window.push_back(milliseconds_of([&] { windowed = window_search(problem); }));
      if (!windowed.best.empty()) dearer = std::max(dearer, windowed.best[0].cost / found.best.at(0).cost - 1);
    }
    if (seed <= row.exhaustive) {
      SearchResult all;
      exhaustive.push_back(milliseconds_of([&] { all = exhaustive_search(problem); }));
      if (all.best.at(0).counts != found.best.at(0).counts) {
        fmt::print(stderr, "{}: exact differs from exhaustive at seed {}\n", row.label, seed);
        std::exit(1);
      }
    }
  }
  const auto cell = [](const std::vector<double>& times) {
    return times.empty() ? std::string("-") : fmt::format("{:.3g}", at(times, 0.5));
  };
  fmt::print("| {} | {} | {} | {} | {:.3g} | {:.3g} | {} | {}/{} | {} |\n", row.label, row.problems, cell(window),
             cell(exact), at(exact, 0.9), at(exact, 1), cell(exhaustive), proven, row.problems,
             row.window ? fmt::format("{:.1f} %", 100 * dearer) : "-");
}

/// A job measured on one machine of the catalogue, with a barrier, and something known of servers.
struct Purchase {
  Profile profile{};
  PlanRequest request{};
};

Purchase random_purchase(std::uint64_t seed, const Catalog& catalog) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::vector<const InstanceType*> machines;
  for (const InstanceType& type : catalog.types) {
    if (type.gpu && type.gpu->tflops_fp16) machines.push_back(&type);
  }
  const InstanceType& measured = *machines[random() % machines.size()];
  Purchase made;
  Profile& profile = made.profile;
  profile.name = fmt::format("job {}", seed);
  profile.model = "resnet50";
  profile.sync = Sync::bsp;
  profile.exchange = random() % 2 == 0 ? Exchange::server : Exchange::all_reduce;
  profile.samples = Samples{std::exp(uniform(std::log(5e4), std::log(5e6)))};
  profile.parameters = megabytes(std::exp(uniform(std::log(10.0), std::log(3000.0))));
  profile.tensors = std::floor(uniform(20, 500));
  profile.recipe.precision = Precision::fp16;
  profile.link = {.latency = Seconds(uniform(0, 3e-4)), .overlap = uniform(0, 1)};
  profile.server.cpu = Seconds(uniform(0, 0.05));
  profile.recovery = Seconds(60);
  const double batch = std::exp2(std::floor(uniform(5, 10)));
  TypeProfile& type = profile.types[measured.name];
  type.batch = batch * measured.gpu_count;
  type.compute = Seconds(uniform(0.05, 1.5));
  if (random() % 2 == 0) profile.batch = std::exp2(std::floor(uniform(6, 13)));
  made.request.target = ForEpochs{std::floor(uniform(1, 60))};
  made.request.frontier = false;
  const auto free = make_plan(profile, catalog, made.request);
  if (free && std::holds_alternative<Plan>(*free))
    made.request.deadline = Seconds(std::get<Plan>(*free).time.middle * std::exp(uniform(-3, 0.2)));
  return made;
}

/// Servers, rings and single machines together over all that can be rented.
void buy(const char* label, const Catalog& catalog, int problems, double confidence, const WeatherTable* weather) {
  std::vector<double> times;
  int proven = 0, plans = 0, none = 0;
  double widest = 0;
  for (int seed = 1; seed <= problems; ++seed) {
    Purchase purchase = random_purchase(static_cast<std::uint64_t>(seed), catalog);
    if (confidence > 0 && purchase.request.deadline) purchase.request.confidence = confidence;
    if (weather != nullptr) {
      purchase.request.start = [weather](const InstanceType&) { return weather->start; };
      purchase.request.risk = usual_risk(catalog, purchase.request, *weather, {});
    }
    std::optional<Result<std::variant<Plan, Infeasible>>> answer;
    times.push_back(milliseconds_of([&] { answer = make_plan(purchase.profile, catalog, purchase.request); }));
    if (!*answer) {
      fmt::print(stderr, "{}: {}\n", seed, (*answer).error().message);
      std::exit(1);
    }
    const auto* plan = std::get_if<Plan>(&**answer);
    plans += plan != nullptr ? 1 : 0;
    none += plan == nullptr ? 1 : 0;
    proven += plan != nullptr && plan->optimal ? 1 : 0;
    if (plan != nullptr) widest = std::max(widest, plan->gap);
  }
  fmt::print("| {} | {} | {} | {} | {:.3g} | {:.3g} | {:.3g} | {}/{} | {:.1f} % |\n", label, catalog.types.size(),
             problems, none, at(times, 0.5), at(times, 0.99), at(times, 1), proven, plans, 100 * widest);
}

}  // namespace

int main(int argc, char**) {
  const bool with_exhaustive = argc > 1;  // any argument: also the 11^7 clusters, which take a while
  fmt::print(
      "| problem | problems | window ms | exact ms | p90 | max | exhaustive ms | proven | window dearer by up to |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  run({"spotdnn, 25 machines (5 types x 5)", {.kinds = 5, .quota = 5}, 100, true, 100});
  run({"spotdnn, 70 machines (7 types x 10)", {.kinds = 7, .quota = 10}, 100, true, with_exhaustive ? 3 : 0});
  run({"spotdnn, 1,000 offers (100 types x 10 zones, quota 64)",
       {.kinds = 100, .quota = 64, .zones = 10},
       100,
       false,
       0});
  run({"queue, 25 machines", {.predictor = Predictor::queue, .kinds = 5, .quota = 5}, 100, true, 20});
  run({"queue, 70 machines", {.predictor = Predictor::queue, .kinds = 7, .quota = 10}, 100, true, 0});
  run({"queue, 1,000 offers", {.predictor = Predictor::queue, .kinds = 100, .quota = 64, .zones = 10}, 20, false, 0});
  fmt::print(
      "\n| purchase | types | problems | no plan | whole plan ms | p99 | max | proven | widest gap |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  const Catalog catalog = support::shipped_catalog("default");
  const WeatherTable weather = support::shipped_weather();
  buy("ring, servers and one machine, default catalogue", catalog, 100, 0, nullptr);
  buy("the same, kept with 90 % of the prediction's error", catalog, 100, 0.9, nullptr);
  buy("the same, and in the usual weather", catalog, 100, 0.9, &weather);
  return 0;
}
