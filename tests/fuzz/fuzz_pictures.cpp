#include <algorithm>
#include <vector>

#include "data/gzip.h"
#include "data/pictures.h"
#include "fuzz/fuzz.h"

namespace {

using mayfly::fuzz::kFile;
using mayfly::fuzz::require;

void check_pictures(const mayfly::Pictures& pictures) {
  const auto [channels, height, width] = pictures.size;
  const auto length = static_cast<std::size_t>(channels) * static_cast<std::size_t>(height) * width;
  require(!pictures.labels.empty() && length > 0, "there is a picture");
  require(pictures.pixels.size() == pictures.labels.size() * length, "every picture has its pixels");
  for (const auto label : pictures.labels) require(label < pictures.classes, "labels are below the classes");
  const auto data = mayfly::picture_dataset(pictures);
  const std::vector<std::int64_t> last{data->size() - 1};
  std::vector<float> inputs(length);
  std::vector<std::int64_t> labels(1);
  require(data->read(last, inputs, labels).has_value(), "what is in memory can be read");
  for (const float light : inputs) require(light >= -1 && light <= 1, "light is from -1 to 1");
}

}  // namespace

/// The first byte says how many of the following are labels, 255: that all are a batch of CIFAR.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto plain = mayfly::unpacked(std::string(mayfly::fuzz::text_of(data + 1, size - 1)), kFile, 1 << 20);
  if (!plain) {
    mayfly::fuzz::check_message(plain.error());
    return 0;
  }
  const std::string_view bytes = *plain;
  if (data[0] == 255) {
    mayfly::Pictures pictures;
    const auto added = mayfly::add_cifar(bytes, kFile, pictures);
    if (added) check_pictures(pictures);
    if (!added) mayfly::fuzz::check_message(added.error());
    return 0;
  }
  const auto cut = std::min<std::size_t>(data[0], bytes.size());
  const auto pictures = mayfly::parse_idx(bytes.substr(cut), kFile, bytes.substr(0, cut), kFile);
  if (pictures) check_pictures(*pictures);
  if (!pictures) mayfly::fuzz::check_message(pictures.error());
  return 0;
}
