#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// One tensor of a file, little-endian, row by row; the bytes belong to someone else.
struct TensorView {
  std::string name{};
  std::string dtype = "F32";  ///< F32, F64, F16, BF16, I64, I32, I16, I8, U8, BOOL
  std::vector<std::int64_t> shape{};
  std::span<const std::byte> bytes{};
};

/// The whole file; header padded to 8 bytes. https://github.com/huggingface/safetensors
std::string safetensors_header(std::span<const TensorView> tensors, const std::map<std::string, std::string>& notes);
Result<void> save_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& notes);

/// A file read into memory; views point into it.
struct TensorFile {
  std::vector<std::byte> bytes{};
  std::vector<TensorView> tensors{};
  std::map<std::string, std::string> notes{};
  const TensorView* find(std::string_view name) const;
};
/// Offsets that leave the file, overlap, leave gaps or do not fit dtype and shape are errors, as are doubled names.
Result<TensorFile> parse_safetensors(std::vector<std::byte> bytes, const std::string& file);
Result<TensorFile> load_safetensors(const std::filesystem::path& path);

}  // namespace mayfly
