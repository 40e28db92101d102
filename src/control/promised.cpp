// Model: docs/models.md#deadline
#include "control/promised.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace mayfly {
namespace {

/// What the deadline leaves, reckoned with the fastest shape of all machines there may be: the one that machines on
/// demand can always make up.
struct Room {
  int fastest = 0;      ///< that shape
  int machines = 0;     ///< of it
  Seconds left{};       ///< until the deadline
  Seconds work{};       ///< what is missing, in its time
  Seconds restart{};    ///< into it, from nothing or from what trains
  Seconds reserve{};    ///< from one look to the next, to the machines ordered then, to their first step
  Seconds pending{};    ///< rest of a change under way
  bool offered = true;  ///< on demand, so many machines
  Seconds slack() const { return left - work; }
  /// Otherwise what is left is to be as little late as possible.
  bool can_be_kept() const { return offered && left.count() > 0 && slack().count() >= 0; }
  /// A change that is cut off by a loss makes the next one a restart dearer, and so does one under way.
  Seconds risk() const { return (pending.count() > 0 ? 3.0 : 2.0) * restart; }
  /// Whatever comes of a change now, what it leaves is enough to go over to machines on demand.
  bool affords_change() const { return slack() >= reserve + risk(); }
};

class Promised : public Policy {
 public:
  Promised(const Shapes& shapes, const MigrationCosts& costs, const PolicyOptions& options, TopUp when,
           std::unique_ptr<Policy> inner)
      : shapes_(shapes), costs_(costs), options_(options), when_(when), inner_(std::move(inner)) {}

  Decision decide(const Situation& s) override {
    if (!s.target || !s.deadline) return inner_->decide(s);
    const Room room = room_of(s);
    const Wanted wanted = wanted_of(s, room);
    std::vector<Want> wants = dealt_out(s, wanted.on_demand);
    const int dealt = std::accumulate(wants.begin(), wants.end(), 0, [](int sum, const Want& want) {
      return sum + (want.kind.market == Market::on_demand ? want.count : 0);
    });
    const bool orders = dealt > s.usable(Market::on_demand) + s.ordered(Market::on_demand);
    if (orders) awaited_ = s.now + options_.start;
    const bool all_here = s.usable(Market::on_demand) >= room.machines;
    if (wanted.sealed && (orders || all_here)) give_back_spot(s, wants);
    const Situation after = without(s, given_back(s, wants, Market::on_demand), given_back(s, wants, Market::spot));
    Decision decision = inner_->decide(after);
    if (left_to_do(s)) steer(s, after, room, wanted, decision);
    decision.wants = std::move(wants);
    if (!wanted.reason.empty()) decision.reason = wanted.reason;
    const bool was_short = std::exchange(short_, dealt < wanted.on_demand);
    if (short_ && !was_short) decision.warning = wanted.reason;
    const Seconds check = waits(s, room) ? awaited_ : s.now + options_.check;
    decision.again = decision.again ? std::min(*decision.again, check) : check;
    return decision;
  }

  Market surplus(const Situation& s, Market newcomer) const override {
    if (!s.target || !s.deadline) return inner_->surplus(s, newcomer);
    const Room room = room_of(s);
    if (!room.affords_change()) return rides(s, room) ? newcomer : Market::spot;
    return newcomer == Market::on_demand || earns(s, room, 1) ? Market::on_demand : Market::spot;
  }

 private:
  static constexpr double kReserve = 1.1;  ///< of the work: what weather and speeds may bring
  static constexpr double kSlow = 0.95;    ///< ratio of speeds that is worth a word
  static constexpr double kAhead = 0.02;   ///< of the whole: on-demand machines go back

  struct Wanted {
    int on_demand = 0;
    std::string reason{};
    bool sealed = false;  ///< these, and nothing else
  };

  /// In numbers, why machines are rented.
  static std::string at_risk(const Situation& s, bool last_call) {
    std::string reason = fmt::format("{}: {:.3g} % done at {:.3g} % of the time",
                                     last_call ? "only machines nobody takes will do" : "behind the clock",
                                     100 * s.done / *s.target, 100 * (s.now / *s.deadline));
    if (s.ratio < kSlow) reason += fmt::format("; measured speed is {:.2f} of the predicted", s.ratio);
    return reason;
  }

