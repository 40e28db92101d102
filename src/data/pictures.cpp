#include "data/pictures.h"

#include <algorithm>

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

Result<IdxHeader> parse_idx_header(std::string_view bytes, const std::string& file, std::size_t dimensions) {
  constexpr std::uint32_t kBytes = 0x800;
  IdxHeader header{.size = 4 + 4 * dimensions};
  if (bytes.size() < header.size) return fail("{}: {} bytes, want a header of {}", file, bytes.size(), header.size);
  const auto magic = big_endian(bytes, 0);
  const auto wanted = static_cast<std::uint32_t>(kBytes + dimensions);
  if (magic != wanted)
    return fail("{}: begins with {:08x}, want {:08x} (hexadecimal; idx, bytes, {} dimension{})", file, magic, wanted,
                dimensions, dimensions > 1 ? "s" : "");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    header.dimensions[i] = big_endian(bytes, 4 + 4 * i);
    product = header.dimensions[i] <= kMost ? std::min(product * header.dimensions[i], kMost + 1) : kMost + 1;
  }
  if (product == 0) return fail("{}: header says nothing is in it, want at least one sample", file);
  if (product > kMost) return fail("{}: header says more than {} bytes follow", file, kMost);
  if (bytes.size() != header.size + product)
    return fail("{}: {} bytes, want {} as its header says", file, bytes.size(), header.size + product);
  return header;
}

class PictureDataset final : public Dataset {
 public:
  explicit PictureDataset(Pictures pictures)
      : pictures_(std::move(pictures)), length_(pictures_.pixels.size() / pictures_.labels.size()) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(pictures_.labels.size()); }
  std::vector<int> shape() const override { return {pictures_.size.begin(), pictures_.size.end()}; }
  int labels() const override { return 1; }
  int classes() const override { return pictures_.classes; }
  Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const override {
    const auto* first = pixels().data() + static_cast<std::size_t>(sample) * length_;
    raw.assign(first, first + length_);
    return {};
  }
  Result<void> prepare(std::int64_t sample, std::span<const std::byte> raw, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    std::transform(raw.begin(), raw.end(), inputs.begin(),
                   [](std::byte pixel) { return static_cast<float>(pixel) / 127.5f - 1; });
    labels[0] = pictures_.labels[static_cast<std::size_t>(sample)];
    return {};
  }

 private:
  std::span<const std::byte> pixels() const { return std::as_bytes(std::span(pictures_.pixels)); }

  Pictures pictures_;
  std::size_t length_;
};

}  // namespace

Result<Pictures> parse_idx(std::string_view images, const std::string& images_file, std::string_view labels,
                           const std::string& labels_file) {
  const auto header = parse_idx_header(images, images_file, 3);
  if (!header) return unexpected(header.error());
  const auto labels_header = parse_idx_header(labels, labels_file, 1);
  if (!labels_header) return unexpected(labels_header.error());
  const auto count = header->dimensions[0];
  if (labels_header->dimensions[0] != count)
    return fail("{}: {} labels, want {} for the images of {}", labels_file, labels_header->dimensions[0], count,
                images_file);
  Pictures pictures{.size = {1, static_cast<int>(header->dimensions[1]), static_cast<int>(header->dimensions[2])}};
  pictures.pixels.assign(images.begin() + static_cast<std::ptrdiff_t>(header->size), images.end());
  pictures.labels.assign(labels.begin() + static_cast<std::ptrdiff_t>(labels_header->size), labels.end());
  // Some cousins of MNIST have more classes; a part of a set may lack the last of its ten.
  pictures.classes = std::max(10, 1 + *std::max_element(pictures.labels.begin(), pictures.labels.end()));
  return pictures;
}

Result<void> add_cifar(std::string_view batch, const std::string& file, Pictures& pictures) {
  constexpr std::size_t kPixels = 3 * 32 * 32;
  if (batch.empty() || batch.size() % (1 + kPixels) != 0)
    return fail("{}: {} bytes, want a multiple of {} (a label and {} pixels)", file, batch.size(), 1 + kPixels,
                kPixels);
  pictures.size = {3, 32, 32};
  for (std::size_t at = 0; at < batch.size(); at += 1 + kPixels) {
    const auto label = static_cast<std::uint8_t>(batch[at]);
    if (label > 9) return fail("{}: record {} has label {}, want 0 to 9", file, at / (1 + kPixels) + 1, label);
    pictures.labels.push_back(label);
    const auto picture = batch.substr(at + 1, kPixels);
    pictures.pixels.insert(pictures.pixels.end(), picture.begin(), picture.end());
  }
  return {};
}

std::unique_ptr<Dataset> picture_dataset(Pictures pictures) {
  MAYFLY_CHECK(!pictures.labels.empty(), "a picture");
  return std::make_unique<PictureDataset>(std::move(pictures));
}

}  // namespace mayfly
