#include "data/batch.h"

#include <utility>

namespace mayfly {

Batch empty_batch(const Dataset& data, std::vector<std::int64_t> samples) {
  const auto count = samples.size();
  return {.samples = std::move(samples),
          .inputs = AlignedArray<float>(count * data.length()),
          .labels = AlignedArray<std::int64_t>(count * static_cast<std::size_t>(data.labels()))};
}

Result<Batch> read_batch(const Dataset& data, std::span<const std::int64_t> samples) {
  auto batch = empty_batch(data, {samples.begin(), samples.end()});
  if (auto read = data.read(samples, batch.inputs.span(), batch.labels.span()); !read) return unexpected(read.error());
  return batch;
}

}  // namespace mayfly
