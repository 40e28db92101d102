#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mayfly {

// With parameter servers a formation is an arrangement of servers: it ends when one of them goes or comes. Workers come
// and go within it, and each has a lease of its own. A state of the parameters is named by the samples that it holds.

/// To a server: hold this shard, at the state of `sample`: what it has, or that of the server at `source`, or of a
/// checkpoint (empty: first weights). What was staged in earlier formations is forgotten. Answered by Formed.
struct Serve {
  std::int64_t formation = 0;
  int shard = 0;
  int shards = 1;
  std::int64_t sample = 0;
  std::string source{};
  std::string checkpoint{};
  bool from_checkpoint = false;
  bool operator==(const Serve&) const = default;
};
/// To a worker: these servers hold the parameters; address i that of shard i % shards, empty where it has no more.
/// Answered by Formed.
struct Attach {
  std::int64_t formation = 0;
  int shards = 1;
  std::vector<std::string> addresses{};
  bool operator==(const Attach&) const = default;
};
/// To a worker: pull the parameters, at `sample` or later, compute over these samples, push. No samples: only evaluate.
struct Lease {
  std::int64_t formation = 0;
  std::int64_t lease = 0;  ///< never used again in its formation
  std::int64_t sample = 0;
  std::int64_t first_sample = 0;
  std::int64_t samples = 0;
  double share = 1;       ///< the gradient's weight in its update
  bool evaluate = false;  ///< first, on the whole validation set
  bool operator==(const Lease&) const = default;
};
/// To a server at the state `from`: these leases, added up in this order, are an update, and lead to `sample`.
struct Commit {
  std::int64_t formation = 0;
  std::int64_t from = 0;
  std::int64_t sample = 0;
  std::vector<std::int64_t> leases{};
  std::int64_t step = 0;  ///< for the rate's schedule
  int workers = 1;        ///< for a rate that goes with them
  bool operator==(const Commit&) const = default;
};
/// To a server: these leases will never count.
struct Forget {
  std::int64_t formation = 0;
  std::vector<std::int64_t> leases{};
  bool operator==(const Forget&) const = default;
};
/// To the servers, one of each shard: keep a copy of the present state. The one with the others' addresses, by shard,
/// fetches theirs and writes the checkpoint.
struct Save {
  std::int64_t formation = 0;
  std::int64_t sample = 0;
  std::int64_t step = 0;
  double loss = 0;
  std::vector<std::int64_t> ledger{};    ///< committed samples: first, count, first, count ...
  std::vector<std::string> addresses{};  ///< empty: another server writes
  bool operator==(const Save&) const = default;
};

}  // namespace mayfly
