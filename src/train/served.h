#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "train/breaker.h"
#include "train/loaded_job.h"
#include "train/shard_client.h"
#include "train/throttle.h"
#include "wire/message.h"

namespace mayfly {

/// A worker's part where servers hold the parameters: one lease at a time is pulled for, computed and pushed.
class Served {
 public:
  struct Options {
    Credentials credentials{};
    std::shared_ptr<EmulatedNetwork> network{};
    std::optional<double> cpu_share{};  ///< of an emulated machine
  };
  /// The breaker can end every wait.
  Served(Options options, Breaker& breaker) : options_(std::move(options)), breaker_(breaker) {}

  /// Leaves the servers of before for these.
  Result<void> attach(const Attach& attach, std::size_t parameters, int worker);
  void detach();
  /// None: attached to no servers.
  std::optional<std::int64_t> formation() const { return formation_; }

  /// Moves the trainer's weights to what the servers hold. A lease that was done already is answered as it was. Broken
  /// where servers cannot be reached: it is then detached. An error where the data cannot be read.
  Result<Message> work(const Lease& lease, LoadedJob& job);

 private:
  Result<void> pull(const Lease& lease, Trainer& trainer, Pushed& pushed);
  Result<void> train(const Lease& lease, const Batch& batch, LoadedJob& job, Pushed& pushed);

  const Options options_;
  Breaker& breaker_;
  std::shared_ptr<ShardClient> client_{};
  std::optional<std::int64_t> formation_{};
  std::optional<Pushed> done_{};
};

}  // namespace mayfly
