#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

namespace mayfly {
namespace fs = std::filesystem;

OpenFile::OpenFile(OpenFile&& other) noexcept : descriptor_(other.release()) {}
OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}
int OpenFile::release() { return std::exchange(descriptor_, -1); }

Result<OpenFile> open_own_file(const fs::path& path, int flags, unsigned mode) {
  OpenFile file(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode));
  const int error = errno;
  struct stat status{};
  // A link is ELOOP, a pipe without a reader ENXIO.
  const bool odd = file.descriptor() < 0 ? error == ELOOP || error == ENXIO || error == EISDIR
                                         : ::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode);
  if (odd) return fail("{}: no regular file", path.string());
  if (file.descriptor() < 0 && error == ENOENT) return fail("{}: no such file", path.string());
  if (file.descriptor() < 0) return fail("{}: cannot open: {}", path.string(), std::strerror(error));
  return file;
}

Result<std::string> load_text(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) return fail("{}: no such file", path.string());
  if (fs::is_directory(status)) return fail("{}: is a folder, want a file", path.string());
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.descriptor() < 0) return fail("{}: cannot read: {}", path.string(), std::strerror(errno));
  return load_text(file, path);
}

Result<std::string> load_text(const OpenFile& file, const fs::path& name) {
  constexpr std::int64_t kLimit = 512 << 20;
  struct stat status{};
  if (::fstat(file.descriptor(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > kLimit)
    return fail("{}: {} bytes, want at most {}", name.string(), status.st_size, kLimit);
  // Devices and pipes have no size to look at beforehand.
  std::string text;
  std::vector<char> chunk(1u << 16);
  while (true) {
    const auto size = ::read(file.descriptor(), chunk.data(), chunk.size());
    if (size == 0) return text;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail("{}: reading failed", name.string());
    text.append(chunk.data(), static_cast<std::size_t>(size));
    if (text.size() > kLimit) return fail("{}: more than {} bytes", name.string(), kLimit);
  }
}

Result<void> save_text(const fs::path& path, std::string_view text) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (fs::is_directory(status)) return fail("{}: is a folder, want a file", path.string());
  // A device or a pipe is written to; putting a file in its place would take it away from its readers.
  const bool in_place = fs::exists(status) && !fs::is_regular_file(status);
  if (fs::is_regular_file(status) && (status.permissions() & fs::perms::owner_write) == fs::perms::none)
    return fail("{}: is read-only", path.string());
  const fs::path partial = in_place ? path : fs::path(path.string() + fmt::format(".{}.partial", ::getpid()));
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (!out) {
      const std::string reason = std::strerror(errno);
      if (!in_place) fs::remove(partial, ignored);
      return fail("{}: cannot write: {}", path.string(), reason);
    }
  }
  if (in_place) return {};
  std::error_code error;
  fs::rename(partial, path, error);
  if (error) {
    fs::remove(partial, ignored);
    return fail("{}: cannot write: {}", path.string(), error.message());
  }
  return {};
}

}  // namespace mayfly
