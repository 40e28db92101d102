#include "train/own_files.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "job/store_url.h"
#include "train/log.h"
#include "train/shelf_depot.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

/// Smaller ones are copied, so that a script that writes into its own folder changes nobody else's.
constexpr std::int64_t kLinked = 1 << 20;

/// Below the folder, whatever the name says.
bool stays_below(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  return std::ranges::none_of(path, [](const fs::path& part) { return part == ".." || part == "."; });
}

struct Wanted {
  std::string name{};
  FileSeal seal{};
  bool program = false;
};

Result<Wanted> wanted_of(const Shelved& shelved, std::size_t i) {
  const auto hash = std::stoull("0" + shelved.hashes[i].substr(0, 16), nullptr, 16);
  if (!stays_below(shelved.names[i]))
    return fail("'{}': want a path below the job's folder", printable(shelved.names[i]));
  return Wanted{.name = shelved.names[i],
                .seal = {.bytes = static_cast<std::uint64_t>(shelved.sizes[i]), .xxh3 = hash},
                .program = shelved.programs[i]};
}

/// Of machines that were killed while they fetched.
void remove_halves(const fs::path& cache) {
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache, error)) {
    std::error_code ignored;
    if (entry.path().filename().string().starts_with('.') && entry.last_write_time(ignored) < old)
      fs::remove(entry.path(), ignored);
  }
}

Result<void> place(const Wanted& file, const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  fs::remove(to, error);
  bool linked = false;
  if (file.seal.bytes >= kLinked) {
    fs::create_hard_link(from, to, error);
    linked = !error;
  }
  if (!linked) fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return fail("{}: {}", to.string(), error.message());
  auto rights = file.program ? fs::perms::owner_all : fs::perms::owner_read | fs::perms::owner_write;
  if (linked) rights &= ~fs::perms::owner_write;  // other machines read the same bytes
  fs::permissions(to, rights, error);
  return {};
}

}  // namespace

fs::path usual_cache() {
  if (const char* caches = std::getenv("XDG_CACHE_HOME"); caches != nullptr && *caches == '/')
    return fs::path(caches) / "mayfly" / "files";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && *home == '/' ? home : "/tmp") / ".cache" / "mayfly" / "files";
}

Result<void> fetch_files(const OwnFiles& own) {
  const fs::path &folder = own.folder, &cache = own.cache;
  Carrier carrier(own.carrier);
  const auto start = std::chrono::steady_clock::now();
  const auto shelved = carrier.browse();
  if (!shelved) return unexpected(shelved.error());
  std::error_code error;
  fs::create_directories(cache, error);
  fs::create_directories(folder / "job", error);
  if (error) return fail("{}: cannot create: {}", cache.string(), error.message());
  remove_halves(cache);
  std::int64_t fetched = 0;
  double bytes = 0;
  for (std::size_t i = 0; i < shelved->names.size(); ++i) {
    const auto file = wanted_of(*shelved, i);
    if (!file) return unexpected(file.error());
    const fs::path held = cache / fmt::format("{:016x}-{}", file->seal.xxh3, file->seal.bytes);
    const auto kept = fs::exists(held, error) ? seal_of(held) : Result<FileSeal>(fail("none"));
    if (!kept || *kept != file->seal) {
      // Another machine of this computer may fetch it too.
      const fs::path mine = cache / fmt::format(".{}-{}", ::getpid(), i);
      const auto seal = carrier.fetch(file->name, mine, static_cast<std::int64_t>(file->seal.bytes));
      if (!seal) return unexpected(seal.error());
      if (*seal != file->seal) {
        fs::remove(mine, error);
        return fail("{}: has changed while it was fetched", file->name);
      }
      fs::rename(mine, held, error);
      if (error) return fail("{}: {}", held.string(), error.message());
      ++fetched;
      bytes += static_cast<double>(seal->bytes);
    }
    if (auto placed = place(*file, held, folder / file->name); !placed) return placed;
  }
  const double took = Seconds(std::chrono::steady_clock::now() - start).count();
  log("files: {} of the job, {} of them ({:.1f} MB) fetched in {:.2f} s", shelved->names.size(), fetched, bytes / 1e6,
      took);
  return {};
}

Result<Welcome> at_home(Welcome welcome, const std::optional<OwnFiles>& own) {
  if (!own) return welcome;
  if (const auto fetched = fetch_files(*own); !fetched) return unexpected(fetched.error());
  welcome.job_file = (own->folder / "job" / fs::path(welcome.job_file).filename()).string();
  return welcome;
}

Result<std::unique_ptr<Depot>> run_depot(const std::string& place, const Surroundings& around,
                                         const std::optional<OwnFiles>& own) {
  if (own && !is_store_url(place)) return std::make_unique<ShelfDepot>(own->carrier, own->folder / "checkpoints");
  return open_depot(place, around, [](const std::string& text) { log("{}", text); });
}

}  // namespace mayfly
