#include "predict/serverless.h"

#include <algorithm>
#include <cmath>

namespace mayfly {
namespace {

double training_rate(const ServerlessProfile& s, int memory_mib) { return s.rate_slope * memory_mib + s.rate_offset; }

double load_rate(const ServerlessProfile& s, int memory_mib) {
  double memory = memory_mib;
  if (s.load_saturation_mib > 0) memory = std::min(memory, s.load_saturation_mib);
  const double rate = megabytes_per_second(s.load_slope * memory + s.load_offset).value;
  return s.store ? std::min(rate, s.store->value) : rate;
}

/// Samples per epoch that a function works through, and its iterations, under the local/global batch rule.
double iterations_per_epoch(const ServerlessProfile& s, double samples, int functions, double local_batch) {
  const double global = local_batch * functions;
  if (!s.whole_iterations) return samples / global;
  const bool fixed_local = s.local_batch * functions <= s.global_batch_max;
  return fixed_local ? std::floor(std::floor(samples / functions) / local_batch)
                     : std::floor(samples / s.global_batch_max);
}

}  // namespace

ServerlessPrediction serverless_prediction(const Profile& profile, const FunctionPlatform& platform,
                                           FunctionFleet fleet, double epochs, UsdPerHour server_price) {
  const ServerlessProfile& s = *profile.serverless;
  const int n = fleet.functions;
  ServerlessPrediction p;
  p.local_batch = s.local_batch * n <= s.global_batch_max ? s.local_batch : s.global_batch_max / n;
  p.iterations = iterations_per_epoch(s, profile.samples->value, n, p.local_batch) * epochs;
  p.load = Seconds(profile.dataset_size->value / (n * load_rate(s, fleet.memory_mib)));
  p.compute = Seconds(p.local_batch / training_rate(s, fleet.memory_mib));
  const double link = std::min(s.function_network.value, s.server_network.value / n);
  p.exchange = Seconds(2 * profile.parameters->value / link);
  p.time = p.load + p.iterations * (p.compute + p.exchange);
  // A function that would outlive its time-out saves its state and starts again.
  p.restarts = std::max(0, static_cast<int>(std::ceil(std::min(p.time / platform.timeout, 1e6))) - 1);
  p.time += p.restarts * s.restart;
  const double gib = fleet.memory_mib / 1024.0;
  p.cost = Usd{gib * n * platform.usd_per_gib_s * p.time.count() + n * (p.restarts + 1) * platform.usd_per_request};
  p.cost += server_price * p.time;
  return p;
}

int serverless_most_functions(const ServerlessProfile& s) {
  return static_cast<int>(std::floor(s.server_network / s.function_network));
}

double serverless_fewest_functions(const Profile& profile, int memory_mib, double epochs, Seconds deadline) {
  const ServerlessProfile& s = *profile.serverless;
  const double rate = training_rate(s, memory_mib);
  const double load = load_rate(s, memory_mib);
  const double link = s.function_network.value;
  const double samples = profile.samples->value * epochs;
  const double exchange = 2 * profile.parameters->value / link;
  // First branch: the local batch is fixed, so everything shrinks with n.
  const double fixed_local =
      (profile.dataset_size->value / load + samples / rate + exchange * samples / s.local_batch) / deadline.count();
  if (fixed_local * s.local_batch <= s.global_batch_max) return fixed_local;
  // Second branch: the global batch is fixed; the exchange no longer shrinks.
  const double left = deadline.count() - exchange * samples / s.global_batch_max;
  const double switched = std::floor(s.global_batch_max / s.local_batch);
  if (left <= 0) return INFINITY;
  return std::max(switched, (profile.dataset_size->value / load + samples / rate) / left);
}

}  // namespace mayfly
