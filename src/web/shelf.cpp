#include "web/shelf.h"

#include <algorithm>
#include <utility>

namespace mayfly {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kFreshFor{200};
/// Runs kept in memory; one that no client has asked for lately is read anew when one does.
constexpr std::size_t kMostWatched = 16;

/// What lies behind a link is not in the folder that is shown.
bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(path, error);
}

}  // namespace

WatchedRun::WatchedRun(fs::path directory, const Catalog* catalog)
    : directory_(std::move(directory)), catalog_(catalog), tail_(directory_ / "journal.jsonl") {}

WatchedRun::Snapshot WatchedRun::snapshot() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!looked_ || now - *looked_ >= kFreshFor) {
    refresh();
    looked_ = now;
  }
  return snapshot_;
}

void WatchedRun::refresh() {
  const LineTail::Lines lines = tail_.next();
  if (lines.anew) chronicle_ = Chronicle();
  for (const std::string& line : lines.lines) chronicle_.add(line);
  std::string seen;
  for (const char* file : {"status.json", "summary.json", "plan.json"}) {
    std::error_code error;
    const auto time = fs::last_write_time(directory_ / file, error);
    seen += error ? "-" : std::to_string(time.time_since_epoch().count()) + ",";
  }
  const bool held = driven(directory_);
  seen += held ? "driven" : "over";
  if (snapshot_.view && lines.lines.empty() && !lines.anew && seen == seen_) return;
  seen_ = seen;
  ViewContext context = load_view_context(directory_);
  context.catalog = catalog_;
  snapshot_.over = context.life != RunLife::running && context.life != RunLife::starting;
  // A user or a broken disk may have put anything into these files.
  snapshot_.view = std::make_shared<const std::string>(
      view_json(chronicle_, context).dump(-1, ' ', false, Json::error_handler_t::replace));
  ++snapshot_.version;
}

Shelf::Shelf(fs::path root, const Catalog* catalog) : root_(std::move(root)), catalog_(catalog) {}

std::vector<RunView> Shelf::runs() const {
  if (RunView alone = view_run(root_); alone.life != RunLife::none) return {std::move(alone)};
  auto views = view_runs(root_).value_or(std::vector<RunView>());
  std::erase_if(views, [](const RunView& view) { return is_link(view.directory); });
  return views;
}

std::optional<fs::path> Shelf::find(const std::string& name) const {
  std::error_code error;
  if (fs::exists(root_ / "request.json", error)) return name == run_name(root_) ? std::optional(root_) : std::nullopt;
  for (fs::directory_iterator entry(root_, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename() == name && !is_link(entry->path()) &&
        fs::exists(entry->path() / "request.json", error))
      return entry->path();
  }
  return std::nullopt;
}

std::shared_ptr<WatchedRun> Shelf::watch(const std::string& name) {
  const auto directory = find(name);
  if (!directory) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& run = watched_[name];
  if (!run) {
    run = std::make_shared<WatchedRun>(*directory, catalog_);
    auto kept = run;
    // Those that a request holds stay alive without the shelf.
    if (watched_.size() > kMostWatched)
      std::erase_if(watched_, [&](const auto& entry) { return entry.second.use_count() == 1; });
    return kept;
  }
  return run;
}

}  // namespace mayfly
