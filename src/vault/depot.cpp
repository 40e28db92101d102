#include "vault/depot.h"

#include <utility>

#include "data/checkpoint_folder.h"
#include "job/store_url.h"
#include "vault/object_store.h"
#include "vault/store_depot.h"

namespace mayfly {
namespace {

class FolderDepot : public Depot {
 public:
  explicit FolderDepot(std::filesystem::path folder) : folder_(std::move(folder)) {}

  StoreResult<void> claim(const std::string& run, Seconds) override {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error)
      return unexpected(
          StoreFailure{.message = fmt::format("{}: cannot create: {}", folder_.string(), error.message())});
    if (auto claimed = claim_folder(folder_, run); !claimed)
      return unexpected(StoreFailure{.message = claimed.error().message});
    return {};
  }
  Result<FoundCheckpoint> newest(const Lineage& lineage) override { return newest_checkpoint(folder_, lineage); }
  Result<std::string> write(const TrainerState& state, std::span<const TensorView> model,
                            std::span<const TensorView> optimiser) override {
    const auto path = write_checkpoint(folder_, state, model, optimiser);
    if (!path) return unexpected(path.error());
    return path->string();
  }
  Result<ReadCheckpoint> read(const std::string& checkpoint) override {
    auto saved = open_checkpoint(checkpoint);
    if (!saved) return unexpected(saved.error());
    auto tensors = load_tensors(*saved);
    if (!tensors) return unexpected(tensors.error());
    return ReadCheckpoint{.state = std::move(saved->state), .tensors = *std::move(tensors)};
  }
  Result<void> publish(const std::string& checkpoint, int keep) override {
    return publish_checkpoint(folder_, checkpoint, keep);
  }
  void tidy() override { remove_leftovers(folder_); }

 private:
  std::filesystem::path folder_;
};

}  // namespace

Result<std::unique_ptr<Depot>> open_depot(const std::string& place, const Surroundings& around,
                                          std::function<void(const std::string&)> said) {
  if (!is_store_url(place)) return std::make_unique<FolderDepot>(place);
  const auto url = parse_store_url(place);
  if (!url) return unexpected(url.error());
  auto access = StoreAccess::open(*url, around);
  if (!access) return unexpected(access.error());
  return std::make_unique<StoreDepot>(*url, *std::move(access), std::move(said));
}

}  // namespace mayfly