  Room room_of(const Situation& s) const {
    const int most = std::clamp(options_.most_machines, shapes_.least_machines(), shapes_.most_machines());
    const int fastest = *shapes_.best(most);
    Room room{.fastest = fastest,
              .machines = shapes_[fastest].machines(),
              .left = *s.deadline - s.now,
              .work = Seconds(std::max(0.0, *s.target - s.done) / (s.ratio * shapes_.speed(fastest))),
              .restart = costs_.expected(0, std::nullopt, 0, fastest),
              .pending = s.pending};
    if (s.shape) room.restart = std::max(room.restart, costs_.expected(s.before, s.shape, 0, fastest));
    room.reserve = options_.check + options_.start + room.restart;
    int missing = options_.offers.empty() ? 0 : room.machines;
    for (const Offer& offer : options_.offers) missing -= std::clamp(missing, 0, offer.limit);
    room.offered = missing == 0;
    return room;
  }

  static bool left_to_do(const Situation& s) { return *s.target > s.done; }

  /// What trains may go on as it does.
  static bool intact(const Situation& s) { return s.shape && s.outlook.removed == 0; }

  /// What trains, or is about to, will be done by the deadline. It may go on until it is lost, if that leaves time for
  /// machines on demand, or if it is too late for anything faster.
  bool rides(const Situation& s, const Room& room) const {
    if (!intact(s)) return false;
    const double slower = shapes_.speed(room.fastest) / shapes_.speed(*s.shape);
    const Seconds spare = room.left - slower * room.work - room.pending;
    const Seconds made_up_for = options_.start + (room.pending.count() > 0 ? 2.0 : 1.0) * room.restart;
    return spare >= made_up_for || (slower <= 1 && spare < room.restart);
  }

  /// Ordered, and not here in the time that machines on demand take: not to be relied on.
  bool overdue(const Situation& s) const {
    return std::any_of(s.holdings.begin(), s.holdings.end(), [&](const Holding& holding) {
      return holding.ordered > 0 && holding.oldest + options_.start <= s.now;
    });
  }

  /// A change that is under way when the machines ordered come would make theirs dearer. Machines that are overdue may
  /// never come, and are waited for no longer.
  bool waits(const Situation& s, const Room& room) const { return s.now < awaited_ && s.now + room.risk() > awaited_; }

  /// Machines on demand would still be in time, those on their way or those ordered now.
  bool in_time(const Situation& s, const Room& room) const {
    const int here = s.usable(Market::on_demand);
    const bool on_their_way = here + s.ordered(Market::on_demand) >= room.machines && s.now < awaited_;
    const Seconds start = here >= room.machines ? Seconds(0) : on_their_way ? awaited_ - s.now : options_.start;
    return room.slack() >= start + room.restart;
  }

  /// The machines there are make up the fastest shape at once. It uses up no slack and its loss does not go unseen
  /// until the next check, so the time for that is free.
  bool restarts_at_once(const Situation& s, const Room& room) const {
    return s.machines() >= room.machines && room.slack() >= options_.start + room.restart + room.risk();
  }

  /// Nothing but the fastest shape on demand will do: another change cannot be afforded, and what trains is lost, or so
  /// slow that it has used up everything but the reserve.
  bool sealed(const Situation& s, const Room& room) const {
    if (!room.can_be_kept() || room.affords_change() || overdue(s)) return false;
    if (!intact(s)) return in_time(s, room) && !restarts_at_once(s, room);
    return !rides(s, room) && room.slack() - room.pending <= room.reserve;
  }

