#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "data/dataset.h"

namespace mayfly::support {

/// Sample i is the bytes of i, prepared into {i, i * i}; some fail, and preparing can be made to wait.
class NumberedDataset final : public Dataset {
 public:
  explicit NumberedDataset(std::int64_t samples) : samples_(samples) {}
  std::int64_t size() const override { return samples_; }
  std::vector<int> shape() const override { return {2}; }
  int labels() const override { return 1; }
  int classes() const override { return 10; }
  bool in_files() const override { return true; }
  Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const override {
    ++fetched;
    if (slow) {
      most_at_once = std::max<int>(most_at_once, ++at_once);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      --at_once;
    }
    if (sample == lost) return fail("file of {}: cannot read", sample);
    raw.resize(sizeof sample);
    std::memcpy(raw.data(), &sample, sizeof sample);
    return {};
  }
  Result<void> prepare(std::int64_t, std::span<const std::byte> raw, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    std::int64_t number = 0;
    std::memcpy(&number, raw.data(), sizeof number);
    if (number == broken) return fail("file of {}: not a sample", number);
    inputs[0] = static_cast<float>(number);
    inputs[1] = static_cast<float>(number * number);
    labels[0] = number;
    ++prepared;
    return {};
  }

  mutable std::atomic<int> fetched = 0, prepared = 0, at_once = 0, most_at_once = 0;
  bool slow = false;  ///< fetching waits
  std::int64_t lost = -1, broken = -1;

 private:
  std::int64_t samples_;
};

}  // namespace mayfly::support
