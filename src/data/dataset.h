#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "job/train_spec.h"

namespace mayfly {

/// Samples by number, all of one shape. A sample is fetched as it lies in storage, then prepared for a network. Both
/// are const and may be done by many threads at once; samples must be below size().
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Of one sample: {1, 28, 28} for a picture, {context} for text, {} for count.
  virtual std::vector<int> shape() const = 0;
  /// Labels of one sample: 1, or for text as many as the context.
  virtual int labels() const = 0;
  virtual int classes() const = 0;
  /// fetch() reads files, which may be slow, and may fail at any time.
  virtual bool in_files() const { return false; }

  /// The bytes as they lie in storage, none where a sample is made from its number. An error names the file.
  virtual Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const = 0;
  /// `inputs` holds the product of shape() floats (text: bytes as numbers; count: one 0, as the sample's own number is
  /// its label), `labels` holds labels(). Raw bytes that are no sample are an error that names the file.
  virtual Result<void> prepare(std::int64_t sample, std::span<const std::byte> raw, std::span<float> inputs,
                               std::span<std::int64_t> labels) const = 0;

  /// Fetched and prepared one after another, by this thread.
  Result<void> read(std::span<const std::int64_t> samples, std::span<float> inputs,
                    std::span<std::int64_t> labels) const;
  /// Floats of one sample.
  std::size_t length() const;
};

/// Relative paths are taken from `folder`. Files may be gzipped; those that are not stay where they are, and are read
/// sample by sample. A missing or broken file is an error that names it.
Result<std::unique_ptr<Dataset>> open_dataset(const DataSpec& spec, const ModelSpec& model,
                                              const std::filesystem::path& folder);

/// What was trained on the one can be evaluated on the other.
Result<void> check_alike(const Dataset& training, const Dataset& validation);

}  // namespace mayfly
