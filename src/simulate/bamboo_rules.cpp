#include "simulate/bamboo_rules.h"

#include <set>

// Model: docs/models.md#bamboo.
namespace mayfly::bamboo {

void Simulation::run(Ms horizon, std::optional<std::int64_t> steps) {
  while (!events_.empty() && !unknown_width_) {
    const Event event = events_.pop();
    if (event.time > horizon) {
      now_ = horizon;
      break;
    }
    now_ = event.time;
    happen(event);
    run_.finished = steps && run_.steps >= *steps;
    if (run_.finished) break;
    if (events_.empty() || events_.next().time != now_) note_moment();
  }
  for (const Machine& machine : machines_) lives_ += now_ - machine.since;
  lived_ += static_cast<int>(machines_.size());
}

void Simulation::happen(const Event& event) {
  switch (event.what) {
    case What::add:
      machines_.push_back({.id = event.subject, .since = now_});
      events_.push({now_ + setup_.start, What::ready, event.subject});
      break;
    case What::remove:
      lose(event.subject);
      break;
    case What::draw_hour:
      draw_hour();
      break;
    case What::ready:
      make_ready(event.subject);
      break;
    case What::global_rendezvous:
    case What::local_rendezvous:
      gathered(event.what);
      break;
    case What::step:
      end_step(event.subject);
      break;
  }
}

void Simulation::lose(int machine) {
  const auto at = find(machine);
  if (at == machines_.end()) return;
  const Machine lost = std::move(*at);
  machines_.erase(at);
  ++run_.preemptions;
  removals_.push_back(now_);
  lives_ += now_ - lost.since;
  ++lived_;
  if (fatal_loss(lost)) {
    ++run_.fatal_failures;
    gather(What::global_rendezvous);
  } else if (status_ == Status::training && !loss_) {
    // Also when a machine that only waited goes.
    loss_ = Loss{.step = run_.steps, .time = now_};
    step_ = stretched(step_, setup_.slowdown);
  }
}

/// Hands the lost stage to the machine before it, unless one of the two already does the work of two. Machines keep
/// their places until the next rendezvous completes, so losses while gathering may be fatal again.
bool Simulation::fatal_loss(const Machine& lost) {
  if (lost.state != Machine::State::running) return false;
  if (lost.places.size() > 1) return true;
  const Place place = lost.places.front();
  const Place before{place.pipeline, (place.stage == 0 ? depth_ : place.stage) - 1};
  for (Machine& machine : machines_) {
    if (std::find(machine.places.begin(), machine.places.end(), before) == machine.places.end()) continue;
    if (machine.places.size() > 1) return true;
    machine.places.push_back(place);
    return false;
  }
  return false;
}

void Simulation::make_ready(int machine) {
  const auto at = find(machine);
  if (at == machines_.end()) return;
  at->state = Machine::State::ready;
  switch (status_) {
    case Status::stopped:
      gather(What::global_rendezvous);
      break;
    case Status::gathering:
      gathering_.push_back(machine);
      break;
    case Status::training:
      ++waiting_;
      break;
  }
}

/// Does not cancel a rendezvous under way: its timeout comes as well, see gathered().
void Simulation::gather(What how) {
  status_ = Status::gathering;
  gathering_.clear();
  for (const Machine& machine : machines_) {
    if (machine.state != Machine::State::starting) gathering_.push_back(machine.id);
  }
  events_.push({now_ + (how == What::global_rendezvous ? setup_.global_rendezvous : setup_.local_rendezvous), how});
}

/// The time to gather is over. Of two timeouts the second finds no machine gathering and stops the training, until the
/// next one is ready.
void Simulation::gathered(What how) {
  for (const int machine : gathering_) {
    if (find(machine) == machines_.end()) return gather(how);
  }
  pipelines_ = static_cast<int>(gathering_.size()) / setup_.stages;
  depth_ = pipelines_ > 0 ? setup_.stages : 0;
  waiting_ = static_cast<int>(gathering_.size()) - pipelines_ * depth_;
  int taken = 0;
  for (const int id : gathering_) {
    Machine& machine = *find(id);
    machine.places.clear();
    machine.state = taken < pipelines_ * depth_ ? Machine::State::running : Machine::State::ready;
    if (machine.state == Machine::State::running) machine.places = {{taken / depth_, taken % depth_}};
    ++taken;
  }
  gathering_.clear();
  loss_.reset();
  ++rendezvous_;
  status_ = pipelines_ > 0 ? Status::training : Status::stopped;
  if (pipelines_ == 0) return;
  const auto step = setup_.steps.find(pipelines_);
  if (step == setup_.steps.end()) {
    unknown_width_ = pipelines_;
    return;
  }
  step_ = step->second;
  if (!first_step_) {
    first_step_ = now_;
    last_step_ = now_;
  }
  events_.push({now_ + step_, What::step, rendezvous_});
}

/// Steps go on while the survivors of a fatal failure gather: they end only with the rendezvous that replaces theirs.
void Simulation::end_step(int rendezvous) {
  if (rendezvous != rendezvous_) return;
  if (loss_ && !loss_->charged && loss_->step == run_.steps) {
    loss_->charged = true;
    events_.push({now_ + stretched(now_ - loss_->time, setup_.slowdown - 1), What::step, rendezvous});
    return;
  }
  ++run_.steps;
  const double length = static_cast<double>((now_ - last_step_).count());
  const double held = machine_ms(last_step_);
  if (held > 0) value_ms_ += setup_.batch * 1000 * length / held;
  last_step_ = now_;
  if (reshape_pays())
    gather(What::local_rendezvous);
  else
    events_.push({now_ + step_, What::step, rendezvous_});
}

bool Simulation::reshape_pays() const {
  const int doubled = static_cast<int>(std::count_if(machines_.begin(), machines_.end(), [](const Machine& machine) {
    return machine.state == Machine::State::running && machine.places.size() > 1;
  }));
  const int active = pipelines_ * depth_ - doubled;
  if (doubled > 0 && waiting_ >= doubled) return true;
  // The next loss would be fatal with this probability: a doubled machine's, or that of the one behind it.
  if (doubled > 0 && 2.0 * doubled / active > 0.05) return true;
  return (active + waiting_) / setup_.stages > pipelines_;
}

/// Machines held, integrated from `from` to now, of the moments noted so far.
double Simulation::machine_ms(Ms from) const {
  if (counts_.empty()) return static_cast<double>(machines_.size()) * static_cast<double>((now_ - from).count());
  double sum = 0;
  Ms until = now_;
  for (auto count = counts_.rbegin(); count != counts_.rend() && until > from; ++count) {
    const Ms begin = std::next(count) == counts_.rend() ? from : std::max(from, count->first);
    sum += count->second * static_cast<double>((until - begin).count());
    until = begin;
  }
  return sum;
}

/// Machines that come at time 0 are counted from the first later event on, with those that it brings.
void Simulation::note_moment() {
  const int machines = static_cast<int>(machines_.size());
  if (counts_.empty() ? now_ > Ms(0) : counts_.back().second != machines)
    counts_.emplace_back(counts_.empty() ? Ms(0) : now_, machines);
  const auto starting = std::count_if(machines_.begin(), machines_.end(),
                                      [](const Machine& m) { return m.state == Machine::State::starting; });
  const BambooMoment moment{.time = now_,
                            .machines = machines,
                            .ready = machines - static_cast<int>(starting),
                            .data_parallel = status_ == Status::training ? pipelines_ : 0};
  if (!run_.moments.empty()) {
    BambooMoment same = run_.moments.back();
    same.time = moment.time;
    if (same == moment) return;
  }
  run_.moments.push_back(moment);
}

BambooRun Simulation::result(UsdPerHour price) const {
  BambooRun run = run_;
  if (first_step_ && last_step_ > *first_step_) {
    const Ms trained = last_step_ - *first_step_;
    run.first_step = *first_step_;
    run.last_step = last_step_;
    run.speed = Samples{static_cast<double>(run.steps) * setup_.batch} / Seconds(trained);
    run.value = value_ms_ / static_cast<double>(trained.count()) / price.value;
    // The last count reaches back to the last step where it began after it; the difference is the machines lost since.
    double held = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const Ms until = i + 1 < counts_.size() ? counts_[i + 1].first : last_step_;
      held += counts_[i].second * static_cast<double>((until - counts_[i].first).count());
    }
    run.machines = held / static_cast<double>(last_step_.count());
    run.cost = run.machines * price;
  }
  if (removals_.size() > 1)
    run.interval = Seconds(removals_.back() - removals_.front()) / static_cast<double>(removals_.size() - 1);
  if (lived_ > 0) run.lifetime = Seconds(lives_) / static_cast<double>(lived_);
  return run;
}

