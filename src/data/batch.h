#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace mayfly {

/// Room for numbers that start at a cache line, as LibTorch's own do: sums then take the same order everywhere. Not
/// initialised.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t size)
      : values_(static_cast<T*>(::operator new(size * sizeof(T), kLine))), size_(size) {}
  T* data() const { return values_.get(); }
  std::size_t size() const { return size_; }
  std::span<T> span() const { return {data(), size_}; }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Delete {
    void operator()(T* values) const { ::operator delete(values, kLine); }
  };
  std::unique_ptr<T, Delete> values_{};
  std::size_t size_ = 0;
};

/// Samples that are ready to be trained on, one behind the other.
struct Batch {
  std::vector<std::int64_t> samples{};  ///< their numbers in the data set
  AlignedArray<float> inputs{};
  AlignedArray<std::int64_t> labels{};
  std::int64_t size() const { return static_cast<std::int64_t>(samples.size()); }
};

/// With room for these samples, and nothing in it yet.
Batch empty_batch(const Dataset& data, std::vector<std::int64_t> samples);
/// Read by this thread.
Result<Batch> read_batch(const Dataset& data, std::span<const std::int64_t> samples);

}  // namespace mayfly
