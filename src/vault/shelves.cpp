#include "vault/shelves.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

/// A writer that was lost leaves one behind; more than one at a time is rare.
constexpr std::size_t kMostIncoming = 4;
constexpr std::array kCheckpointFiles{kModelFile, kOptimiserFile, kStateFile};

bool left_out(const fs::path& path) {
  const std::string name = path.filename().string();
  std::error_code error;
  const bool run = (fs::exists(path / "request.json", error) && fs::exists(path / "journal.jsonl", error)) ||
                   fs::exists(path / kRunFile, error);
  return name.starts_with('.') || name == "__pycache__" || name == "mayfly-runs" || run;
}

std::optional<std::int64_t> step_of(std::string_view checkpoint) {
  constexpr std::string_view kBefore = "checkpoint-";
  if (!checkpoint.starts_with(kBefore)) return std::nullopt;
  const auto step = parse_number(checkpoint.substr(kBefore.size()));
  if (!step || *step < 0 || *step > 1e15 || checkpoint_name(static_cast<std::int64_t>(*step)) != checkpoint)
    return std::nullopt;
  return static_cast<std::int64_t>(*step);
}

bool is_checkpoint_file(std::string_view file) {
  return std::ranges::find(kCheckpointFiles, file) != kCheckpointFiles.end();
}

