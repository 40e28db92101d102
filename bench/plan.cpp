// Planner time for window, exact and exhaustive in one run: docs/benchmarks.md.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

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
  return 0;
}
