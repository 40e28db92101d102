#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "data/meeting_place.h"

namespace mayfly {

/// Samples prepared once for several jobs on one machine that train on the same data in the same order, as those of a
/// search for hyper-parameters do. Places of the order are taken in *chunks*. Each chunk is prepared by whichever
/// member comes to it first, straight into shared memory, while the others prepare the chunks behind it; every member
/// takes every chunk it asks for, whichever member prepared it. What a chunk holds follows from its number alone, so
/// whatever is lost with a member is prepared again by who needs it, and nothing is ever counted on but time.
///
/// Members that stand *in step* wait for each other: no member's chunks are overwritten before all in step have passed
/// them, so no member gets further ahead of the last than the buffers reach. One that is killed is out of step at once;
/// one that keeps another waiting for longer than the patience (frozen, say) is left behind, and comes back in step
/// when it has caught up. One that is too far from the others to share anything goes alone until it is not.
///
/// For many threads at once.
class SharedPrep {
 public:
  struct Options {
    std::string name{};      ///< jobs that give the same meet
    std::uint64_t key = 0;   ///< of what they must agree on: data and order
    std::size_t inputs = 0;  ///< floats of a chunk
    std::size_t labels = 0;  ///< of a chunk
    int buffers = 8;         ///< chunks that each member has shared memory for
    int ahead = 8;           ///< chunks behind the one asked for that are worth preparing
    Seconds patience{30};
  };
  struct Counts {
    std::int64_t prepared = 0;     ///< chunks, by this member
    std::int64_t received = 0;     ///< chunks it took that another had prepared
    std::int64_t left_behind = 0;  ///< times
  };
  /// Writes the numbers of a chunk.
  using Prepare = std::function<Result<void>(std::int64_t chunk, std::span<float>, std::span<std::int64_t>)>;

  /// An error says why sharing is not possible; the caller then prepares by itself.
  static Result<std::unique_ptr<SharedPrep>> join(const Options& options);
  static MeetingPlace::Options place_of(const Options& options);
  ~SharedPrep();

  /// The chunk, from another or by preparing it, and meanwhile others that will be wanted. An error is `prepare`'s, or
  /// that it was stopped.
  Result<void> take(std::int64_t chunk, const Prepare& prepare, std::span<float> inputs,
                    std::span<std::int64_t> labels);
  /// A thread that waits for other members gets an error, now and later.
  void stop() { stopped_ = true; }
  Counts counts() const;
  /// Members in step, itself included; 0: it goes alone.
  int in_step();

 private:
  struct Member;
  struct Buffer;
  struct Plan;
  class Locked;
  using Clock = std::chrono::steady_clock;

  SharedPrep(const Options& options, std::unique_ptr<MeetingPlace> place);
  Plan plan(std::int64_t chunk);
  Plan plan_in_step(std::int64_t chunk);
  void step_in(std::int64_t chunk);
  bool fits_in(std::int64_t chunk);
  void sweep();
  void leave_behind(std::int64_t chunk);
  const Buffer* found(std::int64_t chunk);
  Buffer* own_room();
  bool claim(std::int64_t chunk, Plan& plan);
  std::optional<std::int64_t> unclaimed();
  std::int64_t floor() const;
  std::int64_t foremost() const;
  int standing() const;
  Seconds lease() const;

  Result<void> fill(const Plan& plan, const Prepare& prepare);
  bool copy(const Plan& plan, std::span<float> inputs, std::span<std::int64_t> labels);
  void pass(std::int64_t chunk);
  void go_alone();

  std::span<Member> members() const;
  std::span<Buffer> buffers() const;
  std::span<float> inputs_of(int buffer) const;
  std::span<std::int64_t> labels_of(int buffer) const;

  const Options options_;
  const std::unique_ptr<MeetingPlace> place_;
  std::atomic<bool> alone_ = false;  ///< for good: the place cannot be used any more
  std::atomic<bool> stopped_ = false;
  std::atomic<std::int64_t> prepared_ = 0, received_ = 0, left_behind_ = 0;

  // Under the place's lock.
  std::multiset<std::int64_t> asked_{};  ///< by threads that are in take()
  std::int64_t next_ = 0;                ///< behind the last that was asked for
  std::optional<Clock::time_point> passed_{};
  Clock::time_point swept_{};
  std::int64_t waited_floor_ = -1;  ///< where the last of them has stood since
  Clock::time_point waited_since_{};
};

}  // namespace mayfly
