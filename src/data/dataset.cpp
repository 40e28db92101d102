#include "data/dataset.h"

#include <functional>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/rng.h"
#include "data/byte_file.h"
#include "data/dials.h"
#include "data/digits.h"
#include "data/images.h"
#include "data/pictures.h"

namespace mayfly {
namespace {

class CountDataset final : public Dataset {
 public:
  explicit CountDataset(std::int64_t samples) : samples_(samples) {}
  std::int64_t size() const override { return samples_; }
  std::vector<int> shape() const override { return {}; }
  int labels() const override { return 1; }
  int classes() const override { return static_cast<int>(samples_); }
  Result<void> fetch(std::int64_t, std::vector<std::byte>& raw) const override {
    raw.clear();
    return {};
  }
  Result<void> prepare(std::int64_t sample, std::span<const std::byte>, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    labels[0] = sample;
    inputs[0] = 0;
    return {};
  }

 private:
  std::int64_t samples_;
};

/// Normal random numbers; the class is the row of a hidden matrix with the largest product. The matrix is the same for
/// every seed, so that what is learnt from one set holds for another.
class SyntheticDataset final : public Dataset {
 public:
  explicit SyntheticDataset(const DataSpec& spec, std::size_t length) : spec_(spec), length_(length) {
    constexpr std::uint64_t kRuleSeed = 20177;
    Rng rng(kRuleSeed);
    rule_.resize(static_cast<std::size_t>(spec.classes) * length);
    for (auto& weight : rule_) weight = static_cast<float>(rng.normal());
  }
  std::int64_t size() const override { return spec_.samples; }
  std::vector<int> shape() const override { return spec_.shape; }
  int labels() const override { return 1; }
  int classes() const override { return spec_.classes; }
  Result<void> fetch(std::int64_t, std::vector<std::byte>& raw) const override {
    raw.clear();
    return {};
  }
  Result<void> prepare(std::int64_t sample, std::span<const std::byte>, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    Rng rng(Rng(spec_.seed).bits() ^ static_cast<std::uint64_t>(sample));
    for (auto& number : inputs) number = static_cast<float>(rng.normal());
    labels[0] = ruled_class(inputs);
    return {};
  }

 private:
  std::int64_t ruled_class(std::span<const float> input) const {
    std::int64_t best = 0;
    double largest = 0;
    for (std::int64_t c = 0; c < spec_.classes; ++c) {
      const float* row = rule_.data() + static_cast<std::size_t>(c) * length_;
      double product = 0;
      for (std::size_t i = 0; i < length_; ++i) product += static_cast<double>(row[i]) * input[i];
      if (c == 0 || product > largest) {
        best = c;
        largest = product;
      }
    }
    return best;
  }

  DataSpec spec_;
  std::size_t length_;
  std::vector<float> rule_;
};

/// Windows that do not overlap; the labels are the bytes after each.
class TextDataset final : public Dataset {
 public:
  TextDataset(ByteFile text, int context) : text_(std::move(text)), context_(context) {}
  std::int64_t size() const override { return static_cast<std::int64_t>((text_.size() - 1) / window()); }
  std::vector<int> shape() const override { return {context_}; }
  int labels() const override { return context_; }
  int classes() const override { return 256; }
  bool in_files() const override { return !text_.in_memory(); }
  Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const override {
    raw.resize(window() + 1);
    return text_.read(static_cast<std::uint64_t>(sample) * window(), raw);
  }
  Result<void> prepare(std::int64_t, std::span<const std::byte> raw, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    MAYFLY_CHECK(raw.size() == window() + 1, "a window of the text");
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      inputs[k] = static_cast<float>(raw[k]);
      labels[k] = static_cast<std::int64_t>(raw[k + 1]);
    }
    return {};
  }

 private:
  std::size_t window() const { return static_cast<std::size_t>(context_); }

  ByteFile text_;
  int context_;
};

Result<std::vector<ByteFile>> opened_files(const DataSpec& spec, const std::filesystem::path& folder) {
  std::vector<ByteFile> files;
  for (const auto& file : spec.files) {
    auto opened = ByteFile::open(folder / file);
    if (!opened) return unexpected(opened.error());
    files.push_back(std::move(*opened));
  }
  return files;
}

Result<std::unique_ptr<Dataset>> open_text(ByteFile text, int context) {
  if (text.size() <= static_cast<std::uint64_t>(context))
    return fail("{}: {} bytes, want more than the context of {}", text.name(), text.size(), context);
  return std::make_unique<TextDataset>(std::move(text), context);
}

/// Of idx, cifar and text.
Result<std::unique_ptr<Dataset>> open_files(const DataSpec& spec, int context, const std::filesystem::path& folder) {
  auto files = opened_files(spec, folder);
  if (!files) return unexpected(files.error());
  MAYFLY_CHECK(files->size() >= (spec.name == "idx" ? 2 : 1), "read_train wants the files");
  if (spec.name == "idx") return open_idx(std::move((*files)[0]), (*files)[1]);
  if (spec.name == "cifar") return open_cifar(std::move(*files));
  return open_text(std::move((*files)[0]), context);
}

Result<std::unique_ptr<Dataset>> open_synthetic(const DataSpec& spec) {
  constexpr double kMost = 1e8;
  double length = 1;
  for (const int side : spec.shape) length *= side;
  if (length * spec.classes > kMost)
    return fail("synthetic data: {:g} numbers a sample and {} classes, want a product up to {:g}", length, spec.classes,
                kMost);
  return std::make_unique<SyntheticDataset>(spec, static_cast<std::size_t>(length));
}

std::string shown_shape(const Dataset& data) {
  return fmt::format("[{}] and {} classes", fmt::join(data.shape(), ", "), data.classes());
}

}  // namespace

std::size_t Dataset::length() const {
  const auto sides = shape();
  return std::accumulate(sides.begin(), sides.end(), std::size_t{1}, std::multiplies<>());
}

Result<void> Dataset::read(std::span<const std::int64_t> samples, std::span<float> inputs,
                           std::span<std::int64_t> labels) const {
  const auto floats = length();
  const auto names = static_cast<std::size_t>(this->labels());
  MAYFLY_CHECK(inputs.size() == samples.size() * floats && labels.size() == samples.size() * names,
               "room for the samples");
  std::vector<std::byte> raw;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    MAYFLY_CHECK(samples[i] >= 0 && samples[i] < size(), "a sample of the data set");
    if (auto fetched = fetch(samples[i], raw); !fetched) return fetched;
    const auto done = prepare(samples[i], raw, inputs.subspan(i * floats, floats), labels.subspan(i * names, names));
    if (!done) return done;
  }
  return {};
}

Result<std::unique_ptr<Dataset>> open_dataset(const DataSpec& spec, const ModelSpec& model,
                                              const std::filesystem::path& folder) {
  if (spec.name == "digits") return digits_dataset(spec.samples, spec.seed);
  if (spec.name == "idx" || spec.name == "cifar" || spec.name == "text") return open_files(spec, model.context, folder);
  if (spec.name == "images") return open_images(folder / spec.files[0], spec.shape);
  if (spec.name == "dials") return open_dials(spec, folder);
  if (spec.name == "synthetic") return open_synthetic(spec);
  if (spec.name == "count") return std::make_unique<CountDataset>(spec.samples);
  return fail("data '{}' is not known", spec.name);
}

Result<void> check_alike(const Dataset& training, const Dataset& validation) {
  if (training.shape() == validation.shape() && validation.classes() <= training.classes()) return {};
  return fail("validation samples have shape {}, want {} as the training samples", shown_shape(validation),
              shown_shape(training));
}

}  // namespace mayfly
