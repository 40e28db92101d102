#include <cmath>
#include <initializer_list>

#include "fuzz/fuzz.h"
#include "job/profile.h"

namespace {

using mayfly::fuzz::require;

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

void check_profile(const mayfly::Profile& profile) {
  for (const auto& size : {profile.dataset_size, profile.parameters}) {
    require(!size || is_positive(size->value), "a size is finite and above 0");
  }
  require(!profile.samples || is_positive(profile.samples->value), "a number of samples is finite and above 0");
  for (const auto& [name, type] : profile.types) {
    for (const auto& time : {type.step, type.compute}) {
      require(!time || is_positive(time->count()), "a step time is finite and above 0");
      require(!time || type.batch > 0, "a step time has its batch");
    }
    require(!type.network || is_positive(type.network->value), "a rate is finite and above 0");
  }
  for (const auto& rate : {profile.link.request, profile.link.pcie, profile.server.network}) {
    require(!rate || is_positive(rate->value), "a rate is finite and above 0");
  }
  require(profile.link.overlap >= 0 && profile.link.overlap <= 1, "the overlap is a fraction");
  if (profile.loss) require(profile.loss->scale > 0, "a loss curve falls");
  if (profile.serverless) {
    require(profile.serverless->memory_mib_min <= profile.serverless->memory_mib_max, "memory sizes are in order");
    require(profile.serverless->memory_mib_step > 0, "memory grows in steps");
  }
  require(profile.exchange != mayfly::Exchange::pipeline || profile.pipeline, "a pipeline is described");
  if (profile.pipeline) {
    require(!profile.pipeline->speeds.empty(), "a pipeline has speeds");
    require(profile.pipeline->min_stages <= profile.pipeline->max_stages, "stages are in order");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  const auto profile = mayfly::parse_profile(text, mayfly::fuzz::kFile);
  if (!profile) {
    mayfly::fuzz::check_message(profile.error());
    return 0;
  }
  check_profile(*profile);
  // Also false where a NaN came in.
  const auto again = mayfly::parse_profile(text, mayfly::fuzz::kFile);
  require(again && *again == *profile, "the same text reads the same");
  return 0;
}
