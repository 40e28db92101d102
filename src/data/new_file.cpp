#include "data/new_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace mayfly {
namespace fs = std::filesystem;

NewFile::NewFile(fs::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor), hash_(XXH3_createState()) {
  XXH3_64bits_reset(hash_);
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      hash_(std::exchange(other.hash_, nullptr)) {}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (hash_ != nullptr) XXH3_freeState(hash_);
}

Result<NewFile> NewFile::create(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return fail("{}: cannot create: {}", path.string(), std::strerror(errno));
  return NewFile(path, descriptor);
}

Result<void> NewFile::write(std::span<const std::byte> bytes) {
  XXH3_64bits_update(hash_, bytes.data(), bytes.size());
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail("{}: cannot write: {}", path_.string(), std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<FileSeal> NewFile::close() {
  const bool synced = ::fsync(descriptor_) == 0;
  const int reason = errno;
  const bool closed = ::close(std::exchange(descriptor_, -1)) == 0;
  if (!synced || !closed) return fail("{}: cannot write: {}", path_.string(), std::strerror(synced ? errno : reason));
  return FileSeal{.bytes = bytes_, .xxh3 = XXH3_64bits_digest(hash_)};
}

FileSeal seal_of(std::span<const std::span<const std::byte>> pieces) {
  XXH3_state_t* const hash = XXH3_createState();
  XXH3_64bits_reset(hash);
  FileSeal seal;
  for (const auto piece : pieces) {
    XXH3_64bits_update(hash, piece.data(), piece.size());
    seal.bytes += piece.size();
  }
  seal.xxh3 = XXH3_64bits_digest(hash);
  XXH3_freeState(hash);
  return seal;
}

Result<FileSeal> seal_of(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail("{}: cannot read: {}", path.string(), std::strerror(errno));
  XXH3_state_t* const hash = XXH3_createState();
  XXH3_64bits_reset(hash);
  std::vector<char> chunk(1u << 20);
  std::uint64_t bytes = 0;
  ssize_t count = 0;
  while ((count = ::read(descriptor, chunk.data(), chunk.size())) > 0 || (count < 0 && errno == EINTR)) {
    if (count < 0) continue;
    XXH3_64bits_update(hash, chunk.data(), static_cast<std::size_t>(count));
    bytes += static_cast<std::uint64_t>(count);
  }
  const int reason = errno;
  const FileSeal seal{.bytes = bytes, .xxh3 = XXH3_64bits_digest(hash)};
  XXH3_freeState(hash);
  ::close(descriptor);
  if (count < 0) return fail("{}: cannot read: {}", path.string(), std::strerror(reason));
  return seal;
}

std::uint64_t xxh3_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }
std::uint64_t xxh3_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Result<void> sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return fail("{}: cannot open the folder: {}", folder.string(), std::strerror(errno));
  const bool synced = ::fsync(descriptor) == 0;
  const int reason = errno;
  ::close(descriptor);
  if (!synced) return fail("{}: cannot sync the folder: {}", folder.string(), std::strerror(reason));
  return {};
}

}  // namespace mayfly
