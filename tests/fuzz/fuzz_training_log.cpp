#include <cmath>

#include "fuzz/fuzz.h"
#include "job/training_log.h"

namespace {

using mayfly::fuzz::require;

void finite(const std::optional<double>& value, const char* what) {
  require(!value || (std::isfinite(*value) && *value >= 0), what);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto log = mayfly::parse_training_log(mayfly::fuzz::text_of(data, size), mayfly::fuzz::kFile);
  if (!log) {
    mayfly::fuzz::check_message(log.error());
    return 0;
  }
  require(!log->points.empty(), "a log says something");
  mayfly::LogScale scale{.batch = 8};
  mayfly::count_steps(*log, scale);
  for (const auto& point : log->points) {
    finite(point.step, "a step is finite and not negative");
    finite(point.clock, "a clock is finite and not negative");
    finite(point.step_s, "a step's time is finite and not negative");
    finite(point.samples_per_s, "a speed is finite and not negative");
    require(!point.loss || std::isfinite(*point.loss), "a loss is finite");
  }
  finite(scale.samples, "an epoch is finite and not negative");
  return 0;
}
