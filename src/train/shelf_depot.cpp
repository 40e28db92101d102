#include "train/shelf_depot.h"

#include <utility>

#include "data/checkpoint_folder.h"
#include "vault/shelves.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

/// A folder of what is on its way, gone when that is over.
class Passing {
 public:
  explicit Passing(fs::path path) : path_(std::move(path)) {}
  ~Passing() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;
  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

}  // namespace

Result<fs::path> taken_checkpoint(const Carrier::Options& options, const std::string& checkpoint,
                                  const fs::path& folder) {
  const fs::path name = fs::path(checkpoint).filename();
  const fs::path place = folder / name;
  std::error_code error;
  fs::create_directories(place, error);
  if (error) return fail("{}: cannot create: {}", place.string(), error.message());
  Carrier carrier(options);
  for (const std::string_view file : {kModelFile, kOptimiserFile, kStateFile}) {
    const auto from = fmt::format("{}{}/{}", kShelvedCheckpoints, name.string(), file);
    if (const auto fetched = carrier.fetch(from, place / file); !fetched) return unexpected(fetched.error());
  }
  return place;
}

ShelfDepot::ShelfDepot(Carrier::Options carrier, fs::path folder)
    : carrier_(std::move(carrier)), folder_(std::move(folder)) {}

StoreResult<void> ShelfDepot::claim(const std::string& /*run*/, Seconds /*patience*/) {
  return {};
}  // the controller has

Result<FoundCheckpoint> ShelfDepot::newest(const Lineage& /*lineage*/) {
  return fail("only the controller knows what is saved");
}

Result<std::string> ShelfDepot::write(const TrainerState& state, std::span<const TensorView> model,
                                      std::span<const TensorView> optimiser) {
  const auto path = write_checkpoint(folder_ / "out", state, model, optimiser);
  if (!path) return unexpected(path.error());
  const Passing passing(*path);
  return Carrier(carrier_).bring(passing.path());
}

Result<ReadCheckpoint> ShelfDepot::read(const std::string& checkpoint) {
  const Passing passing(folder_ / "in" / fs::path(checkpoint).filename());
  const auto path = taken_checkpoint(carrier_, checkpoint, folder_ / "in");
  if (!path) return unexpected(path.error());
  const auto saved = open_checkpoint(*path);
  if (!saved) return unexpected(saved.error());
  auto tensors = load_tensors(*saved);
  if (!tensors) return unexpected(tensors.error());
  return ReadCheckpoint{.state = saved->state, .tensors = *std::move(tensors)};
}

Result<void> ShelfDepot::publish(const std::string& /*checkpoint*/, int /*keep*/) { return {}; }  // the controller does
void ShelfDepot::tidy() {}

}  // namespace mayfly
