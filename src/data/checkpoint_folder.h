#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mayfly {

inline constexpr std::string_view kModelFile = "model.safetensors";
/// Beside the checkpoints, of a script's network whose state is with servers.
inline constexpr std::string_view kNetworkFile = "network.safetensors";
inline constexpr std::string_view kOptimiserFile = "optimizer.safetensors";
inline constexpr std::string_view kStateFile = "trainer_state.json";
/// In the folder of a run's checkpoints: whose it is.
inline constexpr std::string_view kRunFile = ".run";

std::string checkpoint_name(std::int64_t step);

struct NamedCheckpoint {
  std::filesystem::path path{};
  std::int64_t step = 0;
};
/// What is called checkpoint-STEP in the directory, newest first; links included, they can be read.
std::vector<NamedCheckpoint> checkpoints_in(const std::filesystem::path& directory);

/// A real folder with nothing in it but files that mayfly writes there.
bool is_ours(const std::filesystem::path& folder);

/// A folder that a checkpoint is written into, hidden, under a name of its own. Locked while it exists, so that others
/// can tell a write under way from what is left of a broken one. Removed at the end unless it was moved into place.
class WorkFolder {
 public:
  static Result<WorkFolder> create(const std::filesystem::path& directory, std::int64_t step);
  ~WorkFolder();
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Under its own name at last. A checkpoint that stands there changes places with it.
  Result<void> move_to(const std::filesystem::path& place);

 private:
  WorkFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_;
};

/// Under a hidden name first, so that a crash leaves no half of it under its own. Requires is_ours().
void remove_checkpoint(const std::filesystem::path& checkpoint);
/// Work folders, and halves of a network's description, that no process is writing.
void remove_leftovers(const std::filesystem::path& directory);

}  // namespace mayfly
