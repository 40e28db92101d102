#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  StoreDepot(StoreUrl url, std::shared_ptr<StoreAccess> access, std::function<void(const std::string&)> said);

  StoreResult<void> claim(const std::string& run, Seconds patience) override;
  Result<FoundCheckpoint> newest(const Lineage& lineage) override;
  Result<std::string> write(const TrainerState& state, std::span<const TensorView> model,
                            std::span<const TensorView> optimiser) override;
  Result<ReadCheckpoint> read(const std::string& checkpoint) override;
  Result<void> publish(const std::string& checkpoint, int keep) override;
  void tidy() override;

 private:
  /// What is in the store of one checkpoint, by name of file.
  using Sizes = std::map<std::string, std::uint64_t>;
  /// What is to be there, in order.
  using Files = std::vector<std::pair<std::string_view, Pieces>>;
  struct Stored {
    StoredName checkpoint{};
    Sizes files{};
    bool committed() const;
  };
  /// Newest first, by step.
  StoreResult<std::vector<Stored>> stored(ObjectStore& store);
  StoreResult<void> send(const StoredName& name, const Files& files, const std::string& state);
  StoreResult<void> remove(ObjectStore& store, const Stored& stored);
  /// Uploads that nobody finishes, of steps up to this one.
  StoreResult<void> abort_unfinished(ObjectStore& store, std::int64_t last_step);
  StoreResult<void> clean(ObjectStore& store, const std::string& published, int keep);
  ObjectStore connected() const { return ObjectStore(access_, options_); }
  std::string key(const StoredName& name, std::string_view file) const;
  std::string address(const StoredName& name) const { return StoreUrl{url_.bucket, url_.key(name.name)}.text(); }

  StoreUrl url_;
  std::shared_ptr<StoreAccess> access_;
  ObjectStore::Options options_;
};

}  // namespace mayfly
