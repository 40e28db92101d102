#include "data/pictures.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"

namespace mayfly {
namespace {

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return number;
}

struct IdxHeader {
  std::array<std::uint64_t, 3> dimensions{1, 1, 1};
  std::size_t size = 0;  ///< of the header itself
};

Result<IdxHeader> idx_header(const ByteFile& bytes, std::size_t dimensions) {
  constexpr std::uint32_t kBytes = 0x800;
  const auto& file = bytes.name();
  IdxHeader header{.size = 4 + 4 * dimensions};
  if (bytes.size() < header.size) return fail("{}: {} bytes, want a header of {}", file, bytes.size(), header.size);
  const auto text = bytes.text(0, header.size);
  if (!text) return unexpected(text.error());
  const auto magic = big_endian(*text, 0);
  const auto wanted = static_cast<std::uint32_t>(kBytes + dimensions);
  if (magic != wanted)
    return fail("{}: begins with {:08x}, want {:08x} (hexadecimal; idx, bytes, {} dimension{})", file, magic, wanted,
                dimensions, dimensions > 1 ? "s" : "");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    header.dimensions[i] = big_endian(*text, 4 + 4 * i);
    // A dimension has 32 bits, so that the product stays below 2^64 wherever it was within the limit before.
    product = product > kMost >> 8 && header.dimensions[i] > 1 << 8 ? kMost + 1 : product * header.dimensions[i];
    product = std::min(product, kMost + 1);
  }
  if (product == 0) return fail("{}: header says nothing is in it, want at least one sample", file);
  if (product > kMost) return fail("{}: header says more than {} bytes follow", file, kMost);
  if (bytes.size() != header.size + product)
    return fail("{}: {} bytes, want {} as its header says", file, bytes.size(), header.size + product);
  return header;
}

/// Pictures lie behind each other in a file, each `record` bytes after the one before.
struct PictureFile {
  ByteFile bytes;
  std::uint64_t first = 0;  ///< byte of the first pixel
  std::uint64_t record = 0;
  std::int64_t begin = 0;  ///< number of its first picture
};

class PictureDataset final : public Dataset {
 public:
  PictureDataset(std::vector<PictureFile> files, std::array<int, 3> shape, std::vector<std::uint8_t> labels,
                 int classes)
      : files_(std::move(files)),
        shape_(shape),
        pixels_(static_cast<std::size_t>(shape[0]) * static_cast<std::size_t>(shape[1]) *
                static_cast<std::size_t>(shape[2])),
        labels_(std::move(labels)),
        classes_(classes) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::vector<int> shape() const override { return {shape_.begin(), shape_.end()}; }
  int labels() const override { return 1; }
  int classes() const override { return classes_; }
  bool in_files() const override {
    return std::any_of(files_.begin(), files_.end(), [](const auto& file) { return !file.bytes.in_memory(); });
  }
  Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const override {
    const auto after = std::upper_bound(files_.begin(), files_.end(), sample,
                                        [](std::int64_t number, const auto& file) { return number < file.begin; });
    const auto& file = *std::prev(after);
    raw.resize(pixels_);
    return file.bytes.read(file.first + static_cast<std::uint64_t>(sample - file.begin) * file.record, raw);
  }
  Result<void> prepare(std::int64_t sample, std::span<const std::byte> raw, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    MAYFLY_CHECK(raw.size() == pixels_ && inputs.size() == pixels_, "a picture");
    std::transform(raw.begin(), raw.end(), inputs.begin(),
                   [](std::byte pixel) { return static_cast<float>(pixel) / 127.5f - 1; });
    labels[0] = labels_[static_cast<std::size_t>(sample)];
    return {};
  }

 private:
  std::vector<PictureFile> files_;  ///< by their first picture
  std::array<int, 3> shape_;        ///< channels, height, width
  std::size_t pixels_;
  std::vector<std::uint8_t> labels_;
  int classes_;
};

constexpr std::size_t kCifarPixels = 3 * 32 * 32;
constexpr std::size_t kCifarRecord = 1 + kCifarPixels;

/// Adds those of a batch.
Result<void> read_cifar_labels(const ByteFile& batch, std::vector<std::uint8_t>& labels) {
  constexpr std::size_t kAtOnce = 256;  // records
  if (batch.size() == 0 || batch.size() % kCifarRecord != 0)
    return fail("{}: {} bytes, want a multiple of {} (a label and {} pixels)", batch.name(), batch.size(), kCifarRecord,
                kCifarPixels);
  for (std::uint64_t at = 0; at < batch.size(); at += kAtOnce * kCifarRecord) {
    const auto records = batch.text(at, kAtOnce * kCifarRecord);
    if (!records) return unexpected(records.error());
    for (std::size_t i = 0; i < records->size(); i += kCifarRecord) {
      const auto label = static_cast<std::uint8_t>((*records)[i]);
      if (label > 9)
        return fail("{}: record {} has label {}, want 0 to 9", batch.name(), (at + i) / kCifarRecord + 1, label);
      labels.push_back(label);
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_idx(ByteFile images, const ByteFile& labels) {
  const auto header = idx_header(images, 3);
  if (!header) return unexpected(header.error());
  const auto labels_header = idx_header(labels, 1);
  if (!labels_header) return unexpected(labels_header.error());
  const auto [count, height, width] = header->dimensions;
  if (labels_header->dimensions[0] != count)
    return fail("{}: {} labels, want {} for the images of {}", labels.name(), labels_header->dimensions[0], count,
                images.name());
  constexpr std::uint64_t kMostPixelsOfIdx = std::uint64_t{1} << 31;
  if (height * width > kMostPixelsOfIdx)
    return fail("{}: pictures of {} x {}, want at most {} pixels", images.name(), height, width, kMostPixelsOfIdx);
  const auto bytes = labels.text(labels_header->size, count);
  if (!bytes) return unexpected(bytes.error());
  std::vector<std::uint8_t> known(bytes->begin(), bytes->end());
  // Some cousins of MNIST have more classes; a part of a set may lack the last of its ten.
  const int classes = std::max(10, 1 + *std::max_element(known.begin(), known.end()));
  std::vector<PictureFile> files;
  files.push_back({.bytes = std::move(images), .first = header->size, .record = height * width});
  return std::make_unique<PictureDataset>(
      std::move(files), std::array{1, static_cast<int>(height), static_cast<int>(width)}, std::move(known), classes);
}

Result<std::unique_ptr<Dataset>> open_cifar(std::vector<ByteFile> batches) {
  MAYFLY_CHECK(!batches.empty(), "a batch");
  std::vector<PictureFile> files;
  std::vector<std::uint8_t> labels;
  for (auto& batch : batches) {
    const auto begin = static_cast<std::int64_t>(labels.size());
    if (auto read = read_cifar_labels(batch, labels); !read) return unexpected(read.error());
    files.push_back({.bytes = std::move(batch), .first = 1, .record = kCifarRecord, .begin = begin});
  }
  return std::make_unique<PictureDataset>(std::move(files), std::array{3, 32, 32}, std::move(labels), 10);
}

}  // namespace mayfly
