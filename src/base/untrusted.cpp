#include "base/untrusted.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

constexpr int kDeepestYaml = 100;

/// Whether brackets outside of strings are open deeper than that.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepestYaml) return true;
  }
  return false;
}

/// Of the thing itself, or of what a link leads to.
Result<void> check_owner(const fs::path& path, bool followed) {
  struct stat status{};
  if ((followed ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status)) != 0)
    return fail("{}: {}", path.string(), std::strerror(errno));
  if (status.st_uid == ::geteuid()) return {};
  return fail("{}: belongs to user {}, want {}: others could choose what is read or written there", path.string(),
              status.st_uid, ::geteuid());
}

}  // namespace

Json parsed_json(std::string_view text) {
  if (too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

Result<std::string> load_own_text(const fs::path& path) {
  const auto file = open_own_file(path, O_RDONLY);
  if (!file) return unexpected(file.error());
  return load_text(*file, path);
}

Result<std::string> load_secret(const fs::path& path) {
  const auto file = open_own_file(path, O_RDONLY);
  if (!file) return unexpected(file.error());
  struct stat status{};
  if (::fstat(file->descriptor(), &status) != 0) return fail("{}: cannot read", path.string());
  if (status.st_uid != ::geteuid())
    return fail("{}: belongs to user {}, want {}", path.string(), status.st_uid, ::geteuid());
  if ((status.st_mode & 077) != 0)
    return fail("{}: mode {:o}, want 600: others may read or change it", path.string(), status.st_mode & 0777);
  return load_text(*file, path);
}

Result<void> check_own_folder(const fs::path& folder) {
  if (auto fine = check_owner(folder, true); !fine) return fine;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (auto fine = check_owner(entry->path(), false); !fine) return fine;
    const bool link = entry->is_symlink(error);
    if (!entry->is_directory(error) && (link || !entry->is_regular_file(error)))
      return fail("{}: {}, want a regular file or a folder", entry->path().string(),
                  link ? "a link" : "a pipe, a device or a socket");
    error.clear();  // of a link to nowhere
  }
  if (error) return fail("{}: cannot read: {}", folder.string(), error.message());
  return {};
}

}  // namespace mayfly
