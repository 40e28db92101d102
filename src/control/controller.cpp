#include "control/controller.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace mayfly {

Controller::Controller(const Shapes& shapes, std::unique_ptr<Policy> policy, ControllerOptions options)
    : shapes_(shapes), policy_(std::move(policy)), options_(options), rate_(options.standing) {}

Reaction Controller::step(Seconds now, const Event& event) {
  reaction_ = {};
  ignored_ = {};
  decided_ = false;
  if (journal_) reaction_.records.emplace_back();  // the event's own line, once it is known what becomes of it
  accrue(now);
  std::visit([&](const auto& e) { on(now, e); }, event);
  const auto& budget = options_.promise.budget;
  // Within rounding: the Wake for this moment was computed by a division.
  if (!finished_ && budget && spent_.value >= budget->value * (1 - 1e-12)) finish(now, Finish::Why::budget);
  schedule(now);
  if (journal_) reaction_.records[0] = journal_line(now, event, ignored_);
  // The same commands follow without the ticks that did nothing.
  if (journal_ && std::holds_alternative<Tick>(event) && !decided_ && reaction_.records.size() == 1)
    reaction_.records.clear();
  return std::move(reaction_);
}

void Controller::on(Seconds now, const Joined& event) {
  if (gone_.contains(event.worker) || workers_.contains(event.worker)) return ignore("machine known already");
  fill_order(event.kind());
  if (finished_) {
    gone_.insert(event.worker);
    return command(now, Release{event.worker}, "training is over");
  }
  Kept& of = kept(event.kind());
  workers_[event.worker] = {.of = &of, .price = event.price};
  of.holding.price = event.price;
  ++of.holding.arrivals;
  ++of.holding.usable;
  ++of.paid;
  rate_ += event.price;
  if (event.since) spent_ += event.price * std::max(Seconds(0), accrued_ - *event.since);
  ++fresh_;
  unsettle(now);
  if (const auto notice = early_notices_.extract(event.worker)) on(now, notice.mapped());
  if (options_.most_machines > 0 && usable() > options_.most_machines) give_back_one(now, event.worker);
}

void Controller::give_back_one(Seconds now, WorkerId newcomer) {
  const auto market = [](const auto& worker) { return worker->second.of->holding.kind.market; };
  auto chosen = workers_.find(newcomer);
  const Market goes = policy_->surplus(situation(now), market(chosen));
  // Machines of the market are all alike, so one that trains is not sent back for a newcomer.
  const bool stays = goes == Market::on_demand || market(chosen) != goes;
  for (auto worker = workers_.begin(); stays && worker != workers_.end(); ++worker) {
    if (market(worker) == goes && !worker->second.leaving) chosen = worker;
  }
  unusable(chosen->second);
  command(now, Release{chosen->first}, "more machines than any shape has");
  remove(chosen);
}

void Controller::on(Seconds now, const Notice& event) {
  if (gone_.contains(event.worker)) return ignore("machine gone already");
  const auto found = workers_.find(event.worker);
  if (found == workers_.end()) {
    // Overtook the machine's own word that it is there.
    early_notices_[event.worker] = event;
    return ignore("machine not here yet");
  }
  if (found->second.leaving) return ignore("notified already");
  unusable(found->second);
  found->second.leaving = true;
  found->second.leaves = now + event.left;
  command(now, Drain{event.worker, event.left}, "to be preempted");
  unsettle(now);
}

void Controller::on(Seconds now, const Lost& event) {
  const auto found = workers_.find(event.worker);
  if (found == workers_.end()) {
    // Names are never used again: should it still say that it is there, that word was late.
    const bool news = gone_.insert(event.worker).second;
    return ignore(news ? "machine not here yet, and never will be" : "machine gone already");
  }
  ++found->second.of->holding.lost;
  if (!found->second.leaving) {
    unusable(found->second);
    unsettle(now);
  }
  remove(found);
  if (event.returns) gone_.erase(event.worker);
}

void Controller::unusable(const Worker& worker) {
  --worker.of->holding.usable;
  if (worker.known) {
    ++known_lost_;
  } else {
    --fresh_;
  }
}

