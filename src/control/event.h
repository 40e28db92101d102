#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "cloud/machine_kind.h"
#include "predict/shapes.h"

namespace mayfly {

/// Names one machine for the whole run; never used again for another.
using WorkerId = int;

// What the world tells the controller.

/// A machine is ready to work.
struct Joined {
  WorkerId worker = 0;
  std::string type{};
  std::string zone{};
  Market market = Market::spot;
  UsdPerHour price{};
  std::optional<Seconds> since{};  ///< paid for; none: from now on
  MachineKind kind() const { return {type, zone, market}; }
  bool operator==(const Joined&) const = default;
};
/// A machine will be taken back in `left`.
struct Notice {
  WorkerId worker = 0;
  Seconds left{};
  bool operator==(const Notice&) const = default;
};
/// A machine is gone, announced or not.
struct Lost {
  WorkerId worker = 0;
  bool returns = false;  ///< it is there, but nothing can be done with it for a while: it joins again under its name
  bool operator==(const Lost&) const = default;
};
/// The workers of a generation have trained on these samples, and the step is durable with them. Counts from the first
/// sample of the run, so an epoch is samples / size of the data set.
struct StepCommitted {
  std::int64_t generation = 0;
  double first_sample = 0;
  double samples = 0;
  bool operator==(const StepCommitted&) const = default;
};
/// A checkpoint holds everything up to this sample.
struct CheckpointDone {
  double sample = 0;
  bool operator==(const CheckpointDone&) const = default;
};
/// The workers of a generation found no state to start from: they start at a checkpoint, the last that was reported
/// unless they say otherwise. Comes before the first step of its generation; a state lost later is lost with its
/// machines, so another generation follows.
struct RolledBack {
  std::int64_t generation = 0;
  std::optional<double> sample{};  ///< where the checkpoint that was found is another one
  bool operator==(const RolledBack&) const = default;
};
/// What a generation has trained is nowhere any more, though its machines are there: the servers that held it are gone.
/// A new generation of the same machines follows, and finds no state to start from.
struct StateLost {
  std::int64_t generation = 0;
  bool operator==(const StateLost&) const = default;
};
/// Machines of a kind cost something else from now on, those held and those to come.
struct Priced {
  std::string type{};
  std::string zone{};
  UsdPerHour price{};
  Market market = Market::spot;
  MachineKind kind() const { return {type, zone, market}; }
  bool operator==(const Priced&) const = default;
};
/// Money was paid for a machine that never joined.
struct Charged {
  std::string type{};
  std::string zone{};
  Usd cost{};
  Market market = Market::on_demand;
  Seconds time{0};  ///< that it was paid for
  bool operator==(const Charged&) const = default;
};
/// The change under way will be over by then, as far as its workers can tell.
struct Expected {
  Seconds ready{};
  bool operator==(const Expected&) const = default;
};
/// The promise is now believed to need so many samples, counted from the first of the run: by a loss curve fitted anew,
/// or those committed, when the loss was reached.
struct Estimated {
  double samples = 0;
  bool operator==(const Estimated&) const = default;
};
/// The present shape trains at this ratio of its predicted speed.
struct Measured {
  double ratio = 1;
  bool operator==(const Measured&) const = default;
};
/// The time asked for by Wake. A first one, unasked, is the beginning of a run whose promise has a deadline: where the
/// market has nothing, nothing else would be told.
struct Tick {
  bool operator==(const Tick&) const = default;
};
using Event = std::variant<Joined, Notice, Lost, StepCommitted, CheckpointDone, RolledBack, StateLost, Priced, Charged,
                           Expected, Estimated, Measured, Tick>;

// What the controller tells the world.

/// Rent so many more of a kind. Without a type: of what there is.
struct Acquire {
  MachineKind kind{.market = Market::on_demand};
  int count = 0;
  bool operator==(const Acquire&) const = default;
};
/// Give the machine back; it is not spoken to again.
struct Release {
  WorkerId worker = 0;
  bool operator==(const Release&) const = default;
};
/// How a change of shape is carried out: what becomes of the machines that stay, and of what was trained.
enum class Mechanism {
  free,     ///< at no cost: what others are measured against
  start,    ///< every machine begins anew, and the state is sent to it
  reload,   ///< the state is saved, every machine begins anew and loads it
  rewind,   ///< after a loss every machine begins anew at the last checkpoint: what was trained since is lost
  shadow,   ///< every machine does its neighbour's work besides its own, and takes its place
  regroup,  ///< pipelines of prepared lengths: what is left of them copies what it lacks
  migrate,  ///< machines that stay keep what they hold; the others are sent it
};

/// From now on these workers train in this shape, and steps of older generations count for nothing. Members row by row:
/// pipeline after pipeline, stage after stage. The next sample to train on is `next_sample`.
struct Assign {
  std::int64_t generation = 0;
  Shape shape{};
  std::vector<WorkerId> members{};
  double next_sample = 0;
  int machines_before = 0;  ///< held when the last assignment was made or confirmed
  int lost = 0;             ///< of them, gone since
  Mechanism mechanism = Mechanism::migrate;
  bool operator==(const Assign&) const = default;
};
/// No worker trains until the next Assign.
struct Pause {
  std::int64_t generation = 0;
  bool operator==(const Pause&) const = default;
};
/// Finish what is in hand and hand over within the time left.
struct Drain {
  WorkerId worker = 0;
  Seconds left{};
  bool operator==(const Drain&) const = default;
};
struct Checkpoint {
  bool operator==(const Checkpoint&) const = default;
};
struct Finish {
  enum class Why { target, budget };
  Why why = Why::target;
  bool operator==(const Finish&) const = default;
};
/// For a person: the promise is in danger, and nothing that may be done about it helps.
struct Warn {
  std::string what{};
  bool operator==(const Warn&) const = default;
};
/// Send a Tick at that time; a later Wake replaces an earlier one.
struct Wake {
  Seconds at{};
  bool operator==(const Wake&) const = default;
};
using Command = std::variant<Acquire, Release, Assign, Pause, Drain, Checkpoint, Finish, Warn, Wake>;

std::string_view name(Finish::Why why);

/// One line of a journal: what happened or was commanded, as JSON without line break. An event that changed nothing
/// says why. docs/formats.md#journal
std::string journal_line(Seconds now, const Event& event, std::string_view ignored = {});
std::string journal_line(Seconds now, const Command& command, std::string_view reason);

struct TimedEvent {
  Seconds time{};
  Event event{};
  bool operator==(const TimedEvent&) const = default;
};
/// The event that a journal's line records; nothing for any other line. Numbers come back to the last bit.
std::optional<TimedEvent> event_in(std::string_view journal_line);

}  // namespace mayfly
