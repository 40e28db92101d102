#include <cmath>

#include "fuzz/fuzz.h"
#include "job/engine_spec.h"

namespace {

using mayfly::fuzz::require;

void check_queue(const std::optional<mayfly::SlurmQueue>& queue) {
  if (queue) require(!queue->partition.empty() || !queue->qos.empty(), "a market has a partition or a qos");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  const auto engine = mayfly::parse_engine(text, mayfly::fuzz::kFile);
  if (!engine) {
    mayfly::fuzz::check_message(engine.error());
    return 0;
  }
  const mayfly::SlurmSpec& slurm = engine->slurm;
  check_queue(slurm.spot);
  check_queue(slurm.on_demand);
  require(!slurm.time || slurm.time->count() >= 60, "a machine has a minute");
  for (const auto& [name, type] : slurm.types) {
    require(!type.cores || *type.cores > 0, "cores are above 0");
    require(!type.memory || (type.memory->value > 0 && std::isfinite(type.memory->value)), "memory is above 0");
    for (const auto& price : {type.spot, type.on_demand})
      require(!price || price->value >= 0, "a price is not negative");
  }
  const auto again = mayfly::parse_engine(text, mayfly::fuzz::kFile);
  require(again && *again == *engine, "the same text reads the same");
  return 0;
}
