#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "job/train_spec.h"

namespace mayfly {

/// Samples by number, in memory, all of one shape. Reading is const and may be done by several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Of one sample: {1, 28, 28} for a picture, {context} for text, {} for count.
  virtual std::vector<int> shape() const = 0;
  /// Labels of one sample: 1, or for text as many as the context.
  virtual int labels() const = 0;
  virtual int classes() const = 0;
  /// Writes the samples one after another; `inputs` holds the product of shape() floats a sample (text: bytes as
  /// numbers; count: one 0, as the sample's own number goes into `labels`), `labels` holds labels() a sample. The
  /// samples must be below size().
  virtual void read(std::span<const std::int64_t> samples, std::span<float> inputs,
                    std::span<std::int64_t> labels) const = 0;
};

/// Relative paths are taken from `folder`. Files may be gzipped. A missing or broken file is an error that names it.
Result<std::unique_ptr<Dataset>> open_dataset(const DataSpec& spec, const ModelSpec& model,
                                              const std::filesystem::path& folder);

/// What was trained on the one can be evaluated on the other.
Result<void> check_alike(const Dataset& training, const Dataset& validation);

}  // namespace mayfly
