#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/ledger.h"
#include "data/safetensors.h"

namespace mayfly {

/// Where the samples of a state come from. States that differ in it are of different trainings, whatever their names
/// and counts: samples would be repeated or skipped, were the one taken for the other.
struct Lineage {
  std::string run{};       ///< its name among all runs
  std::uint64_t seed = 1;  ///< of the order
  std::string data{};      ///< tells the data set from another; empty: not known
  bool operator==(const Lineage&) const = default;
};
/// What is not known on one side is not compared. The error names what differs.
Result<void> check_same(const Lineage& seen, const Lineage& wanted);

/// The state of a training besides its tensors. Format: docs/formats.md#checkpoint
struct TrainerState {
  std::int64_t sample = 0;  ///< committed samples: the weights hold each of them once an epoch
  std::int64_t step = 0;
  double loss = 0;    ///< mean over the last step's batch
  Lineage lineage{};  ///< its seed is, with `sample` and `step`, all there is to the state of random numbers
  std::vector<SampleRange> ledger{};  ///< committed
  std::string job{};                  ///< its name
  bool operator==(const TrainerState&) const = default;
};

/// Writes DIRECTORY/checkpoint-STEP/{model.safetensors,optimizer.safetensors,trainer_state.json}: into a folder beside
/// it first, synced, with the checksum of each file in trainer_state.json, then renamed. Nothing is left behind where
/// it fails. Asks for the space before it starts. An existing checkpoint of this step is replaced, unless it holds
/// files that are not mayfly's.
Result<std::filesystem::path> write_checkpoint(const std::filesystem::path& directory, const TrainerState& state,
                                               std::span<const TensorView> model,
                                               std::span<const TensorView> optimiser);

struct SavedState {
  std::filesystem::path path{};  ///< or the address in an object store
  TrainerState state{};
};
/// A checkpoint whose files are whole: format, sizes and checksums agree.
Result<SavedState> open_checkpoint(const std::filesystem::path& path);
struct CheckpointTensors {
  TensorFile model{};
  TensorFile optimiser{};
};
Result<CheckpointTensors> load_tensors(const SavedState& checkpoint);

struct FoundCheckpoint {
  std::optional<SavedState> checkpoint{};
  std::vector<std::string> broken{};  ///< newer ones that were passed over, and why
};
/// The checkpoint of this lineage with the most samples that is whole; `latest` is a hint for people and other
/// programs.
FoundCheckpoint newest_checkpoint(const std::filesystem::path& directory, const Lineage& lineage);
/// Marks the folder as this run's, or says whose it is: two runs must not share one.
Result<void> claim_folder(const std::filesystem::path& directory, const std::string& run);
/// Points DIRECTORY/latest at it, a symbolic link, and removes older ones but for the `keep` - 1 newest (`keep` is at
/// least 1), newer ones that are broken, and what broken writes left behind. Links, and folders with files that are not
/// mayfly's, stay; so does what another process is writing.
Result<void> publish_checkpoint(const std::filesystem::path& directory, const std::filesystem::path& checkpoint,
                                int keep);

}  // namespace mayfly
