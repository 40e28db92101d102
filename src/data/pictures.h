#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "data/byte_file.h"
#include "data/dataset.h"

// Pictures of one size with one label each, a byte for each pixel: channel by channel, row by row. Black is read as -1,
// full light as 1. Labels and sizes are checked at once, pixels are read from the files when they are asked for.
namespace mayfly {

/// The format of MNIST: 00 00 08 DIMENSIONS, each dimension in four bytes, the largest first, then the bytes.
/// http://yann.lecun.com/exdb/mnist/
Result<std::unique_ptr<Dataset>> open_idx(ByteFile images, const ByteFile& labels);

/// Binary batches of CIFAR-10: records of a label and 3 x 32 x 32 pixels. https://www.cs.toronto.edu/~kriz/cifar.html
/// Requires a batch.
Result<std::unique_ptr<Dataset>> open_cifar(std::vector<ByteFile> batches);

}  // namespace mayfly
