// How far scaled speeds and predicted memory are from what was published: docs/models.md#gpus, #several-gpus, #fabric
// and #memory.
#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <set>

#include "predict/gpu_ratio.h"
#include "throughput_fit.h"
#include "throughput_links.h"

using namespace mayfly;
using namespace mayfly::bench;

namespace {

constexpr double kNormalTenth = 1.2815515655446004;
constexpr const char* kRule = " | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// The speed of one GPU of a cell told from another's.
struct Guess {
  double error = 0;  ///< ln of true against told
  double band = 0;   ///< half the width of what is said to hold 8 of 10
  const Point* to = nullptr;
};
using Guesses = std::vector<Guess>;
/// Nothing for a pair that is not asked for.
using Told = std::function<std::optional<GpuRatio>(const Point& from, const Point& to)>;

/// Of any two of a cell, both ways.
Guesses guesses_of(const std::vector<Point>& points, const Told& told) {
  Guesses guesses;
  for (const Point& from : points) {
    for (const Point& to : points) {
      const auto ratio = from.cell == to.cell && &from != &to ? told(from, to) : std::nullopt;
      if (!ratio) continue;
      guesses.push_back({.error = to.speed->log_speed - from.speed->log_speed - std::log(ratio->speed),
                         .band = kNormalTenth * ratio->relative_sd,
                         .to = &to});
    }
  }
  return guesses;
}

void print_heading(const std::string& title, const std::string& column) {
  fmt::print("\n{}\n\n| {} | pairs | median % | 80 % | 95 % | worst | in the band % | p90 / p50 |", title, column);
  fmt::print(" cells alike: median % | 80 % | in the band % |\n| ---{}\n", kRule);
}

void print_row(const std::string& label, const Guesses& guesses) {
  if (guesses.empty()) return;
  std::map<const Cell*, double> pairs;
  for (const Guess& guess : guesses) ++pairs[guess.to->cell];
  std::vector<Weighted> errors, alike;
  double width = 0, inside = 0, inside_alike = 0;
  for (const Guess& guess : guesses) {
    const double share = 1 / (pairs[guess.to->cell] * static_cast<double>(pairs.size()));
    const bool held = std::abs(guess.error) <= guess.band;
    errors.push_back({std::abs(guess.error), 1 / static_cast<double>(guesses.size())});
    alike.push_back({std::abs(guess.error), share});
    width += errors.back().weight * guess.band;
    inside += held ? errors.back().weight : 0;
    inside_alike += held ? share : 0;
  }
  const auto factor = [](const std::vector<Weighted>& of, double share) { return std::exp(quantile(of, share)); };
  fmt::print("| {} | {} | {:.1f} | {:.3f} | {:.2f} | {:.2f} | {:.1f} | {:.3f} | {:.1f} | {:.3f} | {:.1f} |\n", label,
             guesses.size(), 100 * (factor(errors, 0.5) - 1), factor(errors, 0.8), factor(errors, 0.95),
             factor(errors, 1), 100 * inside, std::exp(width), 100 * (factor(alike, 0.5) - 1), factor(alike, 0.8),
             100 * inside_alike);
}

using Key = std::function<std::string(const Point&)>;

void print_by(const std::string& title, const std::string& column, const Guesses& guesses, const Key& key) {
  std::map<std::string, Guesses> parts;
  for (const Guess& guess : guesses) parts[key(*guess.to)].push_back(guess);
  print_heading(title, column);
  for (const auto& [label, part] : parts) print_row(label, part);
}

std::string gpu_of_point(const Point& point) { return point.speed->gpu->model; }
std::string architecture_of(const Point& point) { return point.speed->gpu->architecture; }
std::string family_of_point(const Point& point) { return point.cell->family; }
std::string model_of(const Point& point) { return point.cell->model; }
std::string nothing(const Point&) { return ""; }

Gpu unmeasured(const Point& point) {
  Gpu gpu = *point.speed->gpu;
  gpu.measured.reset();
  return gpu;
}

std::optional<GpuRatio> shipped(const Point& from, const Point& to) {
  return gpu_ratio(*from.speed->gpu, *to.speed->gpu, from.cell->recipe);
}

void print_shipped(const std::vector<Point>& points) {
  const Guesses guesses = guesses_of(points, shipped);
  print_heading("One GPU's speed from another's, by `gpu_ratio` as shipped (in sample)", "figures");
  print_row("all", guesses);
  print_row("without `measured` of the target", guesses_of(points, [](const Point& from, const Point& to) {
              return gpu_ratio(*from.speed->gpu, unmeasured(to), from.cell->recipe);
            }));
  print_row("without `measured` of both", guesses_of(points, [](const Point& from, const Point& to) {
              return gpu_ratio(unmeasured(from), unmeasured(to), from.cell->recipe);
            }));
  print_by("By collection", "source", guesses, [](const Point& point) { return point.cell->source; });
  print_by("By network and precision", "network", guesses, [](const Point& point) {
    return fmt::format("{}, {}", name(point.cell->recipe.network), point.cell->half ? "half" : "32 bits");
  });
  print_by("By the GPU asked for", "GPU", guesses, gpu_of_point);
  print_by("By model", "model", guesses, model_of);
}

void print_host_bound(const std::vector<Point>& points) {
  const Guesses paced = guesses_of(points, shipped);
  const Guesses told = guesses_of(points, [](const Point& from, const Point& to) {
    const auto ratio = shipped(from, to);
    return ratio ? std::optional(host_bound(*ratio)) : ratio;
  });
  print_by("Families that wait for the host, as if the GPU set the pace", "model", paced, model_of);
  print_row("all", paced);
  print_by("The same, told that they wait", "model", told, model_of);
  print_row("all", told);
}

/// What is left out of a fit, and asked for.
struct LeftOut {
  std::string label{};
  Key gpu = nothing;
  Key family = nothing;
};

/// The band is the shipped one's for a GPU without `measured`, or of an architecture nobody measured.
double band_without(const LeftOut& test, const Point& from, const Point& to) {
  Gpu target = test.gpu(to).empty() ? *to.speed->gpu : unmeasured(to);
  if (test.gpu(to) == target.architecture) target.architecture = "left out";
  return gpu_ratio(*from.speed->gpu, target, from.cell->recipe).value().relative_sd;
}

Guesses guesses_without(const LeftOut& test, const std::vector<Point>& points, Batches batches) {
  Guesses guesses;
  std::set<std::pair<std::string, std::string>> folds;
  for (const Point& point : points) folds.insert({test.gpu(point), test.family(point)});
  for (const auto& [gpu, family] : folds) {
    std::vector<Point> rest;
    for (const Point& point : points) {
      const bool out = (!gpu.empty() && test.gpu(point) == gpu) || (!family.empty() && test.family(point) == family);
      if (!out) rest.push_back(point);
    }
    const auto formula = fitted_formula(rest, batches);
    if (!formula) {
      fmt::print(stderr, "without {} {}: {}\n", gpu, family, formula.error().message);
      continue;
    }
    const auto told = guesses_of(points, [&](const Point& from, const Point& to) -> std::optional<GpuRatio> {
      if (test.gpu(to) != gpu || test.family(to) != family || (!gpu.empty() && test.gpu(from) == gpu)) return {};
      return GpuRatio{.speed = std::exp(log_speed(*formula, to) - log_speed(*formula, from)),
                      .relative_sd = band_without(test, from, to)};
    });
    guesses.insert(guesses.end(), told.begin(), told.end());
  }
  return guesses;
}

void print_left_out(const std::vector<Point>& points, Batches batches) {
  print_heading(batches == Batches::ignored ? "Everything fitted anew without what was left out"
                                            : "The same with the ratio of batches to a fitted power",
                "left out");
  for (const LeftOut& test :
       {LeftOut{.label = "nothing"}, LeftOut{.label = "the GPU asked for", .gpu = gpu_of_point},
        LeftOut{.label = "the family of networks", .family = family_of_point},
        LeftOut{.label = "the GPU's architecture", .gpu = architecture_of},
        LeftOut{.label = "the GPU and the family", .gpu = gpu_of_point, .family = family_of_point},
        LeftOut{.label = "architecture and family", .gpu = architecture_of, .family = family_of_point}}) {
    print_row(test.label, guesses_without(test, points, batches));
  }
}

/// Largest difference in ln between gpu_ratio and the form that this bench fits, with the same coefficients.
double largest_difference(const std::vector<Point>& points, const Catalog& gpus) {
  const Guesses product = guesses_of(points, shipped);
  const Guesses own = guesses_of(points, [formula = shipped_formula(gpus)](const Point& from, const Point& to) {
    return GpuRatio{.speed = std::exp(log_speed(formula, to) - log_speed(formula, from))};
  });
  double most = 0;
  for (std::size_t i = 0; i < own.size(); ++i) most = std::max(most, std::abs(own.at(i).error - product.at(i).error));
  return most;
}

int print_speeds(const std::vector<Row>& rows, const Catalog& gpus) {
  const std::vector<Cell> all = cells_of(rows, gpus);
  std::vector<Cell> cells, waiting;
  for (const Cell& cell : all) (cell.host_bound ? waiting : cells).push_back(cell);
  const std::vector<Point> points = points_of(cells);
  fmt::print("{} cells with {} speeds; {} that wait for the host.\n", cells.size(), points.size(), waiting.size());
  const double difference = largest_difference(points, gpus);
  fmt::print("The form that is fitted below and `gpu_ratio` differ by {:.1e}.\n", difference);
  if (difference > 1e-9) return 1;
  print_shipped(points);
  print_host_bound(points_of(waiting));
  print_left_out(points, Batches::ignored);
  print_left_out(points, Batches::fitted);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  const fs::path source = MAYFLY_SOURCE_DIR;
  const fs::path folder = count > 1 ? fs::path(arguments[1]) : source / ".." / "shared" / "data" / "throughput";
  if (!fs::exists(folder)) {
    fmt::print("no measurements in {}\n", folder.string());
    return 0;
  }
  const auto gpus = load_catalog(source / "data" / "gpus.yaml");
  const auto speeds = load_rows(folder / "throughput.csv");
  const auto memory = load_rows(folder / "memory.csv");
  const auto facts = load_rows(folder / "gpu_facts.csv");
  const auto results = load_rows(folder / "mlperf_training.csv");
  if (!gpus) fmt::print(stderr, "{}\n", gpus.error().message);
  for (const auto* rows : {&speeds, &memory, &facts, &results})
    if (!*rows) fmt::print(stderr, "{}\n", rows->error().message);
  if (!gpus || !speeds || !memory || !facts || !results) return 1;
  const int status = print_speeds(*speeds, *gpus);
  print_tuned(*speeds, *gpus);
  print_links(*speeds, *facts);
  print_machines(*speeds, *results, *gpus);
  print_memory(*memory, *gpus);
  return status;
}
