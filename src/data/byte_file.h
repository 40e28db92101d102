#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// A file that is read piece by piece while it stays where it is; a gzipped one is unpacked into memory. Its size is
/// that of the moment it was opened. Reading is const and may be done by many threads.
class ByteFile {
 public:
  static Result<ByteFile> open(const std::filesystem::path& path);
  /// Bytes in memory, under a name for messages.
  ByteFile(std::string bytes, std::string name);
  ~ByteFile();
  ByteFile(ByteFile&& other) noexcept;
  ByteFile& operator=(ByteFile&& other) noexcept;

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  bool in_memory() const { return descriptor_ < 0; }
  /// All of `out`, from `offset` on. What lies behind the size is an error, as is a file that has become shorter or a
  /// disk that fails.
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const;
  Result<std::string> text(std::uint64_t offset, std::size_t size) const;

 private:
  ByteFile() = default;

  std::string name_{};
  std::string bytes_{};
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// A whole small file, as it is now. Refuses what is larger than `most`.
Result<void> read_whole(const std::filesystem::path& path, std::size_t most, std::vector<std::byte>& out);

}  // namespace mayfly
