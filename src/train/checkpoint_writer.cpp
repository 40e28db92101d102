#include "train/checkpoint_writer.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "train/log.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;

/// Tensors whose bytes are their own.
struct Copy {
  std::vector<TensorView> model{}, optimiser{};
  std::vector<std::byte> bytes{};
};

std::size_t size_of(const std::vector<TensorView>& tensors) {
  std::size_t size = 0;
  for (const auto& tensor : tensors) size += tensor.bytes.size();
  return size;
}

std::byte* move_to(std::byte* place, std::vector<TensorView>& tensors) {
  for (auto& tensor : tensors) {
    if (!tensor.bytes.empty()) std::memcpy(place, tensor.bytes.data(), tensor.bytes.size());
    tensor.bytes = {place, tensor.bytes.size()};
    place += tensor.bytes.size();
  }
  return place;
}

std::shared_ptr<Copy> copy_of(Trainer& trainer) {
  auto copy = std::make_shared<Copy>();
  // Views are valid until the trainer's next call: the first set is copied before the second is asked for.
  copy->optimiser = trainer.optimiser_state();
  const auto moments = size_of(copy->optimiser);
  std::vector<std::byte> held(moments);
  move_to(held.data(), copy->optimiser);
  copy->model = trainer.model_state();
  copy->bytes.resize(moments + size_of(copy->model));
  move_to(move_to(copy->bytes.data(), copy->model), copy->optimiser);
  return copy;
}

FromMember written(Depot& depot, const TrainerState& state, const Copy& copy, Seconds stall) {
  const auto start = Clock::now();
  const auto path = depot.write(state, copy.model, copy.optimiser);
  if (!path) return CheckpointFailed{.sample = state.sample, .what = path.error().message};
  return CheckpointWritten{.sample = state.sample,
                           .path = *path,
                           .size_mb = in_megabytes(Bytes{static_cast<double>(copy.bytes.size())}),
                           .stall_s = stall.count(),
                           .write_s = Seconds(Clock::now() - start).count()};
}

}  // namespace

void CheckpointWriter::write(Depot& depot, const TrainerState& state, Trainer& trainer) {
  finish();  // an earlier one may still be on its way to the disk
  const auto start = Clock::now();
  const auto copy = copy_of(trainer);
  const Seconds stall = Clock::now() - start;
  write([&depot, state, copy, stall] { return written(depot, state, *copy, stall); });
}

void CheckpointWriter::write(std::function<FromMember()> work) {
  finish();
  thread_ = std::thread([this, work = std::move(work)] {
    auto message = work();
    if (const auto* failed = std::get_if<CheckpointFailed>(&message)) log("no checkpoint: {}", failed->what);
    if (const auto* saved = std::get_if<CheckpointWritten>(&message)) log("wrote {}", saved->path);
    told_(std::move(message));
  });
}

void CheckpointWriter::finish() {
  if (thread_.joinable()) thread_.join();
}

FromMember checkpoint_written(Depot& depot, const TrainerState& state, Trainer& trainer, Seconds stall) {
  return written(depot, state, *copy_of(trainer), stall);
}

}  // namespace mayfly
