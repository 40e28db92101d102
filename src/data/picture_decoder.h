#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// A picture in memory, a byte for each channel of each pixel: row by row, the channels of a pixel side by side.
struct Pixels {
  int channels = 0;  ///< 1 or 3
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> bytes{};
};

/// What a picture may unfold into.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;

/// A JPEG or PNG file in memory as grey (1) or RGB (3); transparent parts lie on black. A JPEG that is at least twice
/// as large as wanted may come out smaller, yet not smaller than wanted: that is cheaper. Damaged, unfinished or larger
/// files are errors that name the file.
Result<Pixels> decoded_picture(std::span<const std::byte> bytes, const std::string& file, int channels,
                               int wanted_height, int wanted_width);

/// The middle of the picture in this size: shrunk or enlarged until it just covers it (by a triangle filter, as PIL's
/// bilinear one), the rest cut off. Channel by channel; black is -1, full light 1.
void cover(const Pixels& picture, int height, int width, std::span<float> out);

}  // namespace mayfly
