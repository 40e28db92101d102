#include <algorithm>
#include <vector>

#include "data/gzip.h"
#include "data/pictures.h"
#include "fuzz/fuzz.h"

namespace {

using mayfly::fuzz::kFile;
using mayfly::fuzz::require;

void check_pictures(const mayfly::Result<std::unique_ptr<mayfly::Dataset>>& opened) {
  if (!opened) return mayfly::fuzz::check_message(opened.error());
  const auto& data = **opened;
  require(data.size() > 0 && data.length() > 0, "there is a picture");
  const std::vector<std::int64_t> ends{0, data.size() - 1};
  std::vector<float> inputs(2 * data.length());
  std::vector<std::int64_t> labels(2);
  require(data.read(ends, inputs, labels).has_value(), "every picture has its pixels");
  for (const auto label : labels) require(label >= 0 && label < data.classes(), "labels are below the classes");
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
  const auto file = [](std::string_view bytes) { return mayfly::ByteFile(std::string(bytes), kFile); };
  const std::string_view bytes = *plain;
  if (data[0] == 255) {
    std::vector<mayfly::ByteFile> batches;
    batches.push_back(file(bytes));
    check_pictures(mayfly::open_cifar(std::move(batches)));
    return 0;
  }
  const auto cut = std::min<std::size_t>(data[0], bytes.size());
  check_pictures(mayfly::open_idx(file(bytes.substr(cut)), file(bytes.substr(0, cut))));
  return 0;
}
