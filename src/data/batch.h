#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace mayfly {

/// Memory that was used before, of one size at a time: what the kernel has given once need not be cleared again. For
/// many threads at once.
class UsedMemory {
 public:
  static constexpr std::align_val_t kLine{64};
  UsedMemory() = default;
  ~UsedMemory();
  UsedMemory(const UsedMemory&) = delete;
  UsedMemory& operator=(const UsedMemory&) = delete;

  void* take(std::size_t bytes);
  void give_back(void* memory, std::size_t bytes);

 private:
  std::mutex mutex_{};
  std::size_t bytes_ = 0;  ///< of each
  std::vector<void*> spare_{};
};

/// Room for numbers that start at a cache line, as LibTorch's own do: sums then take the same order everywhere. Not
/// initialised.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t size, std::shared_ptr<UsedMemory> used = nullptr)
      : values_(
            static_cast<T*>(used ? used->take(size * sizeof(T)) : ::operator new(size * sizeof(T), UsedMemory::kLine)),
            Return{.used = std::move(used), .bytes = size * sizeof(T)}),
        size_(size) {}
  T* data() const { return values_.get(); }
  std::size_t size() const { return size_; }
  std::span<T> span() const { return {data(), size_}; }

 private:
  struct Return {
    std::shared_ptr<UsedMemory> used{};
    std::size_t bytes = 0;
    void operator()(T* values) const {
      if (used) return used->give_back(values, bytes);
      ::operator delete(values, UsedMemory::kLine);
    }
  };
  std::unique_ptr<T, Return> values_{};
  std::size_t size_ = 0;
};

/// Samples that are ready to be trained on, one behind the other.
struct Batch {
  std::vector<std::int64_t> samples{};  ///< their numbers in the data set
  AlignedArray<float> inputs{};
  AlignedArray<std::int64_t> labels{};
  std::int64_t size() const { return static_cast<std::int64_t>(samples.size()); }
};

/// With room for these samples, and nothing in it yet. The memory of the inputs returns to `used`.
Batch empty_batch(const Dataset& data, std::vector<std::int64_t> samples, std::shared_ptr<UsedMemory> used = nullptr);
/// Read by this thread.
Result<Batch> read_batch(const Dataset& data, std::span<const std::int64_t> samples);

}  // namespace mayfly
