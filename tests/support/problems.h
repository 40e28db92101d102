#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "cloud/spot_weather.h"
#include "plan/search.h"

// Helpers of the tests and benchmarks: shipped files, and random planning problems.
namespace mayfly::support {

Profile shipped_profile(const std::string& name);
Catalog shipped_catalog(const std::string& name);
WeatherTable shipped_weather();

/// ../shared/data, if this checkout has it.
std::optional<std::filesystem::path> shared_data();

/// The spotDNN evaluation: ResNet-110 with its five types and the given quotas, in the paper's order
/// [p3.2xlarge, g4dn.4xlarge, g3.8xlarge, g3.16xlarge, p2.8xlarge].
struct SpotDnn {
  std::unique_ptr<Profile> profile{};  ///< the problem points to it
  Catalog catalog{};
  Problem problem{};
};
SpotDnn spotdnn_problem(const std::vector<int>& quotas, double loss, double deadline_s);
/// Counts in the paper's order -> counts per kind of the problem.
std::vector<int> spotdnn_counts(const Problem& problem, const std::vector<int>& paper_order);
std::vector<int> paper_order(const Problem& problem, const std::vector<int>& counts);

/// A random problem: `kinds` kinds with up to `quota` machines each from `zones` zones, ResNet-110-like; the deadline
/// is one that some cluster can meet. The profile must outlive the problem.
struct RandomProblem {
  Predictor predictor = Predictor::spotdnn;
  int kinds = 5;
  int quota = 5;
  int zones = 1;
  int servers = 1;
  Sync sync = Sync::asp;
  bool epochs = false;
  bool five_coefficients = false;
  bool in_turn = false;  ///< how servers answer
  bool ring = false;     ///< instead of servers, of machines with unlike links and fixed times
  double batch = 0;      ///< of a step with a barrier; 0: that of the largest machine
  bool scale_batch = false;
  double most_batch = 1e300;
  bool promised = false;  ///< machines start, and the deadline is to be kept with 90 % of what the predictions allow
};
Problem random_problem(const RandomProblem& shape, std::uint64_t seed, Profile& profile);

}  // namespace mayfly::support
