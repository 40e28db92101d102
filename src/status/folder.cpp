#include "status/folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

constexpr int kLockTries = 40;
constexpr std::chrono::milliseconds kLockAgain{50};

std::filesystem::path lock_file(const std::filesystem::path& directory) { return directory / "run.lock"; }

struct flock whole_file() {
  struct flock region{};
  region.l_type = F_WRLCK;
  region.l_whence = SEEK_SET;
  return region;
}

/// Runs of before there was a status.json.
RunLife life_by_summary(const std::filesystem::path& directory) {
  const auto text = load_own_text(directory / "summary.json");
  const Json summary = text ? parsed_json(*text) : Json();
  if (!summary.is_object() || !summary.contains("end")) return RunLife::lost;
  return summary["end"] == "stopped" ? RunLife::stopped : RunLife::finished;
}

RunLife life_by_end(const RunStatus& status) {
  if (status.phase != "ended") return RunLife::lost;
  if (status.end == "stopped") return RunLife::stopped;
  return status.end == "failed" ? RunLife::failed : RunLife::finished;
}

}  // namespace

Result<RunLock> RunLock::take(const std::filesystem::path& directory) {
  if (const auto own = check_own_folder(directory); !own) return unexpected(own.error());
  const auto path = lock_file(directory);
  auto file = open_own_file(path, O_RDWR | O_CREAT);
  if (!file) return unexpected(file.error());
  // Of the open file, not of the process: it passes on to forked children and is not lost when one of them closes it.
  struct flock region = whole_file();
  int reason = 0;
  // Those who were killed a moment ago hold it until the kernel has ended them, and their children until they are
  // another program.
  for (int tries = 0; tries < kLockTries; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(kLockAgain);
    if (::fcntl(file->descriptor(), F_OFD_SETLK, &region) == 0) return RunLock(*std::move(file));
    reason = errno;
    if (reason != EAGAIN && reason != EACCES) break;
  }
  if (reason != EAGAIN && reason != EACCES) return fail("{}: cannot lock: {}", path.string(), std::strerror(reason));
  const auto status = load_status(directory);
  return fail("{}: is driven already{}; look at it: mayfly status {}", directory.string(),
              status ? fmt::format(", by process {} of {}",
                                   status->front.pid > 0 ? status->front.pid : status->controller.pid, status->host)
                     : "",
              directory.string());
}

bool driven(const std::filesystem::path& directory) {
  const auto file = open_own_file(lock_file(directory), O_RDONLY);
  if (!file) return false;
  struct flock region = whole_file();
  return ::fcntl(file->descriptor(), F_OFD_GETLK, &region) == 0 && region.l_type != F_UNLCK;
}

std::string_view name(RunLife life) {
  switch (life) {
    case RunLife::none:
      return "none";
    case RunLife::starting:
      return "starting";
    case RunLife::running:
      return "running";
    case RunLife::finished:
      return "finished";
    case RunLife::stopped:
      return "stopped";
    case RunLife::failed:
      return "failed";
    case RunLife::lost:
      return "lost";
  }
  return "";
}

RunView view_run(const std::filesystem::path& directory) {
  RunView view{.directory = directory};
  std::error_code error;
  if (!std::filesystem::exists(directory / "request.json", error)) return view;
  // Asked in this order, a run that ends meanwhile is seen as ended, not as lost.
  const bool held = driven(directory);
  if (auto status = load_status(directory)) view.status = *std::move(status);
  if (held) {
    view.life = view.status ? RunLife::running : RunLife::starting;
  } else {
    view.life = view.status ? life_by_end(*view.status) : life_by_summary(directory);
  }
  return view;
}

Json run_json(const RunView& view) {
  Json json{{"directory", view.directory.string()}, {"state", name(view.life)}};
  if (!view.status) return json;
  const Json status = status_json(*view.status);
  for (const auto& [key, value] : status.items()) json[key] = value;
  return json;
}

std::string run_name(const std::filesystem::path& directory) {
  const auto whole = std::filesystem::absolute(directory).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();  // "runs/count/"
}

Result<std::vector<RunView>> view_runs(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<RunView> views;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    RunView view = view_run(entry->path());
    if (view.life != RunLife::none) views.push_back(std::move(view));
  }
  if (error) return fail("{}: cannot read: {}", folder.string(), error.message());
  std::sort(views.begin(), views.end(), [](const auto& a, const auto& b) { return a.directory < b.directory; });
  return views;
}

}  // namespace mayfly
