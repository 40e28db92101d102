#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "wire/data_message.h"
#include "wire/drill_message.h"
#include "wire/measure_message.h"
#include "wire/server_message.h"
#include "wire/shelf_message.h"

namespace mayfly {

// The messages between the controller's process and its workers, one JSON document a frame. docs/protocol.md tells the
// story. At the end of this file they stand by direction: who may say what to whom. Everything that changes state
// carries the formation it belongs to: workers that stand together in one mesh. A formation's number is never used
// again, so a worker or server that is late is told apart by it.

/// Bumped when an older peer would misunderstand.
inline constexpr int kProtocol = 8;

// From a worker or server.

/// The first word. A worker that had a connection before gives the name it was given then, and what it holds.
struct Hello {
  int protocol = kProtocol;
  std::int64_t pid = 0;
  std::string role = "worker";  ///< "server": holds parameters for others; "operator": see Drill; "carrier": see Fetch
  int launch = -1;              ///< on the wire its slot: which of the engine's machines it is; -1: it came by itself
  std::optional<std::string> machine{};     ///< what the engine gave it as that machine: the slot is nobody else's
  std::optional<int> worker{};              ///< re-attaching under this name
  std::optional<std::int64_t> sample{};     ///< re-attaching: its weights hold this many samples
  std::optional<std::int64_t> pending{};    ///< where they would be if the step in its hands counts
  std::optional<std::int64_t> formation{};  ///< that this step was trained in
  bool operator==(const Hello&) const = default;
};
/// Data and network are loaded; it can be given work.
struct Ready {
  std::int64_t samples = 0;     ///< of one epoch
  std::string data{};           ///< what the data set is, to tell it from another; empty: not known
  std::int64_t parameters = 0;  ///< of the network
  double state_mb = 0;          ///< weights and moments
  double load_s = 0;
  std::string address{};               ///< of a server: where workers reach it, "127.0.0.1:40001"
  std::optional<std::string> cache{};  ///< of a worker: where others reach its cache
  bool operator==(const Ready&) const = default;
};
/// Where the others reach it in this formation: an opaque word.
struct Reachable {
  std::int64_t formation = 0;
  std::string address{};
  bool operator==(const Reachable&) const = default;
};
/// It stands in the formation, holds its state, and waits for Proceed.
struct Formed {
  std::int64_t formation = 0;
  bool operator==(const Formed&) const = default;
};
/// It holds the sum of all workers' gradients over this step and has not applied it.
struct StepDone {
  std::int64_t formation = 0;
  std::int64_t first_sample = 0;
  std::int64_t samples = 0;        ///< of all workers
  std::int64_t read = 0;           ///< reading_of() its own
  double loss = 0;                 ///< mean over them
  double compute_s = 0;            ///< of this worker, for its own part
  double exchange_s = 0;           ///< waiting for the others included
  std::optional<double> wait_s{};  ///< for data, before computing
  std::optional<double> validation_loss{};
  std::optional<double> accuracy{};
  /// Where it was asked: what it held before the step, "NAME VALUE" each, the same at all workers of a mesh.
  std::optional<std::vector<std::string>> state{};
  std::optional<double> compare_s{};  ///< that took
  bool operator==(const StepDone&) const = default;
};
/// Its gradient over a lease is staged at every server, applied by none. Without samples: only a look at validation.
struct Pushed {
  std::int64_t formation = 0;
  std::int64_t lease = 0;
  std::int64_t sample = 0;  ///< state of the parameters it was computed with
  std::int64_t read = 0;    ///< reading_of() the samples of the lease
  double loss = 0;          ///< mean over the lease
  double compute_s = 0;
  double pull_s = 0;               ///< waiting for the servers included
  double push_s = 0;               ///< what of it came after computing
  std::optional<double> wait_s{};  ///< for data, before computing
  std::optional<double> validation_loss{};
  std::optional<double> accuracy{};
  bool operator==(const Pushed&) const = default;
};
/// The formation broke: a peer is gone or silent. It holds its state and waits for the next one.
struct Broken {
  std::int64_t formation = 0;
  std::string what{};
  std::optional<std::vector<std::string>> unreached{};  ///< of the addresses it was given, those that do not answer
  bool operator==(const Broken&) const = default;
};
struct CheckpointWritten {
  std::int64_t sample = 0;
  std::string path{};
  double size_mb = 0;
  double stall_s = 0;  ///< training stood still
  double write_s = 0;  ///< in the background
  bool operator==(const CheckpointWritten&) const = default;
};
struct CheckpointFailed {
  std::int64_t sample = 0;
  std::string what{};
  bool operator==(const CheckpointFailed&) const = default;
};
/// It cannot do what it was told, for good: no such state, not enough memory.
struct Unable {
  std::string what{};
  bool operator==(const Unable&) const = default;
};
/// It will be taken away.
struct Leaving {
  double left_s = 0;
  std::optional<std::string> why{};  ///< for people: "aws: terminate"
  bool operator==(const Leaving&) const = default;
};
/// It may be taken away, at a time that is not known: it stays and works.
struct AtRisk {
  std::string why{};
  bool operator==(const AtRisk&) const = default;
};
/// Sent every heartbeat, whatever the training does; answered with the same.
struct Alive {
  std::optional<std::string> doing{};  ///< of a worker in the middle of a step: "data", "compute" or "exchange"
  bool operator==(const Alive&) const = default;
};

// From the controller.

struct Welcome {
  int worker = 0;
  std::string run{};        ///< its name among all runs: checkpoints carry it
  std::string job{};        ///< text of the job file
  std::string job_file{};   ///< its path: messages name it, data files are relative to its folder
  std::string directory{};  ///< where checkpoints go
  double heartbeat_s = 0.5;
  double lease_s = 2;    ///< silence after which the controller takes a worker for lost
  double orphan_s = 30;  ///< silence after which a worker takes the controller for gone: it checkpoints and ends
  // Of the job, for workers that do not read it.
  std::int64_t seed = 1;         ///< of the order of samples
  bool sum = false;              ///< losses of a batch are added up, not averaged
  std::optional<double> clip{};  ///< largest norm of the gradient
  std::string network{};         ///< where a worker describes its network to the servers; empty: they know it
  bool private_network = false;  ///< what workers say to each other needs no encryption
  bool operator==(const Welcome&) const = default;
};
/// Not known, not wanted, or its lease has ended: what it holds counts for nothing.
struct Refused {
  std::string why{};
  bool operator==(const Refused&) const = default;
};
/// Stand together: drop the old mesh, say where you can be reached, wait for Peers. `source` has the state of `sample`,
/// or takes it from `checkpoint` (empty: first weights), and hands it to the ranks in `receivers`.
struct Form {
  std::int64_t formation = 0;
  int rank = 0;
  int size = 0;
  std::int64_t sample = 0;
  int source = 0;
  std::string checkpoint{};
  bool from_checkpoint = false;
  std::vector<int> receivers{};
  bool operator==(const Form&) const = default;
};
struct Peers {
  std::int64_t formation = 0;
  std::vector<std::string> addresses{};  ///< by rank
  bool operator==(const Peers&) const = default;
};
/// Everything below `committed` counts: apply the step in hand if it ends there. Then train on the lease: rank r takes
/// counts[r] samples, behind those of the ranks before it. Without counts: wait.
struct Proceed {
  std::int64_t formation = 0;
  std::int64_t committed = 0;
  std::int64_t step = 0;  ///< number of the leased step, from 0 over the whole run
  std::vector<int> counts{};
  bool evaluate = false;  ///< on the validation set, before training
  bool compare = false;   ///< say what is held before training
  bool operator==(const Proceed&) const = default;
};
/// Write the state in hand; it goes on training meanwhile.
struct WriteCheckpoint {
  std::int64_t formation = 0;
  bool operator==(const WriteCheckpoint&) const = default;
};
/// Stop what is being done for a formation and wait; weights stay.
struct Halt {
  std::int64_t formation = 0;
  bool operator==(const Halt&) const = default;
};
/// It does not get on: its log is to say where it is, as far as it can be told.
struct Explain {
  bool operator==(const Explain&) const = default;
};
/// The end: leave with exit code 0.
struct Leave {
  std::string why{};
  bool operator==(const Leave&) const = default;
};

// By direction. A receiver of one visits all of its alternatives, and names those that it ignores: a new message does
// not compile until every receiver has said what becomes of it.

/// What workers and servers, the members of a run, say once they are welcome.
using FromMember = std::variant<Ready, Reachable, Formed, StepDone, Pushed, Broken, CheckpointWritten, CheckpointFailed,
                                Unable, Leaving, AtRisk, Fed, Measurement, Alive>;
/// What they are told.
using ToMember = std::variant<Welcome, Refused, Alive, Form, Peers, Proceed, WriteCheckpoint, Serve, Attach, Lease,
                              Commit, Forget, Save, Halt, Neighbours, Measure, Watch, Explain, Leave>;
/// What operators ask, and what they are answered.
using FromOperator = std::variant<Drill>;
using ToOperator = std::variant<Drilling, Refused>;
/// What carriers ask, and what they are answered.
using FromCarrier = std::variant<Browse, Fetch, Bring, Keep>;
using ToCarrier = std::variant<Shelved, Piece, Taken, Kept, Undone, Refused>;
/// What reaches a controller, from whomever: first Hello, which says who it is.
using ToController = std::variant<Hello, FromMember, FromOperator, FromCarrier>;

// For ToController, ToMember, ToOperator and ToCarrier, the directions.

/// {"message": "proceed", ...}; the name is the struct's in lower case with '-'. `bytes` stand behind it.
template <class Direction>
std::string encoded(const std::type_identity_t<Direction>& message);
/// Messages that are unknown or of another direction, missing or unknown keys, and values out of range are errors.
template <class Direction>
Result<Direction> decoded(std::string_view text);

}  // namespace mayfly
