#include <cmath>

#include "engine/slurm_text.h"
#include "fuzz/fuzz.h"

namespace {

using mayfly::fuzz::require;

void check_elements(std::string_view text) {
  const auto elements = mayfly::slurm_elements(text, "run-1");
  if (!elements) return require(!elements.error().message.empty(), "an error has a message");
  for (const mayfly::SlurmElement& element : *elements) {
    require(element.launch >= 0, "launches are counted from 0");
    require(element.id.find('_') != std::string::npos, "an element is an array's");
    require(element.elapsed.count() >= 0 && element.elapsed.count() <= 1e9, "what has passed is bounded");
    const mayfly::Ending ending = mayfly::slurm_ending(element);
    require(!ending.how.empty() && ending.how.find('\x1b') == std::string::npos, "an ending is told in plain words");
  }
}

void check_partitions(std::string_view text) {
  const auto partitions = mayfly::slurm_partitions(text);
  if (!partitions) return require(!partitions.error().message.empty(), "an error has a message");
  for (const mayfly::SlurmPartition& partition : *partitions) {
    require(!partition.name.empty(), "a partition has a name");
    require(partition.grace.count() >= 0 && std::isfinite(partition.grace.count()), "a grace time is bounded");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  check_elements(text);
  check_partitions(text);
  const mayfly::SlurmLimits limits = mayfly::slurm_limits(text);
  require(limits.array_size >= 1 && limits.kill_wait.count() >= 1, "limits are above 0");
  if (const auto array = mayfly::submitted_array(text)) require(*array >= 1, "jobs are counted from 1");
  if (const auto time = mayfly::slurm_time(text))
    require(time->count() >= 0 && time->count() <= 1e9, "a time is bounded");
  return 0;
}
