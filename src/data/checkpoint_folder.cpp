#include "data/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

namespace mayfly {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kHidden = ".checkpoint-";
constexpr std::string_view kPartial = ".partial";

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  // 007 and +7 are not names that mayfly gives.
  if (error != std::errc{} || end != name.data() + name.size() || checkpoint_name(step).substr(kPrefix.size()) != name)
    return std::nullopt;
  return step;
}

/// No other writer uses it: it has the process and a count of its own.
fs::path work_path(const fs::path& directory, std::string_view name) {
  static std::atomic<int> count = 0;
  return directory / fmt::format(".{}.{}-{}{}", name, ::getpid(), ++count, kPartial);
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

int opened(const fs::path& path) { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC); }

/// File by file: anything that came in meanwhile keeps the folder alive.
void remove_ours(const fs::path& folder) {
  std::error_code ignored;
  for (const auto name : {kModelFile, kOptimiserFile, kStateFile}) fs::remove(folder / name, ignored);
  fs::remove(folder, ignored);
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{}", kPrefix, step); }

std::vector<NamedCheckpoint> checkpoints_in(const fs::path& directory) {
  std::vector<NamedCheckpoint> found;
  for (const fs::path& entry : entries_of(directory)) {
    std::error_code ignored;
    const auto step = step_of(entry.filename().string());
    if (step && *step >= 0 && fs::is_directory(entry, ignored)) found.push_back({entry, *step});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return found;
}

bool is_ours(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(folder, ignored))) return false;
  const auto entries = entries_of(folder);
  return std::all_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    const std::string name = entry.filename().string();
    std::error_code unknown;
    return (name == kModelFile || name == kOptimiserFile || name == kStateFile) &&
           fs::is_regular_file(fs::symlink_status(entry, unknown));
  });
}

Result<WorkFolder> WorkFolder::create(const fs::path& directory, std::int64_t step) {
  constexpr int kTries = 4;
  for (int left = kTries;; --left) {
    const fs::path path = work_path(directory, checkpoint_name(step));
    std::error_code error;
    if (!fs::create_directory(path, error))
      return fail("{}: cannot create: {}", path.string(), error ? error.message() : "it is there already");
    const int lock = opened(path);
    // On file systems without locks no other process can tell a leftover either, so it is left alone.
    if (lock >= 0) ::flock(lock, LOCK_EX | LOCK_NB);
    // Until it was locked another process may have taken it for one, and removed it.
    if (fs::exists(path, error) || left == 1) return WorkFolder(path, lock);
    if (lock >= 0) ::close(lock);
  }
}

WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

WorkFolder::~WorkFolder() {
  if (!path_.empty()) remove_ours(path_);
  if (lock_ >= 0) ::close(lock_);
}

Result<void> WorkFolder::move_to(const fs::path& place) {
  std::error_code error;
  const bool taken = fs::exists(fs::symlink_status(place, error));
  if (taken && !is_ours(place))
    return fail("{}: holds files that are not mayfly's, will not replace it", place.string());
  if (taken && ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) return {};
  // A file system that cannot exchange: for a moment there is none.
  if (taken) remove_checkpoint(place);
  if (::rename(path_.c_str(), place.c_str()) != 0)
    return fail("{}: cannot move into place: {}", place.string(), std::strerror(errno));
  path_.clear();
  return {};
}

void remove_checkpoint(const fs::path& checkpoint) {
  const fs::path hidden = work_path(checkpoint.parent_path(), checkpoint.filename().string());
  std::error_code error;
  fs::rename(checkpoint, hidden, error);
  remove_ours(error ? checkpoint : hidden);
}

void remove_leftovers(const fs::path& directory) {
  for (const fs::path& entry : entries_of(directory)) {
    const std::string name = entry.filename().string();
    if (!name.ends_with(kPartial)) continue;
    std::error_code error;
    const bool folder = name.starts_with(kHidden) && is_ours(entry);
    const bool network = name.starts_with(kNetworkFile) && fs::is_regular_file(fs::symlink_status(entry, error));
    const int lock = folder || network ? opened(entry) : -1;
    if (lock < 0) continue;
    const bool nobody_writes = ::flock(lock, LOCK_EX | LOCK_NB) == 0;
    if (nobody_writes && folder) remove_ours(entry);
    if (nobody_writes && network) fs::remove(entry, error);
    ::close(lock);
  }
}

}  // namespace mayfly
