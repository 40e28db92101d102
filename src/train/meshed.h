#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/gear.h"
#include "train/teamwork.h"

namespace mayfly {

/// A worker's part where workers add up their gradients among themselves. Each holds the whole state; an update is
/// applied only on the controller's word that its samples are committed.
class Meshed final : public Teamwork {
 public:
  explicit Meshed(Gear& gear) : gear_(gear) {}

  // Words of the controller. Each returns an error where the worker cannot go on at all.
  Result<void> form(const Form& form);
  Result<void> meet(const Peers& peers);
  Result<void> proceed(const Proceed& lease);
  Result<void> write_checkpoint(const WriteCheckpoint& word);

  bool stands(std::int64_t formation) const override { return stands_ && current(formation); }
  void halt(std::int64_t formation) override;
  void retire() override;
  Result<Seconds> exchange_time(std::int64_t bytes) override;
  std::optional<int> turn_to_save() const override;

 private:
  /// A step whose gradients are summed and whose word is awaited.
  struct Pending {
    std::int64_t first = 0;
    std::int64_t samples = 0;
    std::int64_t step = 0;
    int workers = 1;
    StepDone done{};
    std::int64_t end() const { return first + samples; }
  };

  bool current(std::int64_t formation) const { return form_ && form_->formation == formation; }
  Result<void> make_state(const Form& form);
  Result<void> receive_state();
  /// Applies the pending step if it ends here, and forgets it.
  void settle_pending(std::int64_t committed);
  Result<void> check(const Proceed& lease) const;
  /// Says what is held, for the controller to compare.
  void compare(StepDone& done);
  SampleRange own_part(const Proceed& lease) const;
  Result<void> train(const Proceed& lease, const Batch& batch, StepDone done);
  /// Adds up all workers' gradients and losses.
  Result<void> exchange(std::span<double> losses);
  Result<void> add_up(const Evaluation& part, StepDone& done);
  /// It may be that others cannot be reached.
  void break_formation(const std::string& what);
  void leave();

  Gear& gear_;
  std::optional<Pending> pending_{};
  std::optional<Form> form_{};
  std::vector<std::string> words_{};      ///< of its peers, by rank
  std::vector<std::string> doorsteps_{};  ///< likewise
  std::shared_ptr<Mesh> mesh_{};          ///< none while no formation stands or is being made
  bool stands_ = false;
};

}  // namespace mayfly
