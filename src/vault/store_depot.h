#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "job/store_url.h"
#include "vault/checkpoint_key.h"
#include "vault/depot.h"
#include "vault/object_store.h"

namespace mayfly {

/// Checkpoints in an object store. The tensors go first, and the state, which has their sizes and checksums, last and
/// only where none is: without it there is no checkpoint. Names say nothing that a listing does not: `latest` is for
/// people. Format: docs/formats.md#checkpoints-in-a-store
class StoreDepot : public Depot {
 public:
  /// `scratch`: files are written there before they are sent.
  StoreDepot(StoreUrl url, std::shared_ptr<StoreAccess> access, std::filesystem::path scratch,
             std::function<void(const std::string&)> said);

  StoreResult<void> claim(const std::string& run) override;
  Result<FoundCheckpoint> newest(const Lineage& lineage) override;
  Result<std::string> write(const TrainerState& state, std::span<const TensorView> model,
                            std::span<const TensorView> optimiser) override;
  Result<ReadCheckpoint> read(const std::string& checkpoint) override;
  Result<void> publish(const std::string& checkpoint, int keep) override;
  void tidy() override;

 private:
  /// What is in the store of one checkpoint: sizes by name of file.
  using Files = std::map<std::string, std::uint64_t>;
  struct Stored {
    StoredName checkpoint{};
    Files files{};
    bool committed() const;
  };
  /// Newest first, by step.
  StoreResult<std::vector<Stored>> stored(ObjectStore& store);
  StoreResult<void> send(const std::filesystem::path& folder, const StoredName& name);
  StoreResult<void> remove(ObjectStore& store, const Stored& stored);
  /// Uploads that nobody finishes, of steps up to this one.
  StoreResult<void> abort_unfinished(ObjectStore& store, std::int64_t last_step);
  StoreResult<void> clean(ObjectStore& store, const std::string& published, int keep);
  ObjectStore connected() const { return ObjectStore(access_, options_); }
  std::string key(const StoredName& name, std::string_view file) const;
  std::string address(const StoredName& name) const { return StoreUrl{url_.bucket, url_.key(name.name)}.text(); }

  StoreUrl url_;
  std::shared_ptr<StoreAccess> access_;
  std::filesystem::path scratch_;
  ObjectStore::Options options_;
};

}  // namespace mayfly
