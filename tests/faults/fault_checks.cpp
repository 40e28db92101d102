#include "faults/fault_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace mayfly {
namespace {

constexpr double kRounding = 1e-9;  ///< of money, as a share

}  // namespace

int FaultChecks::usable(Market market) const {
  return static_cast<int>(std::count_if(told_.begin(), told_.end(), [&](const auto& entry) {
    return entry.second.here() && !entry.second.noticed && entry.second.as.market == market;
  }));
}

UsdPerHour FaultChecks::rate() const {
  UsdPerHour sum{};
  for (const auto& [id, told] : told_) {
    if (told.here()) sum += told.as.price;
  }
  return sum;
}

void FaultChecks::before(Seconds now, const Event& event) {
  const UsdPerHour paid = rate();
  const Usd then = spent_ + paid * (now - now_);
  const auto& budget = promise_.budget;
  if (!finished_ && budget && then.value > budget->value * (1 + kRounding)) {
    const Seconds crossed = now_ + Seconds((*budget - spent_).value / paid.value * 3600);
    require(wake_ && *wake_ <= crossed + Seconds(1e-6) * (1 + crossed.count()),
            fmt::format("the budget was passed at {} s, and no tick was asked for by then", crossed.count()));
  }
  spent_ = then;
  now_ = now;
  if (std::holds_alternative<Tick>(event) && wake_ && *wake_ <= now) wake_.reset();
}

/// The first order for exactly this kind, else for its type, else for its market.
void FaultChecks::fill_order(const Joined& joined) {
  const auto first = [&](auto alike) { return std::find_if(orders_.begin(), orders_.end(), alike); };
  auto order = first([&](const auto& o) { return o.second == MachineKind{joined.type, joined.zone, joined.market}; });
  const auto of_market = [&](const auto& o) { return o.second.market == joined.market; };
  if (order == orders_.end())
    order = first([&](const auto& o) { return of_market(o) && o.second.type == joined.type; });
  if (order == orders_.end()) order = first(of_market);
  if (order != orders_.end()) orders_.erase(order);
}

void FaultChecks::hear(const Event& event) {
  if (const auto* joined = std::get_if<Joined>(&event)) {
    Told& told = told_[joined->worker];
    if (!told.joined) told.as = *joined;
    const bool news = !told.joined && !told.lost && !told.released && !finished_;
    if (news && joined->since) spent_ += joined->price * (now_ - *joined->since);
    if (!told.joined && !told.lost) fill_order(*joined);
    told.joined = true;
  } else if (const auto* notice = std::get_if<Notice>(&event)) {
    told_[notice->worker].noticed = true;
  } else if (const auto* lost = std::get_if<Lost>(&event)) {
    told_[lost->worker].lost = true;
  } else if (const auto* checkpoint = std::get_if<CheckpointDone>(&event)) {
    if (checkpoint->sample <= end()) saved_ = std::max(saved_, checkpoint->sample);
  } else if (const auto* estimated = std::get_if<Estimated>(&event)) {
    if (!finished_) promise_.samples = std::max(estimated->samples, end());
  } else if (const auto* charged = std::get_if<Charged>(&event)) {
    if (!finished_) spent_ += charged->cost;
  } else if (const auto* priced = std::get_if<Priced>(&event)) {
    for (auto& [id, told] : told_) {
      if (told.as.market == priced->market && told.as.type == priced->type && told.as.zone == priced->zone)
        told.as.price = priced->price;
    }
  }
}

void FaultChecks::after(Seconds now, const Event& event, const std::optional<TrainedStep>& step,
                        const Reaction& reaction, const Controller& controller) {
  hear(event);
  keep_ledger(event, step, controller.committed(), controller.checkpointed());
  for (const Command& command : reaction.commands) std::visit([&](const auto& c) { obey(c); }, command);
  require(finished_ == controller.finished(), "the controller is finished and has not said so");
  require_end();
  const auto& budget = promise_.budget;
  require(!budget || finished_ || spent_.value < budget->value * (1 + kRounding),
          "the budget is spent and money flows");
  require(std::abs(controller.spent().value - spent_.value) <= kRounding * (1 + spent_.value),
          fmt::format("the controller thinks {} USD are spent, it is {}", controller.spent().value, spent_.value));
  for (const auto& [id, told] : told_)
    require(!finished_ || !told.here(), fmt::format("training is over and w{} is still rented", id));
  require(now == now_, "time stands still within a step");
}

/// Where the target is reached, it is the end, or those who could save it have been told to.
void FaultChecks::require_end() {
  if (!reached()) asked_ = false;
  if (!reached() || finished_) return;
  require(save_, "the target is reached and training goes on");
  require(saved_ < *promise_.samples, "the target is saved and training goes on");
  require(asked_ || !assigned_, "the target is reached and nobody was told to save it");
}

