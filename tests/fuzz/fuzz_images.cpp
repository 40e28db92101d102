#include <cmath>
#include <vector>

#include "data/picture_decoder.h"
#include "fuzz/fuzz.h"

/// The first byte chooses the channels and the size that is wanted, the rest is the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mayfly::fuzz::require;
  if (size == 0) return 0;
  const int channels = (data[0] & 1) != 0 ? 3 : 1;
  const int height = 1 + (data[0] >> 1 & 7), width = 1 + (data[0] >> 4);
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const auto picture = mayfly::decoded_picture(bytes, mayfly::fuzz::kFile, channels, height, width);
  if (!picture) {
    mayfly::fuzz::check_message(picture.error());
    return 0;
  }
  require(picture->height > 0 && picture->width > 0, "there is a picture");
  require(picture->bytes.size() == static_cast<std::size_t>(channels) * static_cast<std::size_t>(picture->height) *
                                       static_cast<std::size_t>(picture->width),
          "it has its pixels");
  std::vector<float> inputs(static_cast<std::size_t>(channels * height * width));
  mayfly::cover(*picture, height, width, inputs);
  for (const float light : inputs) require(light >= -1 && light <= 1, "light is from -1 to 1");
  return 0;
}