void Simulation::draw_weather(const BambooWeather& weather) {
  rng_.emplace(weather.seed);
  removal_ = weather.removal;
  for (double& probability : addition_) probability = rng_->uniform();
  for (int i = 0; i < setup_.capacity; ++i) {
    if (rng_->chance(addition_[0])) add_at(Ms(0), next_machine_++);
  }
  events_.push({Ms(0), What::draw_hour});
}

std::optional<Ms> Simulation::moment_within_hour(double probability) {
  if (!rng_->chance(probability)) return std::nullopt;
  return now_ + std::chrono::seconds(rng_->below(3600));
}

/// Losses of the machines there are, then additions up to the capacity; who is added may go within the same hour.
void Simulation::draw_hour() {
  events_.push({now_ + std::chrono::hours(1), What::draw_hour});
  std::set<std::pair<Ms, int>> losses;
  for (const Machine& machine : machines_) {
    if (const auto time = moment_within_hour(removal_)) losses.emplace(*time, machine.id);
  }
  int held = static_cast<int>(machines_.size());
  const double addition = addition_[std::chrono::floor<std::chrono::hours>(now_).count() % 24];
  std::vector<Ms> additions;
  for (int i = setup_.capacity - held + static_cast<int>(losses.size()); i > 0; --i) {
    if (const auto time = moment_within_hour(addition)) additions.push_back(*time);
  }
  std::sort(additions.begin(), additions.end());
  for (const Ms time : additions) {
    for (; !losses.empty() && losses.begin()->first < time; --held) {
      remove_at(losses.begin()->first, losses.begin()->second);
      losses.erase(losses.begin());
    }
    if (held == setup_.capacity) continue;
    ++held;
    const int machine = next_machine_++;
    add_at(time, machine);
    if (const auto loss = moment_within_hour(removal_); loss && *loss >= time) losses.emplace(*loss, machine);
  }
  for (const auto& [time, machine] : losses) remove_at(time, machine);
}

}  // namespace mayfly::bamboo
