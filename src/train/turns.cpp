#include "train/turns.h"

#include <algorithm>
#include <utility>

namespace mayfly {
namespace {

constexpr int kFirstAlone = 3;
constexpr double kAlone = 1.2;    ///< on average under way, with that it is as good as alone
constexpr double kSlowed = 0.85;  ///< of its own rate, when others take from it
constexpr double kNewest = 0.25;  ///< what the newest transfer counts for
constexpr double kDoubt = 0.05;   ///< and for the rate alone, if it was slower than that: others may have taken from it
constexpr double kSqueezed = 0.4;  ///< of a transfer may be too much for the link: better than a link that is not full
// As links change, and a first impression may be wrong: of 24 transfers three may go beside one more, and of 96 two
// with half the link free.
constexpr int kOften = 24, kMore = 3, kSeldom = 96, kLess = 2;
constexpr std::chrono::milliseconds kTurnLook{20};

double seconds(Turns::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

/// What is not known yet, or was taken for twice as fast, is as fast as the newest.
void follow(double& value, double newest, double weight) {
  const bool changed = value <= 0 || (weight >= kNewest && newest < value / 2);
  value += (changed ? 1 : weight) * (newest - value);
}

}  // namespace

bool LinkLoad::has_room(double taken, const Own& next) const {
  if (taken <= 0) return true;
  if (alone_ < kFirstAlone) return false;
  if (link_ <= 0) return true;
  const double own = taken_by(next);
  const double limit = seen_ % kSeldom < kLess ? link_ / 2 : seen_ % kOften >= kOften - kMore ? link_ + own : link_;
  return taken + kSqueezed * own < limit;
}

void LinkLoad::add(double rate, double together, double beside, Own& own) {
  ++seen_;
  const bool alone = beside <= kAlone;
  if (alone) ++alone_;
  if (own.rate <= 0) own.rate = alone ? rate : std::max(rate, typical_);
  const bool slowed = !alone && rate < kSlowed * own.rate;
  follow(own.rate, rate, alone || rate > own.rate ? kNewest : kDoubt);
  follow(typical_, own.rate, kNewest);
  if (slowed) {
    follow(link_, together, kNewest);
  } else if (link_ > 0) {
    link_ = std::max(link_, together);  // with room left it is at least that fast
  }
}

Turns::Turn::Turn(Turns& turns, LinkLoad::Own& own)
    : turns_(turns), own_(own), begin_(Clock::now()), work_(turns.work_), total_(turns.total_), moved_(begin_) {}

Turns::Turn::~Turn() { turns_.end(*this); }

void Turns::Turn::arrived(std::size_t bytes) {
  const std::lock_guard lock(turns_.mutex_);
  if (bytes <= arrived_) return;
  turns_.total_ += static_cast<double>(bytes - std::exchange(arrived_, bytes));
  moved_ = Clock::now();
}

bool Turns::has_room(const LinkLoad::Own& next) const {
  double taken = 0;
  for (const Turn* turn : under_way_) taken += load_.taken_by(turn->own_);
  // Before anything is known the first is known by being there.
  return load_.has_room(under_way_.empty() ? 0 : std::max(taken, 1e-9), next);
}

std::unique_ptr<Turns::Turn> Turns::take(LinkLoad::Own& own, const Gone& gone) {
  std::unique_lock lock(mutex_);
  const auto ticket = next_++;
  line_.push_back(ticket);
  while (line_.front() != ticket || !has_room(own)) {
    changed_.wait_for(lock, kTurnLook);
    pass_over_who_stands();
    if (!gone || !gone()) continue;
    std::erase(line_, ticket);
    changed_.notify_all();
    return nullptr;
  }
  line_.pop_front();
  count_work();
  std::unique_ptr<Turn> turn(new Turn(*this, own));
  under_way_.push_back(turn.get());
  changed_.notify_all();
  return turn;
}

void Turns::pass_over_who_stands() {
  count_work();
  const auto now = Clock::now();
  under_way_.remove_if([&](Turn* turn) {
    turn->passed_over_ = now - turn->moved_ > kStandstill;
    return turn->passed_over_;
  });
}

void Turns::end(const Turn& turn) {
  const std::lock_guard lock(mutex_);
  count_work();
  if (!turn.passed_over_) {
    std::erase(under_way_, &turn);
    const double took = seconds(Clock::now() - turn.begin_);
    if (took > 0 && turn.arrived_ > 0)
      load_.add(static_cast<double>(turn.arrived_) / took, (total_ - turn.total_) / took, (work_ - turn.work_) / took,
                turn.own_);
  }
  changed_.notify_all();
}

void Turns::count_work() {
  const auto now = Clock::now();
  work_ += static_cast<double>(under_way_.size()) * seconds(now - std::exchange(counted_, now));
}

}  // namespace mayfly
