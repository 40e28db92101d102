// How a run begins, and how it ends.

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "run/session.h"
#include "run/whole_samples.h"

namespace mayfly {
namespace {

constexpr Seconds kEndPatience{5};
constexpr Seconds kScriptPatience{60};
constexpr Seconds kStepPatience{5};
/// Interrupts within this time are one.
constexpr Seconds kOneWord{1};
constexpr Seconds kEnginePatience{1};

}  // namespace

void Session::say(Seconds now, const std::string& text) {
  at(now);
  say(text);
}

Seconds Session::restore(const std::vector<std::string>& lines, const Notes& notes) {
  const auto noted = [&](const std::string& key) {
    const auto found = notes.find(key);
    return found == notes.end() ? std::string() : found->second;
  };
  const auto number = [&](const char* key) { return parse_integer(noted(key)).value_or(0); };
  std::vector<std::function<void()>> money;  // for the fleet, once it is restored
  const auto part = [&](WorkerId worker) {
    members_.remove(worker);
    money.emplace_back([this, worker, time = now_] { fleet_.parted(time, worker); });
  };
  for (const std::string& line : lines) {
    const auto event = event_in(line);
    if (!event) {
      out_.add(JournalLine{line, true});
      continue;
    }
    at(event->time);
    const Reaction reaction = controller_.step(event->time, event->event);
    // The journal is written anew from what was stored.
    out_.add(Record{.event = *event, .lines = reaction.records, .stored = true});
    if (const auto* joined = std::get_if<Joined>(&event->event)) {
      money.emplace_back([this, worker = joined->worker] { fleet_.joined(worker); });
      members_.restore(joined->worker, {.ready = true, .joined = true, .since = event->time});
    }
    if (const auto* lost = std::get_if<Lost>(&event->event)) part(lost->worker);
    if (const auto* estimated = std::get_if<Estimated>(&event->event)) target_ = wanted_samples(estimated->samples);
    for (const Command& command : reaction.commands) {
      if (const auto* assign = std::get_if<Assign>(&command)) assigned_ = *assign;
      if (std::holds_alternative<Pause>(command)) assigned_.reset();
      if (const auto* release = std::get_if<Release>(&command)) part(release->worker);
      if (const auto* asked = std::get_if<Wake>(&command)) obey(*asked);
    }
  }
  // It is carried out once more, and the steps since then stay.
  if (assigned_) assigned_->next_sample = controller_.committed();
  const Json counts = Json::parse(notes.contains("accounts") ? noted("accounts") : "{}", nullptr, false);
  if (counts.is_object())
    accounts_.restore(counts.value("preemptions", 0), counts.value("samples_redone", std::int64_t{0}));
  members_.named_until(static_cast<WorkerId>(number("worker")));
  run_ = noted("run");
  epoch_ = number("epoch");
  data_ = noted("data");
  if (epoch_ > 0) guard_.emplace(inputs_, epoch_);
  saving_.start_at(now_);
  crew_ = make_crew(number("formation"));
  crew_record_ = noted("crew");
  crew_->restore(crew_record_, whole_samples(controller_.committed()));
  for (const WorkerId server : crew_->servers())
    members_.restore(server, {.ready = true, .joined = true, .server = true});
  formation_seen_ = crew_->formation();
  fleet_.restore(now_, noted("fleet"));
  for (const auto& count : money) count();
  for (auto& [worker, member] : members_.all()) {
    member.launch = fleet_.launch_of(worker);
    member.noted_cache = noted(fmt::format("cache-{}", worker));
  }
  return now_;
}

void Session::begin(Seconds now) {
  at(now);
  pulsed_ = now_;
  ring(Alarm::pulse, Seconds(0));
  if (controller_.finished()) {
    // Its controller died after the last word was stored.
    end(controller_.why_finished() == Finish::Why::target ? RunEnd::trained : RunEnd::budget);
    fleet_.end_all();
    return deliver();
  }
  fleet_.begin(now_);
  if (members_.empty()) {
    begin_training();
  } else {
    ring(Alarm::attach, 2 * inputs_.times.silence);
  }
  deliver();
}

void Session::begin_training() {
  if (phase_ != Phase::attaching) return;
  phase_ = Phase::training;
  alarms_.erase(Alarm::attach);
  std::vector<WorkerId> missing;
  for (const auto& [worker, member] : members_.all()) {
    // Those that are new and not ready yet are not missed.
    if (member.joined && !crew_->alive(worker)) missing.push_back(worker);
  }
  const auto before = controller_.generation();
  for (const WorkerId worker : missing) lose(worker, "did not come back to the controller");
  // Where one of the assigned is missing, the controller has heard of it and decides; of others it may have known that
  // they go, and has nothing to decide.
  const bool all_here = assigned_ && std::all_of(assigned_->members.begin(), assigned_->members.end(),
                                                 [&](WorkerId worker) { return crew_->alive(worker); });
  if (all_here && controller_.generation() == before) obey(Assign(*assigned_));
  // Newcomers only now: the controller has heard which of the others are gone.
  tell_held();
  tell(Tick{});
  if (told_to_stop_) stop();
}

void Session::pass(Seconds now) {
  at(now);
  while (!over_) {
    const auto next = std::min_element(alarms_.begin(), alarms_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (next == alarms_.end() || next->second > now_) break;
    // One at a time, with its letters: what follows from it may cancel the next.
    const Alarm alarm = next->first;
    alarms_.erase(next);
    ring(alarm);
    deliver();
  }
  deliver();
}

std::optional<Seconds> Session::due() const {
  std::optional<Seconds> next = fleet_.due();
  for (const auto& [alarm, time] : alarms_) next = std::min(next.value_or(time), time);
  return next;
}

void Session::ring(Alarm alarm) {
  switch (alarm) {
    case Alarm::pulse:
      return pulse();
    case Alarm::wake:
      return tell(Tick{});
    case Alarm::boundary:
      return tell_held();
    case Alarm::decision:
      if (phase_ != Phase::ending) crew_->go_on(phase_ == Phase::saving ? crew_->sample() : end_sample(), evaluate_);
      return;
    case Alarm::attach:
      return begin_training();
    case Alarm::step:
      ring(Alarm::save, kSavePatience);
      return request_checkpoint();
    case Alarm::save:
      return end_saving();
    case Alarm::budget:
      saving_.give_up();
      return end(RunEnd::budget);
    case Alarm::leave:
      fleet_.end_all();
      return ring(Alarm::close, kEnginePatience);
    case Alarm::close:
      return close();
    case Alarm::list:
      return out_.add(List{});
  }
}

void Session::deliver() {
  release();
  if (crew_->formation() != formation_seen_) {
    formation_seen_ = crew_->formation();
    formation_time_ = now_;
    workers_seen_ = 0;
    // Before a worker or server hears of it: the number must not be used again.
    out_.note("formation", std::to_string(formation_seen_));
    note_crew();
  }
  if (crew_->training() && crew_->ranks().size() != workers_seen_) {
    workers_seen_ = crew_->ranks().size();
    if (guard_) guard_->begin(static_cast<int>(workers_seen_));
  }
  for (Letter& letter : crew_->letters()) {
    watch(letter);
    out_.add(std::move(letter));
  }
  attend_fleet();
}

void Session::attend_fleet() {
  Fleet::Wishes wishes = fleet_.wishes(now_);
  for (const std::string& text : wishes.sayings) say(text);
  // The intent before the act: should this process die in between, the next one knows what to look for.
  if (!wishes.orders.empty()) note_fleet();
  if (!wishes.orders.empty() || !wishes.tells.empty() || !wishes.ends.empty())
    out_.add(Ask{std::move(wishes.orders), std::move(wishes.tells), std::move(wishes.ends)});
}

void Session::signal(Seconds now, Signal which) {
  at(now);
  if (which == Signal::interrupt) {
    if (interrupted_ && now_ - *interrupted_ > kOneWord) return end_at_once();
    if (!interrupted_ && (phase_ == Phase::saving || phase_ == Phase::ending))
      out_.add(Say{"once more to end at once"});
    if (!interrupted_) interrupted_ = now_;
  }
  const bool first = !std::exchange(told_to_stop_, true);
  // Otherwise looked at again when those who hold the state are back.
  if (first && phase_ == Phase::training) stop();
  deliver();
}

void Session::end_at_once() {
  if (!ended_) ended_ = RunEnd::stopped;
  fleet_.close();
  fleet_.end_all();
  attend_fleet();
  close();
}

void Session::stop() {
  phase_ = Phase::saving;
  fleet_.close();
  const bool held = crew_->has_servers() ? !crew_->stateless()
                                         : std::any_of(crew_->ranks().begin(), crew_->ranks().end(),
                                                       [&](WorkerId worker) { return crew_->alive(worker); });
  // What is being written may hold all there is, though those who held it stand nowhere any more.
  const bool written = saving_.asked();
  if ((!held && !written) || saving_.holds(crew_->sample())) return end(RunEnd::stopped);
  out_.add(Say{interrupted_ ? "saving; once more to end at once" : "saving"});
  // The step in hand is waited for, if it does not take too long.
  ring(Alarm::step, kStepPatience);
  for (const auto& [worker, member] : members_.all()) {
    if (member.joined && member.leaving) save_within((member.leaves - now_) / 4);
  }
}

void Session::save_within(Seconds patience) {
  const auto step = alarms_.find(Alarm::step);
  if (step != alarms_.end()) step->second = std::min(step->second, now_ + std::max(Seconds(0), patience));
}

/// A script may have something to do behind its loop.
Seconds Session::end_patience() const { return inputs_.script ? kScriptPatience : kEndPatience; }

void Session::end(RunEnd how) {
  if (phase_ == Phase::ending) return;
  if (saving_.asked() && how == RunEnd::budget) {
    // Machines wait for their last checkpoint, but not at any price.
    phase_ = Phase::saving;
    ring(Alarm::budget, kSavePatience);
    ended_ = how;
    return;
  }
  if (!ended_) ended_ = how;
  phase_ = Phase::ending;
  fleet_.close();
  for (const auto& [worker, member] : Roster::Members(members_.all())) {
    dismiss(worker, "the run has ended");
    // For the account of money, and so that a later process does not wait for it.
    if (member.joined && !member.server && !controller_.finished()) tell(Lost{worker});
  }
  // A machine that has not said Hello yet is no member's and holds nothing.
  for (const auto& [launch, it] : fleet_.launches()) {
    if (!it.released) fleet_.end(launch);
  }
  for (const Alarm alarm : {Alarm::step, Alarm::save, Alarm::budget}) alarms_.erase(alarm);
  ring(Alarm::leave, end_patience());
  close_when_empty();
}

void Session::fail_run(Seconds now, std::string why) {
  at(now);
  fail(std::move(why));
  deliver();
}

void Session::fail(std::string why) {
  if (failure_) return;
  failure_ = std::move(why);
  phase_ = Phase::ending;
  fleet_.close();
  for (const auto& [worker, member] : members_.all()) out_.send(worker, Leave{"the run has failed"});
  for (const Alarm alarm : {Alarm::step, Alarm::save, Alarm::budget}) alarms_.erase(alarm);
  ring(Alarm::leave, kEndPatience);
  close_when_empty();
}

void Session::close_when_empty() {
  if (phase_ == Phase::ending && fleet_.launches().empty()) close();
}

void Session::close() {
  if (std::exchange(over_, true)) return;
  deliver();
  out_.add(Close{});
}

}  // namespace mayfly