Controller::Kept& Controller::kept(const MachineKind& kind) {
  Kept& of = kinds_[kind];
  of.holding.kind = kind;
  return of;
}

void Controller::fill_order(const MachineKind& kind) {
  // An order may leave the zone open, and another type may have been found that is cheaper: the likest is taken for it,
  // of those alike the oldest.
  Kept* filled = nullptr;
  int likest = -1;
  for (auto& [ordered, of] : kinds_) {
    if (ordered.market != kind.market || of.orders.empty()) continue;
    const int alike = ordered == kind ? 2 : ordered.type == kind.type ? 1 : 0;
    const bool older = filled != nullptr && alike == likest && of.orders.front() < filled->orders.front();
    if (alike <= likest && !older) continue;
    filled = &of;
    likest = alike;
  }
  if (filled != nullptr) filled->orders.pop_front();
}

void Controller::forget_old_orders(Seconds now) {
  for (auto& [kind, of] : kinds_) {
    while (!of.orders.empty() && of.orders.front() + options_.patience <= now) of.orders.pop_front();
  }
}

void Controller::remove(std::map<WorkerId, Worker>::iterator worker) {
  rate_ = rate_ - worker->second.price;
  --worker->second.of->paid;
  gone_.insert(worker->first);
  workers_.erase(worker);
  if (workers_.empty()) rate_ = options_.standing;  // without what rounding has left
}

void Controller::on(Seconds now, const StepCommitted& event) {
  // The controller's acceptance is the commit: a step of another generation, or one that does not start where the last
  // ended, has no effect, and its samples are trained again by the workers that hold them now.
  if (finished_ || !shape_ || event.generation != generation_) return ignore("not of this generation");
  if (event.first_sample != committed_ || event.samples < 0) return ignore("not the next samples");
  if (reached()) return ignore("the target is reached");
  committed_ += event.samples;
  trained_ = true;
  if (reached()) reach(now);
}

void Controller::on(Seconds now, const CheckpointDone& event) {
  if (event.sample > committed_ || event.sample < checkpointed_) return ignore("not a state that was committed");
  checkpointed_ = event.sample;
  if (!finished_ && reached() && checkpointed_ >= *options_.promise.samples) finish(now, Finish::Why::target);
}

void Controller::on(Seconds now, const RolledBack& event) {
  // Steps of this generation that were accepted are known to follow from its start, so a rollback after them is old.
  if (finished_ || !shape_ || event.generation != generation_) return ignore("not of this generation");
  if (trained_) return ignore("the generation has begun");
  if (reached()) unsettle(now);  // those who came since had nothing to do
  committed_ = event.sample.value_or(checkpointed_);
  checkpointed_ = std::min(checkpointed_, committed_);
}

void Controller::on(Seconds now, const StateLost& event) {
  if (finished_ || !shape_ || event.generation != generation_) return ignore("not of this generation");
  if (!trained_) return ignore("the generation has not begun");
  const bool all_here = std::all_of(members_.begin(), members_.end(), [&](WorkerId member) {
    const auto found = workers_.find(member);
    return found != workers_.end() && !found->second.leaving;
  });
  if (!all_here) return unsettle(now);  // a generation without those who went follows anyway
  trained_ = false;
  command(now,
          Assign{.generation = ++generation_,
                 .shape = shapes_[*shape_],
                 .members = members_,
                 .next_sample = committed_,
                 .machines_before = known_,
                 .mechanism = mechanism_},
          "what was trained is lost");
  if (reached()) reach(now);
}

void Controller::on(Seconds, const Charged& event) {
  if (finished_ || !std::isfinite(event.cost.value) || event.cost.value < 0) return ignore("not a sum of money");
  spent_ += event.cost;
}

void Controller::on(Seconds, const Expected& event) { ready_ = event.ready; }

void Controller::on(Seconds, const Priced& event) {
  Kept& of = kept(event.kind());
  of.holding.price = event.price;
  for (auto& [id, worker] : workers_) {
    if (worker.of != &of) continue;
    rate_ = rate_ - worker.price + event.price;
    worker.price = event.price;
  }
}

