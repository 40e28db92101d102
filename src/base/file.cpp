#include "base/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

namespace mayfly {
namespace fs = std::filesystem;

Result<std::string> load_text(const fs::path& path) {
  constexpr std::uintmax_t kLimit = 512u << 20;
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) return fail("{}: no such file", path.string());
  if (fs::is_directory(status)) return fail("{}: is a folder, want a file", path.string());
  if (fs::is_regular_file(status)) {
    const auto size = fs::file_size(path, error);
    if (!error && size > kLimit) return fail("{}: {} bytes, want at most {}", path.string(), size, kLimit);
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail("{}: cannot read: {}", path.string(), std::strerror(errno));
  // Devices and pipes have no size to look at beforehand.
  std::string text;
  std::vector<char> chunk(1u << 16);
  while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || in.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLimit) return fail("{}: more than {} bytes", path.string(), kLimit);
  }
  if (in.bad()) return fail("{}: reading failed", path.string());
  return text;
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
