#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/gear.h"
#include "train/shard_client.h"
#include "train/teamwork.h"

namespace mayfly {

/// A worker's part where servers hold the parameters: one lease at a time is pulled for, computed and pushed.
class Served final : public Teamwork {
 public:
  explicit Served(Gear& gear) : gear_(gear) {}

  // Words of the controller. Each returns an error where the worker cannot go on at all.

  /// Leaves the servers of before for these.
  Result<void> attach(const Attach& servers);
  /// Moves the trainer's weights to what the servers hold. A lease that was done already is answered as it was.
  Result<void> take(const Lease& lease);

  bool stands(std::int64_t formation) const override { return formation_ == formation; }
  void halt(std::int64_t formation) override;
  void retire() override;
  Result<Seconds> exchange_time(std::int64_t bytes) override;
  std::optional<int> turn_to_save() const override { return std::nullopt; }

 private:
  /// Leaves the answer in done_, or breaks the formation where servers cannot be reached.
  Result<void> work(const Lease& lease);
  Result<void> pull(const Lease& lease, Pushed& pushed);
  Result<void> evaluate(Pushed& pushed);
  Result<void> train(const Lease& lease, const Batch& batch, Pushed& pushed);
  void break_formation(std::int64_t formation, const std::string& what);

  Gear& gear_;
  std::vector<std::string> addresses_{};  ///< of the servers
  std::shared_ptr<ShardClient> client_{};
  std::optional<std::int64_t> formation_{};  ///< none: attached to no servers
  std::optional<Pushed> done_{};             ///< the last lease's answer
};

}  // namespace mayfly
