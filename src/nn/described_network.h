#pragma once

#include <filesystem>
#include <memory>

#include "nn/network.h"

// For nn/ alone: this header takes LibTorch along.
namespace mayfly {

/// What a script trains, as far as servers need to know it: names, shapes and first weights, from a file that its first
/// worker has written. docs/formats.md#network. It cannot compute.
Result<std::unique_ptr<Network>> load_described_network(const std::filesystem::path& file);

}  // namespace mayfly