Result<std::string> piece_of(const fs::path& path, std::int64_t offset, std::int64_t count) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found{};
  if (file.descriptor() < 0 || ::fstat(file.descriptor(), &found) != 0)
    return fail("{}: cannot be read: {}", path.string(), std::strerror(errno));
  if (!S_ISREG(found.st_mode)) return fail("{}: is no file", path.string());
  std::string bytes(static_cast<std::size_t>(std::clamp<std::int64_t>(found.st_size - offset, 0, count)), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const auto got =
        ::pread(file.descriptor(), bytes.data() + have, bytes.size() - have, offset + static_cast<std::int64_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail("{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (got == 0) break;  // it has shrunk since
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace

Shelves::Shelves(std::vector<ShelfRoot> roots, fs::path checkpoints, std::function<void(std::function<void()>)> post)
    : roots_(std::move(roots)), checkpoints_(std::move(checkpoints)), post_(std::move(post)) {}

void Shelves::ask(FromCarrier message, Answer answer) {
  thread_.add([this, message = std::move(message), told = std::move(answer)] {
    auto done = std::visit([this](const auto& asked) { return this->answer(asked); }, message);
    if (!done) done = Undone{done.error().message};
    post_([told, done = *std::move(done)] { told(done); });
  });
}

Result<void> Shelves::add_file(const std::string& name, const fs::path& path) {
  if (entries_.size() >= kMostFiles)
    return fail(
        "{}: more than {} files below the folder of the job: want a smaller workdir, or files that machines share",
        path.string(), kMostFiles);
  std::error_code error;
  const auto changed = fs::last_write_time(path, error);
  const auto size = fs::file_size(path, error);
  if (error) return fail("{}: {}", path.string(), error.message());
  if (valid_utf8(name) != name.size())
    return fail("{}: a name that is not UTF-8 cannot travel", printable(path.string()));
  Entry& entry = entries_[name];
  const auto known = before_.find(name);
  if (known != before_.end() && known->second.path == path && known->second.changed == changed &&
      known->second.seal.bytes == size) {
    entry = known->second;
    return {};
  }
  const auto seal = seal_of(path);
  if (!seal) return unexpected(seal.error());
  const auto rights = fs::status(path, error).permissions();
  entry = {
      .path = path, .changed = changed, .seal = *seal, .program = (rights & fs::perms::owner_exec) != fs::perms::none};
  return {};
}

Result<void> Shelves::add(const std::string& name, const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return add_file(name, path);
  for (auto entry = fs::recursive_directory_iterator(path, error); entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    if (error) return fail("{}: {}", path.string(), error.message());
    if (left_out(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(error)) {
      const auto relative = entry->path().lexically_relative(path).generic_string();
      if (auto added = add_file((fs::path(name) / relative).generic_string(), entry->path()); !added) return added;
    }
  }
  if (error) return fail("{}: {}", path.string(), error.message());
  return {};
}

Result<ToCarrier> Shelves::answer(const Browse& /*message*/) {
  before_ = std::exchange(entries_, {});
  for (const ShelfRoot& root : roots_) {
    if (auto added = add(root.name, root.path); !added) {
      entries_ = std::exchange(before_, {});
      return unexpected(added.error());
    }
  }
  Shelved shelved;
  for (const auto& [name, entry] : entries_) {
    shelved.names.push_back(name);
    shelved.sizes.push_back(static_cast<std::int64_t>(entry.seal.bytes));
    shelved.hashes.push_back(fmt::format("{:016x}", entry.seal.xxh3));
    shelved.programs.push_back(entry.program);
  }
  return shelved;
}

Result<fs::path> Shelves::path_of(const std::string& name) const {
  if (const auto found = entries_.find(name); found != entries_.end()) return found->second.path;
  const auto parts = split(name, '/');
  const bool checkpoint = name.starts_with(kShelvedCheckpoints) && parts.size() == 3 && step_of(parts[1]) &&
                          is_checkpoint_file(parts[2]) && !checkpoints_.empty();
  if (checkpoint) return checkpoints_ / parts[1] / parts[2];
  return fail("{}: no file of this run", printable(name.substr(0, 200)));
}

Result<ToCarrier> Shelves::answer(const Fetch& message) {
  const auto path = path_of(message.name);
  if (!path) return unexpected(path.error());
  auto bytes = piece_of(*path, message.offset, message.count);
  if (!bytes) return unexpected(bytes.error());
  return Piece{.offset = message.offset, .bytes = *std::move(bytes)};
}

Result<Shelves::Incoming*> Shelves::incoming(const std::string& checkpoint) {
  const auto found = incoming_.find(checkpoint);
  if (found != incoming_.end()) return &found->second;
  const auto step = step_of(checkpoint);
  if (!step || checkpoints_.empty()) return fail("{}: no name of a checkpoint of this run", printable(checkpoint));
  if (incoming_.size() >= kMostIncoming) incoming_.erase(incoming_.begin());
  auto folder = WorkFolder::create(checkpoints_, *step);
  if (!folder) return unexpected(folder.error());
  return &incoming_.emplace(checkpoint, Incoming{.folder = *std::move(folder)}).first->second;
}

/// A writer that begins anew, after a broken connection, begins at 0.
Result<ToCarrier> Shelves::answer(const Bring& message) {
  if (!is_checkpoint_file(message.file)) return fail("{}: no file of a checkpoint", printable(message.file));
  auto held = incoming(message.checkpoint);
  if (!held) return unexpected(held.error());
  Incoming& checkpoint = **held;
  if (message.offset == 0) {
    checkpoint.files.erase(message.file);
    auto file = NewFile::create(checkpoint.folder.path() / message.file);
    if (!file) return unexpected(file.error());
    checkpoint.files.emplace(message.file, *std::move(file));
    checkpoint.sizes[message.file] = 0;
  }
  const auto file = checkpoint.files.find(message.file);
  std::int64_t& size = checkpoint.sizes[message.file];
  if (file == checkpoint.files.end() || size != message.offset)
    return fail("{}: {} bytes of {} are here, and those from {} on came", message.checkpoint, size, message.file,
                message.offset);
  if (auto written = file->second.write(message.bytes); !written) {
    incoming_.erase(message.checkpoint);  // the space is free again
    return unexpected(written.error());
  }
  size += static_cast<std::int64_t>(message.bytes.size());
  return Taken{};
}

Result<ToCarrier> Shelves::answer(const Keep& message) {
  const auto found = incoming_.find(message.checkpoint);
  if (found == incoming_.end()) return fail("{}: nothing of it was brought", printable(message.checkpoint));
  auto node = incoming_.extract(found);
  Incoming& checkpoint = node.mapped();
  for (const std::string_view name : kCheckpointFiles) {
    const auto file = checkpoint.files.find(std::string(name));
    if (file == checkpoint.files.end()) return fail("{}: {} was not brought", message.checkpoint, name);
    if (const auto closed = file->second.close(); !closed) return unexpected(closed.error());
  }
  const fs::path place = checkpoints_ / message.checkpoint;
  if (auto synced = sync_folder(checkpoint.folder.path()); !synced) return unexpected(synced.error());
  if (auto moved = checkpoint.folder.move_to(place); !moved) return unexpected(moved.error());
  if (auto synced = sync_folder(checkpoints_); !synced) return unexpected(synced.error());
  return Kept{.path = place.string()};
}

}  // namespace mayfly
