#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/new_file.h"

namespace mayfly {

/// One tensor of a file, little-endian, row by row; the bytes belong to the caller or to a TensorFile.
struct TensorView {
  std::string name{};
  std::string dtype = "F32";  ///< F32, F64, F16, BF16, I64, I32, I16, I8, U8, BOOL
  std::vector<std::int64_t> shape{};
  std::span<const std::byte> bytes{};
};

/// How a file of these tensors begins: the length and the JSON, padded to 8 bytes; the bytes of the tensors follow,
/// widest dtype first and else in the order given, so that each is aligned. https://github.com/huggingface/safetensors
std::string safetensors_header(std::span<const TensorView> tensors, const std::map<std::string, std::string>& notes);
/// The whole file, synced, into what is there already. Doubled or reserved names and bytes that do not fit dtype and
/// shape are errors.
Result<FileSeal> write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                                   const std::map<std::string, std::string>& notes);

/// A file that is nowhere yet: how it begins, and the bytes that follow, which stay their owner's.
struct UnwrittenTensors {
  std::string header{};
  std::vector<std::span<const std::byte>> tensors{};
  /// All of it, in order; valid until this is moved or changed.
  std::vector<std::span<const std::byte>> pieces() const;
};
/// What write_safetensors would write, under a name for messages.
Result<UnwrittenTensors> unwritten_safetensors(const std::string& name, std::span<const TensorView> tensors,
                                               const std::map<std::string, std::string>& notes);

/// A file read into memory; views point into it (so move it, do not copy it) and may not be aligned for their type
/// where others wrote the file.
struct TensorFile {
  std::vector<std::byte> bytes{};
  std::vector<TensorView> tensors{};  ///< in the order of their bytes
  std::map<std::string, std::string> notes{};
  const TensorView* find(std::string_view name) const;
};
/// Offsets that leave the file, overlap, leave gaps or do not fit dtype and shape are errors, as are doubled names.
Result<TensorFile> parse_safetensors(std::vector<std::byte> bytes, const std::string& file);
Result<TensorFile> load_safetensors(const std::filesystem::path& path);

}  // namespace mayfly
