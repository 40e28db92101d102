#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"

struct XXH3_state_s;

namespace mayfly {

/// What was written to a file: enough to tell later whether it is still whole.
struct FileSeal {
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;  ///< XXH3, 64 bits, of all bytes
  bool operator==(const FileSeal&) const = default;
};

/// A file being written from its first byte on. It replaces what stood under its name.
class NewFile {
 public:
  static Result<NewFile> create(const std::filesystem::path& path);
  ~NewFile();
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  /// From here on the bytes survive a loss of power; the name does once its folder is synced too.
  Result<FileSeal> close();

 private:
  NewFile(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t bytes_ = 0;
  XXH3_state_s* hash_;
};

/// The seal of a file that holds these bytes, one after another.
FileSeal seal_of(std::span<const std::span<const std::byte>> pieces);
/// The seal of a file as it stands on the disk.
Result<FileSeal> seal_of(const std::filesystem::path& path);
std::uint64_t xxh3_of(std::string_view text);
std::uint64_t xxh3_of(std::span<const std::byte> bytes);

/// Creations, renamings and removals in the folder survive a loss of power from here on.
Result<void> sync_folder(const std::filesystem::path& folder);

}  // namespace mayfly
