#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "throughput_rows.h"

// Several GPUs and several machines: docs/models.md#several-gpus and #fabric.
namespace mayfly::bench {

/// A speed told from a published one that was measured with fewer GPUs.
struct Scaled {
  double error = 0;  ///< ln of told against true
  double band = 0;   ///< half the width of what is said to hold 8 of 10
};
void print_scaled_heading(const std::string& title);
void print_scaled(const std::string& label, const std::vector<Scaled>& scaled);

/// What sets a run apart as a row tells it; several GPUs share these words.
struct PublishedRun {
  const Row* row = nullptr;
  std::string collection{};
  double params = 0;  ///< millions; 0 = not known
  int gpus = 0;       ///< of a machine
  int machines = 0;
  double batch = 0;        ///< of a GPU; 0 = not told
  double speed = 0;        ///< of all, in the row's units
  double accumulated = 1;  ///< steps without an exchange before one with
  double sequence = 0;
  bool half = false;
  bool uneven = false;
};
/// Of a training run whose parameters are known.
PublishedRun run_of(const Row& row);
/// Units of speed in a sample.
double units_of_sample(const PublishedRun& run);
/// "fp16;PyTorch 1.9;..." of the row's cells.
std::string key_of(const PublishedRun& run, std::initializer_list<const char*> columns);

/// Minimises residuals over the logarithms of `start`, each drawn to where it started; `told` sets what they mean.
struct RatioFit {
  std::vector<double> start{};
  std::function<void(const std::vector<double>& x, std::vector<double>& errors)> told{};
  std::vector<double> weights{};
};
std::vector<double> fitted_ratios(const RatioFit& problem);

void print_links(const std::vector<Row>& rows, const std::vector<Row>& facts);
void print_machines(const std::vector<Row>& rows, const std::vector<Row>& results, const Catalog& gpus);

}  // namespace mayfly::bench