void Controller::on(Seconds now, const Estimated& event) {
  if (finished_) return ignore("training is over");
  if (!std::isfinite(event.samples) || event.samples < 0) return ignore("not a number of samples");
  const bool was_reached = reached();
  // A policy that had no target has not asked to be heard again.
  if (!options_.promise.samples) unsettle(now);
  options_.promise.samples = std::max(event.samples, committed_);
  if (reached() && !was_reached) reach(now);
}

void Controller::on(Seconds, const Measured& event) {
  if (!std::isfinite(event.ratio) || event.ratio <= 0) return ignore("not a ratio of speeds");
  ratio_ = event.ratio;
}

void Controller::on(Seconds now, const Tick&) {
  woken_.reset();  // even if the timer was a hair early: what is not due yet is asked for again
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    const auto here = worker++;
    if (!here->second.leaving || here->second.leaves + options_.overstay > now) continue;
    command(now, Release{here->first}, "its notice has run out");
    remove(here);
  }
  const bool due = due_ && *due_ <= now;
  const bool again = again_ && *again_ <= now;
  const bool first = !begun_ && !due_ && options_.promise.samples && options_.promise.deadline;
  if (!finished_ && (due || again || first)) decide(now);
}

void Controller::accrue(Seconds now) {
  if (now <= accrued_) return;  // late events carry old times; money does not flow back
  spent_ += rate_ * (now - accrued_);
  for (auto& [kind, of] : kinds_) of.holding.machine_time += of.paid * (now - accrued_);
  accrued_ = now;
}

void Controller::unsettle(Seconds now) {
  if (!finished_ && !due_) due_ = now + options_.settle;
}

int Controller::usable() const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(), [](const auto& entry) { return !entry.second.leaving; }));
}

std::vector<Holding> Controller::holdings() const {
  std::vector<Holding> all;
  for (const auto& [kind, of] : kinds_) {
    all.push_back(of.holding);
    all.back().ordered = static_cast<int>(of.orders.size());
    if (!of.orders.empty()) all.back().oldest = of.orders.front();
  }
  return all;
}

Situation Controller::situation(Seconds now) const {
  return {.now = now,
          .before = known_,
          .outlook = {.added = fresh_, .removed = known_lost_},
          .shape = shape_,
          .pending = std::max(Seconds(0), ready_ - now),
          .holdings = holdings(),
          .done = committed_,
          .target = options_.promise.samples,
          .deadline = options_.promise.deadline,
          .ratio = ratio_};
}

void Controller::decide(Seconds now) {
  begun_ = decided_ = true;
  due_.reset();
  again_.reset();
  forget_old_orders(now);
  const Decision decision = policy_->decide(situation(now));
  again_ = decision.again;
  if (!decision.warning.empty()) command(now, Warn{decision.warning});
  const int before = known_;
  int lost = known_lost_;
  for (const Want& want : decision.wants) lost += hold(now, want, decision.reason);
  for (auto& [id, worker] : workers_) worker.known = !worker.leaving;
  known_ = usable();
  known_lost_ = 0;
  fresh_ = 0;
  if (reached() && shape_ && lost == 0) return;  // newcomers do not disturb those who save the state
  if (!decision.shape) {
    if (shape_) command(now, Pause{++generation_}, decision.reason);
    shape_.reset();
    members_.clear();
  } else if (decision.shape != shape_ || lost > 0 || decision.rebuild) {
    assign(now, decision, before, lost);
  }
}

