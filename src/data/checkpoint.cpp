#include "data/checkpoint.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "data/checkpoint_folder.h"
#include "data/new_file.h"
#include "data/trainer_state.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

/// For the state, the folder itself and the rounding up to blocks.
constexpr double kOverheadBytes = 64 * 1024;

double bytes_of(std::span<const TensorView> tensors) {
  double sum = static_cast<double>(safetensors_header(tensors, {}).size());
  for (const TensorView& tensor : tensors) sum += static_cast<double>(tensor.bytes.size());
  return sum;
}

Result<void> check_space(const fs::path& directory, double needed) {
  struct statvfs disk{};
  if (::statvfs(directory.c_str(), &disk) != 0)
    return fail("{}: cannot tell how much space is free: {}", directory.string(), std::strerror(errno));
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (free >= needed) return {};
  return fail("{}: a checkpoint needs {:.3f} MB, but only {:.3f} MB are free", directory.string(), needed / 1e6,
              free / 1e6);
}

Result<void> write_files(const fs::path& folder, const TrainerState& state, std::span<const TensorView> model,
                         std::span<const TensorView> optimiser) {
  StateFile content{.state = state};
  for (const auto& [name, tensors] : {std::pair(kModelFile, model), std::pair(kOptimiserFile, optimiser)}) {
    const auto seal = write_safetensors(folder / name, tensors, {});
    if (!seal) return unexpected(seal.error());
    content.files[std::string(name)] = *seal;
  }
  auto file = NewFile::create(folder / kStateFile);
  if (!file) return unexpected(file.error());
  if (auto done = file->write(state_text(content)); !done) return done;
  if (auto seal = file->close(); !seal) return unexpected(seal.error());
  return sync_folder(folder);
}

Result<StateFile> state_in(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kStateFile;
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  return parse_state(*text, path.string());
}

Result<void> check_files(const fs::path& checkpoint, const StateFile& content) {
  for (const auto name : {kModelFile, kOptimiserFile}) {
    const auto wanted = content.files.find(std::string(name));
    if (wanted == content.files.end())
      return fail("{}: does not say what {} should be", (checkpoint / kStateFile).string(), name);
    const auto seen = seal_of(checkpoint / name);
    if (!seen) return unexpected(seen.error());
    if (seen->bytes != wanted->second.bytes)
      return fail("{}: {} bytes, want {}", (checkpoint / name).string(), seen->bytes, wanted->second.bytes);
    if (seen->xxh3 != wanted->second.xxh3)
      return fail("{}: damaged: its checksum is {:016x}, want {:016x}", (checkpoint / name).string(), seen->xxh3,
                  wanted->second.xxh3);
  }
  return {};
}

Result<void> point_latest(const fs::path& directory, const fs::path& checkpoint) {
  const fs::path latest = directory / "latest";
  const fs::path partial = directory / ".latest.partial";
  std::error_code error;
  const auto status = fs::symlink_status(latest, error);
  if (fs::exists(status) && !fs::is_symlink(status))
    return fail("{}: is not the link that mayfly makes, will not replace it", latest.string());
  if (fs::is_symlink(fs::symlink_status(partial, error))) fs::remove(partial, error);
  fs::create_directory_symlink(checkpoint.filename(), partial, error);
  if (!error) fs::rename(partial, latest, error);
  if (error) return fail("{}: cannot write: {}", latest.string(), error.message());
  return sync_folder(directory);
}

}  // namespace

Result<fs::path> write_checkpoint(const fs::path& directory, const TrainerState& state,
                                  std::span<const TensorView> model, std::span<const TensorView> optimiser) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return fail("{}: cannot create: {}", directory.string(), error.message());
  if (auto space = check_space(directory, bytes_of(model) + bytes_of(optimiser) + kOverheadBytes); !space)
    return unexpected(space.error());
  auto folder = WorkFolder::create(directory, state.step);
  if (!folder) return unexpected(folder.error());
  if (auto done = write_files(folder->path(), state, model, optimiser); !done) return unexpected(done.error());
  fs::path place = directory / checkpoint_name(state.step);
  if (auto done = folder->move_to(place); !done) return unexpected(done.error());
  if (auto done = sync_folder(directory); !done) return unexpected(done.error());
  return place;
}

