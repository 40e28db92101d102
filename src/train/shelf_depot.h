#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "train/carrier.h"
#include "vault/depot.h"

namespace mayfly {

/// A checkpoint of the controller's computer, into FOLDER/NAME.
Result<std::filesystem::path> taken_checkpoint(const Carrier::Options& carrier, const std::string& checkpoint,
                                               const std::filesystem::path& folder);

/// The checkpoints of a run whose files this machine does not see: each is written here, brought to the controller's
/// computer, and forgotten here. What is to be read comes the same way.
class ShelfDepot final : public Depot {
 public:
  /// `folder`: of this machine's own.
  ShelfDepot(Carrier::Options carrier, std::filesystem::path folder);

  StoreResult<void> claim(const std::string& run, Seconds patience) override;
  /// Of those that were read or written here only: what the run holds its controller knows.
  Result<FoundCheckpoint> newest(const Lineage& lineage) override;
  Result<std::string> write(const TrainerState& state, std::span<const TensorView> model,
                            std::span<const TensorView> optimiser) override;
  Result<ReadCheckpoint> read(const std::string& checkpoint) override;
  Result<void> publish(const std::string& checkpoint, int keep) override;
  void tidy() override;

 private:
  const Carrier::Options carrier_;
  const std::filesystem::path folder_;
};

}  // namespace mayfly
