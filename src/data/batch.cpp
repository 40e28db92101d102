#include "data/batch.h"

#include <utility>

namespace mayfly {

UsedMemory::~UsedMemory() {
  for (void* memory : spare_) ::operator delete(memory, kLine);
}

void* UsedMemory::take(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes == bytes_ && !spare_.empty()) {
      void* memory = spare_.back();
      spare_.pop_back();
      return memory;
    }
  }
  return ::operator new(bytes, kLine);
}

void UsedMemory::give_back(void* memory, std::size_t bytes) {
  constexpr std::size_t kMost = 4;
  std::vector<void*> gone;
  {
    const std::lock_guard lock(mutex_);
    if (bytes != bytes_) gone = std::exchange(spare_, {});
    bytes_ = bytes;
    if (spare_.size() < kMost) {
      spare_.push_back(memory);
    } else {
      gone.push_back(memory);
    }
  }
  for (void* one : gone) ::operator delete(one, kLine);
}

Batch empty_batch(const Dataset& data, std::vector<std::int64_t> samples, std::shared_ptr<UsedMemory> used) {
  const auto count = samples.size();
  return {.samples = std::move(samples),
          .inputs = AlignedArray<float>(count * data.length(), std::move(used)),
          .labels = AlignedArray<std::int64_t>(count * static_cast<std::size_t>(data.labels()))};
}

Result<Batch> read_batch(const Dataset& data, std::span<const std::int64_t> samples) {
  auto batch = empty_batch(data, {samples.begin(), samples.end()});
  if (auto read = data.read(samples, batch.inputs.span(), batch.labels.span()); !read) return unexpected(read.error());
  return batch;
}

}  // namespace mayfly