Result<SavedState> open_checkpoint(const fs::path& path) {
  auto content = state_in(path);
  if (!content) return unexpected(content.error());
  if (auto whole = check_files(path, *content); !whole) return unexpected(whole.error());
  return SavedState{.path = path, .state = std::move(content->state)};
}

Result<CheckpointTensors> load_tensors(const SavedState& checkpoint) {
  auto model = load_safetensors(checkpoint.path / kModelFile);
  if (!model) return unexpected(model.error());
  auto optimiser = load_safetensors(checkpoint.path / kOptimiserFile);
  if (!optimiser) return unexpected(optimiser.error());
  return CheckpointTensors{.model = std::move(*model), .optimiser = std::move(*optimiser)};
}

Result<void> check_same(const Lineage& seen, const Lineage& wanted) {
  const auto differ = [](const auto& a, const auto& b) { return !a.empty() && !b.empty() && a != b; };
  if (differ(seen.run, wanted.run)) return fail("of the run {}, want {}", seen.run, wanted.run);
  if (seen.seed != wanted.seed) return fail("its order of samples has seed {}, want {}", seen.seed, wanted.seed);
  if (differ(seen.data, wanted.data)) return fail("trained on other data: {}, want {}", seen.data, wanted.data);
  return {};
}

Result<void> claim_folder(const fs::path& directory, const std::string& run) {
  const fs::path mark = directory / kRunFile;
  const auto kept = load_text(mark);
  if (kept && trimmed(*kept) == run) return {};
  std::error_code error;
  std::string owner = kept ? std::string(trimmed(*kept)) : "";
  if (!kept && fs::exists(mark, error)) return unexpected(kept.error());
  for (const NamedCheckpoint& named : checkpoints_in(directory)) {
    const auto content = state_in(named.path);
    if (owner.empty() && content && content->state.lineage.run != run) owner = content->state.lineage.run;
  }
  if (owner.empty()) return save_text(mark, run + "\n");
  return fail("{}: holds the checkpoints of another run, {}: give this one a folder of its own", directory.string(),
              owner);
}

FoundCheckpoint newest_checkpoint(const fs::path& directory, const Lineage& lineage) {
  struct Candidate {
    NamedCheckpoint named{};
    std::int64_t sample = 0;
  };
  struct Broken {
    std::int64_t step = 0;
    std::string why{};
  };
  std::vector<Candidate> candidates;
  std::vector<Broken> broken;
  for (const NamedCheckpoint& named : checkpoints_in(directory)) {
    const auto content = state_in(named.path);
    const auto same = content ? check_same(content->state.lineage, lineage) : Result<void>{};
    if (!content) {
      broken.push_back({named.step, content.error().message});
    } else if (!same) {
      broken.push_back({named.step, fmt::format("{}: {}", named.path.string(), same.error().message)});
    } else {
      candidates.push_back({named, content->state.sample});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.sample > b.sample; });
  FoundCheckpoint found;
  for (const Candidate& candidate : candidates) {
    // The files are read only from the newest one on to the first that is whole: they may be large.
    auto saved = open_checkpoint(candidate.named.path);
    if (saved) {
      found.checkpoint = std::move(*saved);
      std::erase_if(broken, [&](const Broken& older) { return older.step < candidate.named.step; });
      break;
    }
    broken.push_back({candidate.named.step, saved.error().message});
  }
  std::stable_sort(broken.begin(), broken.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  for (Broken& one : broken) found.broken.push_back(std::move(one.why));
  return found;
}

Result<void> publish_checkpoint(const fs::path& directory, const fs::path& checkpoint, int keep) {
  MAYFLY_CHECK(keep >= 1, "the checkpoint just written is kept");
  const auto named = checkpoints_in(directory);
  const auto published = std::find_if(named.begin(), named.end(), [&](const NamedCheckpoint& one) {
    return one.path.filename() == checkpoint.filename();
  });
  if (published == named.end()) return fail("{}: no such checkpoint", checkpoint.string());
  if (auto done = point_latest(directory, checkpoint); !done) return done;
  for (auto newer = named.begin(); newer != published; ++newer)
    if (is_ours(newer->path) && !open_checkpoint(newer->path)) remove_checkpoint(newer->path);
  int kept = 1;
  for (auto older = std::next(published); older != named.end(); ++older)
    if (is_ours(older->path) && ++kept > keep) remove_checkpoint(older->path);
  remove_leftovers(directory);
  return sync_folder(directory);
}

}  // namespace mayfly