  Wanted wanted_of(const Situation& s, const Room& room) const {
    const double left = std::max(0.0, *s.target - s.done);
    const int rented = s.usable(Market::on_demand) + s.ordered(Market::on_demand);
    if (left == 0) return {rented, {}};  // all that is missing is to save it
    if (sealed(s, room)) return {room.machines, at_risk(s, true), true};
    const double line = *s.target * std::min(1.0, s.now / *s.deadline);
    const Seconds need = kReserve * room.work;
    const bool last_call = room.left <= need + room.reserve && !rides(s, room);
    const bool behind = when_ == TopUp::behind && s.done < line;
    if (room.left.count() > 0 && (last_call || behind)) {
      const int spot = s.machines() - s.usable(Market::on_demand);
      const int fewest = fewest_machines(s, room, last_call ? 0 : kReserve * left / room.left.count());
      return {without_some(s, room, std::max(0, fewest - spot)), at_risk(s, last_call)};
    }
    const bool ahead =
        when_ == TopUp::behind ? s.done > line + kAhead * *s.target : room.left > need + 2 * room.reserve;
    // To wait for the market costs a restart more than to let them train until it gives something.
    const bool trains_on = s.machines() - s.usable(Market::on_demand) >= shapes_.least_machines();
    if (ahead && trains_on && rented > 0 && without_some(s, room, 0) == 0) return {0, "ahead of the clock"};
    return {rented, {}};
  }

  /// That train at least at this speed; 0: as fast as any.
  int fewest_machines(const Situation& s, const Room& room, double speed) const {
    const int most = std::clamp(options_.most_machines, shapes_.least_machines(), shapes_.most_machines());
    const double enough = speed > 0 ? speed : s.ratio * shapes_.speed(room.fastest);
    int machines = shapes_.least_machines();
    while (machines < most && s.ratio * shapes_.speed(*shapes_.best(machines)) < enough) ++machines;
    return machines;
  }

  /// `count`, if that is worth the change where it is fewer than there are.
  int without_some(const Situation& s, const Room& room, int count) const {
    const int here = s.usable(Market::on_demand);
    if (count >= here || (room.affords_change() && earns(s, room, here - count))) return count;
    return here;
  }

  /// Whether machines of the market save what the changes cost that it takes to do without `count` rented ones and
  /// to rent them again: two restarts of the whole cluster, time that is bought on demand at the end. Machines are
  /// expected to stay as long as they did so far; where none was lost, to the end.
  bool earns(const Situation& s, const Room& room, int count) const {
    UsdPerHour rented{};
    UsdPerHour spot{};
    Seconds held{};
    int lost = 0;
    for (const Holding& holding : s.holdings) {
      if (holding.usable == 0) continue;
      UsdPerHour& dearest = holding.kind.market == Market::on_demand ? rented : spot;
      dearest = std::max(dearest, holding.price);
      if (holding.kind.market == Market::on_demand) continue;
      held += holding.machine_time;
      lost += holding.lost;
    }
    const Seconds stay = lost > 0 ? std::min(room.work, held / static_cast<double>(lost)) : room.work;
    const Usd saved = (rented - spot) * (static_cast<double>(count) * stay);
    return saved >= rented * (2.0 * room.machines * room.restart);
  }

  /// The shape, where it is not the inner policy's affair. `s`: before machines are given back.
  void steer(const Situation& s, const Situation& after, const Room& room, const Wanted& wanted,
             Decision& decision) const {
    if (!room.can_be_kept()) return;
    if (room.affords_change()) return employ(s, after, room, wanted.on_demand, decision);
    const int rented = s.usable(Market::on_demand);
    if (intact(after) && !wanted.sealed) {
      decision.shape = s.shape;
      decision.rebuild = false;
    } else if (rented >= room.machines || (!wanted.sealed && after.machines() >= room.machines)) {
      decision.shape = room.fastest;
    } else if (waits(s, room) && rented < wanted.on_demand) {
      decision.shape = intact(after) ? s.shape : std::nullopt;
      decision.rebuild = false;
    }
  }

  /// Rented machines are there to train. Where a change and its loss outlast the look-ahead, it would leave them idle.
  void employ(const Situation& s, const Situation& after, const Room& room, int on_demand, Decision& decision) const {
    if (room.risk() < options_.lookahead * options_.interval || s.pending.count() > 0) return;
    if (std::min(on_demand, s.usable(Market::on_demand)) == 0) return;
    const auto best = shapes_.best(after.machines());
    if (!best || !decision.shape || decision.shape != after.shape) return;
    const double left = (*s.target - s.done) / s.ratio;
    const Seconds gained(left / shapes_.speed(*decision.shape) - left / shapes_.speed(*best));
    if (gained > room.risk()) decision.shape = best;
  }