void FaultChecks::keep_ledger(const Event& event, const std::optional<TrainedStep>& step, double committed,
                              double checkpointed) {
  const double before = end();
  if (std::holds_alternative<RolledBack>(event)) {
    if (committed != before) {
      require(committed == checkpointed && committed < before, "a rollback ends at the checkpoint");
      roll_back(committed);
    }
    return;
  }
  if (committed == before) return;
  require(step.has_value(), fmt::format("{} samples were committed without a step", committed - before));
  if (!step) return;
  require(!reached(), fmt::format("step {} lies beyond the target", step->id));
  require(step->first == before && step->end == committed,
          fmt::format("step {} holds [{}, {}), and [{}, {}) was committed for it", step->id, step->first, step->end,
                      before, committed));
  require(step->base == state_,
          fmt::format("step {} was trained from the state of step {}, and that of {} is committed", step->id,
                      step->base, state_));
  ledger_.push_back(*step);
  state_ = step->id;
  ++commits_;
}

void FaultChecks::roll_back(double to) {
  while (!ledger_.empty() && ledger_.back().first >= to) ledger_.pop_back();
  if (!ledger_.empty()) ledger_.back().end = to;
  require(end() == to, "what is left after a rollback reaches to the checkpoint");
  state_ = --restored_;
  ++rollbacks_;
}

void FaultChecks::raise(std::int64_t generation) {
  require(generation > generation_, fmt::format("generation {} follows {}", generation, generation_));
  require(!finished_, "training is over and goes on");
  generation_ = generation;
}

void FaultChecks::obey(const Acquire& command) {
  require(!finished_ && command.count > 0, fmt::format("{} machines ordered", command.count));
  const auto offered = [&](const Offer& offer) {
    return command.kind == MachineKind{offer.type, offer.zone, offer.market} && command.count <= offer.limit;
  };
  require(
      offers_.empty() ? command.kind == MachineKind{.market = Market::on_demand}
                      : std::any_of(offers_.begin(), offers_.end(), offered),
      fmt::format("{} x {} in {} ordered, which is not on offer", command.count, command.kind.type, command.kind.zone));
  std::erase_if(orders_, [&](const auto& order) { return order.first + patience_ <= now_; });
  orders_.insert(orders_.end(), static_cast<std::size_t>(std::max(0, command.count)), {now_, command.kind});
  const int expected = usable(Market::spot) + usable(Market::on_demand) + static_cast<int>(orders_.size());
  require(expected <= shapes_.most_machines(),
          fmt::format("{} machines there or ordered, none needs so many", expected));
}

void FaultChecks::obey(const Release& command) {
  Told& told = told_[command.worker];
  require(told.here(), fmt::format("release names w{}, which is not there", command.worker));
  told.released = true;
}

void FaultChecks::obey(const Assign& command) {
  raise(command.generation);
  assigned_ = true;
  asked_ = false;
  require(shapes_.find(command.shape).has_value(), "assign gives a shape of the table");
  require(static_cast<int>(command.members.size()) == command.shape.machines(), "assign fills its shape");
  require(std::set<WorkerId>(command.members.begin(), command.members.end()).size() == command.members.size(),
          "assign seats nobody twice");
  require(command.next_sample == end(),
          fmt::format("assign starts at {}, committed is {}", command.next_sample, end()));
  require(command.lost >= 0 && command.lost <= command.machines_before, "no more are lost than there were");
  for (const WorkerId worker : command.members) {
    const Told& told = told_[worker];
    require(told.here(), fmt::format("assign names w{}, which is not there", worker));
    require(!told.noticed, fmt::format("assign names w{}, which has had its notice", worker));
  }
}

void FaultChecks::obey(const Pause& command) {
  raise(command.generation);
  assigned_ = false;
}

void FaultChecks::obey(const Drain& command) {
  require(told_[command.worker].here(), fmt::format("drain names w{}, which is not there", command.worker));
}

void FaultChecks::obey(const Checkpoint&) {
  require(!finished_, "training is over and goes on");
  require(assigned_, "a checkpoint is asked of nobody");
  asked_ = true;
}

void FaultChecks::obey(const Finish& command) {
  require(!finished_, "training ends twice");
  finished_ = true;
  const auto& budget = promise_.budget;
  if (command.why == Finish::Why::target)
    require(reached() && (!save_ || saved_ >= *promise_.samples), "the target is not reached, or not saved");
  saved_target_ = save_ && command.why == Finish::Why::target;
  if (command.why == Finish::Why::budget)
    require(budget && spent_.value >= budget->value * (1 - kRounding), "the budget is not spent");
}

void FaultChecks::obey(const Wake& command) {
  require(!finished_, "training is over and a tick is asked for");
  require(command.at >= now_, "a tick is asked for in the past");
  wake_ = command.at;
}

}  // namespace mayfly
