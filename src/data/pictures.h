#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace mayfly {

/// Pictures of one size with one label each, a byte for each pixel: channel by channel, row by row.
struct Pictures {
  std::array<int, 3> size{};  ///< channels, height, width
  int classes = 10;
  std::vector<std::uint8_t> pixels{};
  std::vector<std::uint8_t> labels{};
};

/// The format of MNIST: 00 00 08 DIMENSIONS, each dimension in four bytes, the largest first, then the bytes.
/// http://yann.lecun.com/exdb/mnist/
Result<Pictures> parse_idx(std::string_view images, const std::string& images_file, std::string_view labels,
                           const std::string& labels_file);

/// A binary batch of CIFAR-10: records of a label and 3 x 32 x 32 pixels. https://www.cs.toronto.edu/~kriz/cifar.html
/// Adds to the pictures; empty ones become CIFAR's.
Result<void> add_cifar(std::string_view batch, const std::string& file, Pictures& pictures);

/// Black is read as -1, full light as 1.
std::unique_ptr<Dataset> picture_dataset(Pictures pictures);

}  // namespace mayfly