  /// Beside the fastest shape on demand they would be paid for nothing. They go before others are ordered, so that
  /// there are never more than a shape has.
  static void give_back_spot(const Situation& s, std::vector<Want>& wants) {
    for (const Holding& holding : s.holdings) {
      if (holding.kind.market == Market::spot && holding.usable > 0) wants.insert(wants.begin(), {holding.kind, 0});
    }
  }

  /// What may be ordered, the cheapest first, by the last prices heard.
  std::vector<Offer> offers(const Situation& s) const {
    std::vector<Offer> all = options_.offers;
    for (Offer& offer : all) {
      for (const Holding& holding : s.holdings) {
        if (holding.kind == MachineKind{offer.type, offer.zone, offer.market}) offer.rate = holding.price;
      }
    }
    if (all.empty()) all.push_back({.limit = std::numeric_limits<int>::max()});
    std::stable_sort(all.begin(), all.end(), [](const Offer& a, const Offer& b) { return a.rate < b.rate; });
    return all;
  }

  /// `count` machines on demand: what there is and the cheapest besides, or what there is without the dearest.
  std::vector<Want> dealt_out(const Situation& s, int count) const {
    std::vector<Holding> held;
    for (const Holding& holding : s.holdings) {
      if (holding.kind.market == Market::on_demand) held.push_back(holding);
    }
    std::stable_sort(held.begin(), held.end(), [](const Holding& a, const Holding& b) { return a.price < b.price; });
    std::vector<Want> wants;
    for (const Holding& holding : held) {
      wants.push_back({holding.kind, std::min(count, holding.usable)});
      count -= wants.back().count;
    }
    // A machine that is here goes before one that may never come.
    for (std::size_t i = 0; i < held.size(); ++i) {
      const int awaited = std::min(count, held[i].ordered);
      wants[i].count += awaited;
      count -= awaited;
    }
    if (count == 0) return wants;
    for (const Offer& offer : offers(s)) {
      const MachineKind kind{offer.type, offer.zone, offer.market};
      auto same = std::find_if(wants.begin(), wants.end(), [&](const Want& want) { return want.kind == kind; });
      if (same == wants.end()) same = wants.insert(wants.end(), Want{kind, 0});
      const int more = std::clamp(offer.limit - same->count, 0, count);
      same->count += more;
      count -= more;
    }
    return wants;
  }

  static int given_back(const Situation& s, const std::vector<Want>& wants, Market market) {
    int sum = 0;
    for (const Want& want : wants) {
      for (const Holding& holding : s.holdings) {
        if (holding.kind == want.kind && want.kind.market == market) sum += std::max(0, holding.usable - want.count);
      }
    }
    return sum;
  }

  /// What is left. Of those on demand the youngest go first, and those that came since the last decision were never
  /// part of it; of the market all go, so that what trained may be lost.
  static Situation without(const Situation& s, int on_demand, int spot) {
    Situation after = s;
    Outlook& outlook = after.outlook;
    const int fresh = std::min(on_demand, outlook.added);
    outlook.added -= fresh;
    outlook.removed += on_demand - fresh;
    const int known = std::min(spot, s.before - outlook.removed);
    outlook.removed += known;
    outlook.added -= spot - known;
    return after;
  }

  const Shapes& shapes_;
  const MigrationCosts& costs_;
  PolicyOptions options_;
  TopUp when_;
  std::unique_ptr<Policy> inner_;
  bool short_ = false;  ///< more are wanted than may be ordered
  Seconds awaited_{};   ///< by then the machines ordered last should be here
};

}  // namespace

std::unique_ptr<Policy> make_promised(const Shapes& shapes, const MigrationCosts& costs, const PolicyOptions& options,
                                      TopUp when, std::unique_ptr<Policy> inner) {
  return std::make_unique<Promised>(shapes, costs, options, when, std::move(inner));
}

}  // namespace mayfly
