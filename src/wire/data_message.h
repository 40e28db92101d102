#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mayfly {

// Messages about where samples come from. docs/protocol.md#caches

/// From the controller, to each worker that has said where its cache is: these have one, itself included, from now on.
/// A worker that is not named is gone.
struct Neighbours {
  std::vector<int> workers{};
  std::vector<std::string> addresses{};  ///< of the caches, by place in `workers`
  bool operator==(const Neighbours&) const = default;
};
/// From a worker, about once a second: what its loader has done since it started.
struct Fed {
  std::int64_t hits = 0;        ///< samples from its own cache
  std::int64_t from_peers = 0;  ///< from other workers' caches
  std::int64_t from_storage = 0;
  std::int64_t peers_failed = 0;  ///< asked a peer in vain
  std::int64_t prepared = 0;
  std::int64_t received = 0;  ///< samples that another job on the machine had prepared
  double fetch_s = 0;         ///< busy, over its threads
  double prep_s = 0;          ///< busy, over its threads
  double wait_s = 0;          ///< training waited for samples
  bool operator==(const Fed&) const = default;
};

}  // namespace mayfly
