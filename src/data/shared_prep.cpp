#include "data/shared_prep.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace mayfly {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
/// In windows: a member that is further from the foremost has nothing to share soon.
constexpr std::int64_t kReach = 8;
/// How often those who wait look whether the others live.
constexpr Seconds kLook{0.02};

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

enum class Standing : std::uint32_t { absent, in_step, apart, behind };  ///< of a member
enum class State : std::uint32_t { free, preparing, ready };             ///< of a buffer
enum class What { copy, prepare, alone, wait };                          ///< a thread in take() does next

double seconds_now() { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

// What lies in shared memory. All zeros is a good state, and each store leaves one: a member writes only what is its
// own, and one word of others' (that they are behind, or dead).

struct SharedPrep::Member {
  Standing standing = Standing::absent;
  std::int64_t next = 0;      ///< the first chunk it may still ask for
  double longest_prep_s = 0;  ///< of a chunk, so far
  double longest_gap_s = 0;   ///< between two chunks that it took in step, so far
};

struct SharedPrep::Buffer {
  State state = State::free;
  std::uint32_t times = 0;  ///< that it was filled: tells a reader that it is no longer what it was
  std::int64_t chunk = 0;
  double since = 0;  ///< it is prepared
};

/// What a thread in take() does next.
struct SharedPrep::Plan {
  What what = What::wait;
  std::int64_t chunk = 0;
  int buffer = 0;
  std::uint32_t times = 0;
  std::uint32_t changes = 0;
};

/// The lock, as long as it lives. Without it the place is not to be used.
class SharedPrep::Locked {
 public:
  explicit Locked(SharedPrep& prep) : place_(*prep.place_), held_(!prep.alone_ && place_.lock()) {
    if (!held_) prep.go_alone();
  }
  ~Locked() {
    if (held_) place_.unlock(changed_);
  }
  explicit operator bool() const { return held_; }
  void change() { changed_ = true; }

 private:
  MeetingPlace& place_;
  bool held_;
  bool changed_ = false;
};

SharedPrep::SharedPrep(const Options& options, std::unique_ptr<MeetingPlace> place)
    : options_(options), place_(std::move(place)) {}

MeetingPlace::Options SharedPrep::place_of(const Options& options) {
  const auto bytes = aligned(options.inputs * sizeof(float)) + aligned(options.labels * sizeof(std::int64_t));
  const auto each = static_cast<std::size_t>(options.buffers);
  return {.name = options.name,
          .key = options.key ^ Rng(options.inputs ^ options.labels << 24 ^ each << 48).bits(),
          .common_bytes = MeetingPlace::kMembers * (sizeof(Member) + each * sizeof(Buffer)),
          .own_bytes = each * bytes,
          .patience = options.patience};
}

Result<std::unique_ptr<SharedPrep>> SharedPrep::join(const Options& options) {
  MAYFLY_CHECK(options.buffers > 0 && options.inputs + options.labels > 0, "something to share");
  auto place = MeetingPlace::enter(place_of(options));
  if (!place) return unexpected(place.error());
  std::unique_ptr<SharedPrep> joined(new SharedPrep(options, std::move(*place)));
  Locked locked(*joined);
  if (!locked) return fail("share '{}': whoever has its lock stands still", options.name);
  const int self = joined->place_->self();
  joined->members()[self] = {};
  for (int k = 0; k < options.buffers; ++k) joined->buffers()[self * options.buffers + k].state = State::free;
  return joined;
}

SharedPrep::~SharedPrep() {
  if (Locked locked(*this); locked) {
    members()[place_->self()].standing = Standing::absent;
    locked.change();
  }
}

Result<void> SharedPrep::take(std::int64_t chunk, const Prepare& prepare, std::span<float> inputs,
                              std::span<std::int64_t> labels) {
  MAYFLY_CHECK(inputs.size() == options_.inputs && labels.size() == options_.labels, "room for a chunk");
  if (Locked locked(*this); locked) {
    asked_.insert(chunk);
    next_ = chunk + 1;
  }
  Result<void> taken{};
  for (bool done = false; !done && taken;) {
    const auto next = plan(chunk);
    if (next.what == What::wait && stopped_) taken = fail("no longer wanted");
    if (next.what == What::wait) place_->await_change(next.changes, kLook);
    if (next.what == What::copy) done = copy(next, inputs, labels);
    if (next.what == What::alone) {
      taken = prepare(chunk, inputs, labels);
      ++prepared_;
      done = true;
    }
    if (next.what != What::prepare) continue;
    // A member that wants another chunk, which cannot be prepared, is told so when it tries.
    if (auto filled = fill(next, prepare); !filled && next.chunk == chunk) taken = filled;
  }
  pass(chunk);
  return taken;
}

SharedPrep::Plan SharedPrep::plan(std::int64_t chunk) {
  Locked locked(*this);
  if (!locked) return {.what = What::alone};
  step_in(chunk);
  if (const auto* buffer = found(chunk); buffer != nullptr && buffer->state == State::ready)
    return {.what = What::copy,
            .chunk = chunk,
            .buffer = static_cast<int>(buffer - buffers().data()),
            .times = buffer->times};
  if (members()[place_->self()].standing != Standing::in_step) return {.what = What::alone};
  return plan_in_step(chunk);
}

/// Of a chunk that is not there.
SharedPrep::Plan SharedPrep::plan_in_step(std::int64_t chunk) {
  sweep();
  Plan plan{.changes = place_->changes()};
  const bool claimed = found(chunk) != nullptr;
  const auto last = floor();
  if (!claimed && chunk < last + standing() * options_.buffers && claim(chunk, plan)) return plan;
  // Only the last may prepare what the others cannot get: no member makes room for it.
  if (!claimed && chunk == last) return {.what = What::alone};
  if (const auto other = unclaimed(); other && claim(*other, plan)) return plan;
  if (!claimed) leave_behind(chunk);
  return plan;
}

/// Says where it stands. Under the lock, as all below that have no lock of their own.
void SharedPrep::step_in(std::int64_t chunk) {
  auto& own = members()[place_->self()];
  own.next = asked_.empty() ? chunk : *asked_.begin();
  const bool fits = fits_in(own.next);
  if (own.standing == Standing::behind && fits) ++left_behind_;
  if (own.standing != Standing::behind || fits) own.standing = fits ? Standing::in_step : Standing::apart;
}

bool SharedPrep::fits_in(std::int64_t chunk) {
  std::int64_t first = kNone, last = -1;
  int others = 0;
  for (int m = 0; m < MeetingPlace::kMembers; ++m) {
    if (m == place_->self() || members()[m].standing != Standing::in_step) continue;
    ++others;
    first = std::min(first, members()[m].next);
    last = std::max(last, members()[m].next);
  }
  if (others == 0) return true;
  const auto reach = kReach * options_.buffers * (others + 1);
  if (chunk > last + reach) return false;
  return members()[place_->self()].standing == Standing::behind ? chunk >= first : chunk + reach >= last;
}

/// A member that was killed is out of step, and what it was preparing is free.
void SharedPrep::sweep() {
  if (Clock::now() < swept_ + kLook / 2) return;
  swept_ = Clock::now();
  for (int m = 0; m < MeetingPlace::kMembers; ++m) {
    auto& member = members()[m];
    if (member.standing == Standing::absent || place_->alive(m)) continue;
    for (int k = 0; k < options_.buffers; ++k) {
      auto& buffer = buffers()[m * options_.buffers + k];
      if (buffer.state == State::preparing) buffer.state = State::free;
    }
    member.standing = Standing::absent;
  }
}

/// A chunk cannot be had before those behind have gone on; where they have not for too long, they are left.
void SharedPrep::leave_behind(std::int64_t chunk) {
  const auto last = floor();
  if (last != waited_floor_) {
    waited_floor_ = last;
    waited_since_ = Clock::now();
  }
  const Seconds waited = Clock::now() - waited_since_;
  if (waited < lease()) return;
  for (int m = 0; m < MeetingPlace::kMembers; ++m) {
    auto& member = members()[m];
    const bool holds_up = member.standing == Standing::in_step && member.next == last && last < chunk;
    if (m != place_->self() && holds_up && waited.count() > 4 * member.longest_gap_s)
      member.standing = Standing::behind;
  }
}

/// Ready, or being prepared by a member whose time is not up.
const SharedPrep::Buffer* SharedPrep::found(std::int64_t chunk) {
  const Buffer* claimed = nullptr;
  const double oldest = seconds_now() - lease().count();
  for (const auto& buffer : buffers()) {
    if (buffer.state == State::free || buffer.chunk != chunk) continue;
    if (buffer.state == State::ready) return &buffer;
    if (buffer.since > oldest) claimed = &buffer;
  }
  return claimed;
}

/// A buffer of its own that no member needs any more, the one with the oldest chunk.
SharedPrep::Buffer* SharedPrep::own_room() {
  const auto last = floor();
  Buffer* room = nullptr;
  for (int k = 0; k < options_.buffers; ++k) {
    auto& buffer = buffers()[place_->self() * options_.buffers + k];
    if (buffer.state == State::free) return &buffer;
    if (buffer.state != State::ready || buffer.chunk >= last) continue;
    if (room == nullptr || buffer.chunk < room->chunk) room = &buffer;
  }
  return room;
}

bool SharedPrep::claim(std::int64_t chunk, Plan& plan) {
  auto* room = own_room();
  if (room == nullptr) return false;
  room->state = State::free;
  room->chunk = chunk;
  room->since = seconds_now();
  ++room->times;
  room->state = State::preparing;
  plan.what = What::prepare;
  plan.chunk = chunk;
  plan.buffer = static_cast<int>(room - buffers().data());
  plan.times = room->times;
  return true;
}

/// The first chunk that a member in step will want and that none has or prepares.
std::optional<std::int64_t> SharedPrep::unclaimed() {
  const auto first = floor();
  const auto end = std::min(first + standing() * options_.buffers, foremost() + 1 + options_.ahead);
  std::vector<bool> there(static_cast<std::size_t>(std::max<std::int64_t>(end - first, 0)), false);
  const double oldest = seconds_now() - lease().count();
  for (const auto& buffer : buffers()) {
    const bool has = buffer.state == State::ready || (buffer.state == State::preparing && buffer.since > oldest);
    if (has && buffer.chunk >= first && buffer.chunk < end)
      there[static_cast<std::size_t>(buffer.chunk - first)] = true;
  }
  const auto gap = std::find(there.begin(), there.end(), false);
  if (gap == there.end()) return std::nullopt;
  return first + (gap - there.begin());
}

std::int64_t SharedPrep::floor() const {
  std::int64_t least = kNone;
  for (const auto& member : members()) {
    if (member.standing == Standing::in_step) least = std::min(least, member.next);
  }
  return least;
}

std::int64_t SharedPrep::foremost() const {
  std::int64_t most = 0;
  for (const auto& member : members()) {
    if (member.standing == Standing::in_step) most = std::max(most, member.next);
  }
  return most;
}

int SharedPrep::standing() const {
  return static_cast<int>(std::count_if(members().begin(), members().end(),
                                        [](const Member& member) { return member.standing == Standing::in_step; }));
}

/// How long a member may be at a chunk before others take it over.
Seconds SharedPrep::lease() const {
  double longest = 0;
  for (const auto& member : members()) longest = std::max(longest, member.longest_prep_s);
  return std::max(options_.patience, Seconds(4 * longest));
}

Result<void> SharedPrep::fill(const Plan& plan, const Prepare& prepare) {
  const double start = seconds_now();
  auto filled = prepare(plan.chunk, inputs_of(plan.buffer), labels_of(plan.buffer));
  ++prepared_;
  Locked locked(*this);
  if (!locked) return filled;
  auto& own = members()[place_->self()];
  own.longest_prep_s = std::max(own.longest_prep_s, seconds_now() - start);
  buffers()[plan.buffer].state = filled ? State::ready : State::free;
  locked.change();
  return filled;
}

/// False: it was left behind meanwhile, and another member has used the buffer.
bool SharedPrep::copy(const Plan& plan, std::span<float> inputs, std::span<std::int64_t> labels) {
  std::memcpy(inputs.data(), inputs_of(plan.buffer).data(), inputs.size_bytes());
  std::memcpy(labels.data(), labels_of(plan.buffer).data(), labels.size_bytes());
  Locked locked(*this);
  if (!locked) return false;
  const auto& buffer = buffers()[plan.buffer];
  if (buffer.state != State::ready || buffer.times != plan.times || buffer.chunk != plan.chunk) return false;
  if (plan.buffer / options_.buffers != place_->self()) ++received_;
  return true;
}

/// The thread has its chunk.
void SharedPrep::pass(std::int64_t chunk) {
  Locked locked(*this);
  if (!locked) return;
  if (const auto at = asked_.find(chunk); at != asked_.end()) asked_.erase(at);
  auto& own = members()[place_->self()];
  own.next = asked_.empty() ? next_ : std::min(next_, *asked_.begin());
  if (passed_ && own.standing == Standing::in_step)
    own.longest_gap_s = std::max(own.longest_gap_s, Seconds(Clock::now() - *passed_).count());
  passed_ = Clock::now();
  waited_floor_ = -1;
  locked.change();
}

void SharedPrep::go_alone() {
  if (alone_.exchange(true)) return;
  place_->abandon();
}

SharedPrep::Counts SharedPrep::counts() const {
  return {.prepared = prepared_, .received = received_, .left_behind = left_behind_};
}

int SharedPrep::in_step() {
  Locked locked(*this);
  return locked && members()[place_->self()].standing == Standing::in_step ? standing() : 0;
}

std::span<SharedPrep::Member> SharedPrep::members() const {
  return {reinterpret_cast<Member*>(place_->common().data()), MeetingPlace::kMembers};
}

std::span<SharedPrep::Buffer> SharedPrep::buffers() const {
  return {reinterpret_cast<Buffer*>(place_->common().data() + MeetingPlace::kMembers * sizeof(Member)),
          static_cast<std::size_t>(MeetingPlace::kMembers * options_.buffers)};
}

std::span<float> SharedPrep::inputs_of(int buffer) const {
  const auto bytes = aligned(options_.inputs * sizeof(float)) + aligned(options_.labels * sizeof(std::int64_t));
  auto* start =
      place_->part(buffer / options_.buffers).data() + static_cast<std::size_t>(buffer % options_.buffers) * bytes;
  return {reinterpret_cast<float*>(start), options_.inputs};
}

std::span<std::int64_t> SharedPrep::labels_of(int buffer) const {
  auto* start = reinterpret_cast<std::byte*>(inputs_of(buffer).data()) + aligned(options_.inputs * sizeof(float));
  return {reinterpret_cast<std::int64_t*>(start), options_.labels};
}

}  // namespace mayfly