/// Who stays keeps pipeline and stage where the new shape has them; the others fill the gaps, those who are members now
/// before those who are not, the longest held first.
std::vector<WorkerId> Controller::seating(const Shape& shape) const {
  std::vector<WorkerId> seats(static_cast<std::size_t>(shape.machines()), -1);
  std::set<WorkerId> seated;
  if (shape_ && shapes_[*shape_].stages == shape.stages) {
    for (std::size_t seat = 0; seat < std::min(seats.size(), members_.size()); ++seat) {
      const auto found = workers_.find(members_[seat]);
      if (found == workers_.end() || found->second.leaving) continue;
      seats[seat] = members_[seat];
      seated.insert(members_[seat]);
    }
  }
  std::vector<WorkerId> others;
  for (const WorkerId member : members_) {
    const auto found = workers_.find(member);
    if (found != workers_.end() && !found->second.leaving && seated.insert(member).second) others.push_back(member);
  }
  for (const auto& [id, worker] : workers_) {
    if (!worker.leaving && seated.insert(id).second) others.push_back(id);
  }
  auto next = others.begin();
  for (WorkerId& seat : seats) {
    if (seat >= 0) continue;
    MAYFLY_CHECK(next != others.end(), "a shape needs its machines");
    seat = *next++;
  }
  return seats;
}

void Controller::assign(Seconds now, const Decision& decision, int before, int lost) {
  const Shape& shape = shapes_[*decision.shape];
  members_ = seating(shape);
  shape_ = decision.shape;
  mechanism_ = decision.mechanism;
  trained_ = false;
  command(now,
          Assign{.generation = ++generation_,
                 .shape = shape,
                 .members = members_,
                 .next_sample = committed_,
                 .machines_before = before,
                 .lost = lost,
                 .mechanism = mechanism_},
          decision.reason);
  if (reached()) reach(now);
}

int Controller::hold(Seconds now, const Want& want, std::string_view reason) {
  Kept& of = kept(want.kind);
  const int have = of.holding.usable + static_cast<int>(of.orders.size());
  if (want.count > have) {
    of.orders.insert(of.orders.end(), static_cast<std::size_t>(want.count - have), now);
    command(now, Acquire{want.kind, want.count - have}, reason);
  }
  std::vector<WorkerId> held;
  for (const auto& [id, worker] : workers_) {
    if (worker.of == &of && !worker.leaving) held.push_back(id);
  }
  int known_released = 0;
  for (int extra = static_cast<int>(held.size()) - want.count; extra > 0; --extra, held.pop_back()) {
    const auto found = workers_.find(held.back());
    if (found->second.known) ++known_released;
    --of.holding.usable;
    remove(found);
    command(now, Release{held.back()}, "the promise holds without it");
  }
  return known_released;
}

bool Controller::reached() const { return options_.promise.samples && committed_ >= *options_.promise.samples; }

void Controller::reach(Seconds now) {
  if (!options_.save_at_target || checkpointed_ >= *options_.promise.samples) return finish(now, Finish::Why::target);
  // Workers that are assigned later are told again, so that one that holds the state saves it.
  if (shape_) command(now, Checkpoint{}, "the target is reached");
}

void Controller::finish(Seconds now, Finish::Why why) {
  finished_ = why;
  if (why == Finish::Why::budget && shape_) command(now, Checkpoint{}, "the budget is spent");
  for (const auto& [id, worker] : workers_) {
    gone_.insert(id);
    command(now, Release{id}, "training is over");
  }
  for (auto& [kind, of] : kinds_) of.paid = of.holding.usable = 0;
  workers_.clear();
  members_.clear();
  shape_.reset();
  ++generation_;
  rate_ = {};
  due_.reset();
  again_.reset();
  command(now, Finish{why});
}

void Controller::schedule(Seconds now) {
  std::optional<Seconds> next = due_;
  const auto consider = [&](Seconds at) { next = next ? std::min(*next, at) : at; };
  if (again_) consider(*again_);
  for (const auto& [id, worker] : workers_) {
    if (worker.leaving) consider(worker.leaves + options_.overstay);
  }
  const auto& budget = options_.promise.budget;
  if (!finished_ && budget && rate_.value > 0) {
    const Usd left = *budget - spent_;
    consider(accrued_ + Seconds(left.value / rate_.value * 3600));
  }
  if (!next || (woken_ && *woken_ == *next)) return;
  woken_ = next;
  command(now, Wake{std::max(now, *next)});
}

void Controller::command(Seconds now, Command command, std::string_view reason) {
  if (journal_ && !std::holds_alternative<Wake>(command))
    reaction_.records.push_back(journal_line(now, command, reason));
  reaction_.commands.push_back(std::move(command));
}

}  // namespace mayfly
