// What is looked at while a run goes on.

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "run/session.h"

namespace mayfly {
namespace {

constexpr Seconds kPulse{0.25};
/// A formation that takes longer has a member that is alive and does not work.
constexpr Seconds kFormationPatience{10};
/// Before a broken mesh is built again with the same members; a lost one is usually known by then.
constexpr Seconds kReformAfter{0.3};
/// From the first word that members cannot reach each other, for those of others.
constexpr Seconds kReportsPatience{1};
/// Left out, at first; four times as long each time.
constexpr Seconds kAside{15};
/// Then it is given up, and replaced.
constexpr int kMostTimesAside = 3;

}  // namespace

void Session::pulse() {
  ring(Alarm::pulse, kPulse);
  // A process that was held up itself has not read what the others said meanwhile.
  const bool held_up = now_ - std::exchange(pulsed_, now_) > 2 * kPulse;
  if (!held_up) check_silence();
  check_formation();
  if (!held_up) check_steps();
  check_checkpoint();
  check_saving();
  check_last_holders();
  let_leavers_go();
  bring_back();
}

/// A machine that had its notice is not needed once the others train without it, or what it holds is saved.
void Session::let_leavers_go() {
  const bool saved = !saving_.asked() && saving_.holds(crew_->sample());
  if (!crew_->training() && !saved) return;
  for (const auto& [worker, member] : members_.all()) {
    if (member.leaving && !crew_->stands(worker)) out_.send(worker, Leave{"preempted"});
  }
}

void Session::check_silence() {
  // Those that do not come back are found by begin_training().
  if (phase_ == Phase::attaching) return;
  for (const WorkerId worker : members_.silent(now_, inputs_.times.silence))
    lose(worker, fmt::format("silent for {}", format_duration(inputs_.times.silence)));
}

void Session::check_formation() {
  if (phase_ == Phase::attaching || stateless_ || crew_->ranks().empty()) return;
  // Where a member is gone the controller has been told, and decides.
  if (!crew_->complete() || part_unreachable()) return;
  const Seconds age = now_ - formation_time_;
  if (crew_->broken() && age > kReformAfter) return stand_again();
  if (crew_->training() || age < kFormationPatience) return;
  const auto awaited = crew_->awaited();
  formation_time_ = now_;
  // Where some came, those that did not are at fault; where no worker of a mesh did, hardly all of them.
  if (awaited.size() < crew_->ranks().size()) {
    for (const WorkerId worker : awaited) lose(worker, "did not come into formation");
  } else if (!awaited.empty()) {
    stand_again();
  }
}

bool Session::part_unreachable() {
  const auto apart = crew_->apart();
  if (apart.empty()) apart_since_.reset();
  if (!apart_since_ && !apart.empty()) apart_since_ = now_;
  // Others may be about to say the same, by which it is clearer who is to be left out.
  if (!apart_since_ || now_ - *apart_since_ < kReportsPatience) return apart_since_.has_value();
  apart_since_.reset();
  for (const WorkerId worker : apart) set_aside(worker);
  return true;
}

void Session::set_aside(WorkerId worker) {
  Roster::Member* const member = members_.find(worker);
  if (member == nullptr) return;
  if (member->server || !member->joined || ++member->times_aside > kMostTimesAside)
    return lose(worker, "others cannot reach it, nor it them");
  const Seconds pause = kAside * std::pow(4, member->times_aside - 1);
  say(fmt::format("{} cannot be reached by others, or cannot reach them: left out for {}", name_of(worker, *member),
                  format_duration(pause)));
  member->joined = false;
  member->aside = now_ + pause;
  watch_.drop(worker);
  crew_->set_aside(worker);
  // A formation of servers goes on, and this worker may be in it again.
  if (!crew_->has_servers()) out_.send(worker, Halt{crew_->formation()});
  tell(Lost{.worker = worker, .returns = true});
}

void Session::bring_back() {
  if (phase_ != Phase::training) return;
  std::vector<WorkerId> back;
  for (auto& [worker, member] : members_.all()) {
    if (!member.aside || now_ < *member.aside) continue;
    member.aside.reset();
    if (!member.leaving) back.push_back(worker);
  }
  for (const WorkerId worker : back) {
    // What follows from one may end another.
    if (Roster::Member* const member = members_.find(worker)) {
      if (!crew_->alive(worker)) crew_->arrived(worker);
      join(worker, *member);
    }
  }
}

void Session::watch(const Letter& letter) {
  const auto* proceed = std::get_if<Proceed>(&letter.message);
  const auto* lease = std::get_if<Lease>(&letter.message);
  // A look at the validation set takes as long as it takes: steps say nothing about it.
  const bool looks = (proceed != nullptr && proceed->evaluate) || (lease != nullptr && lease->evaluate);
  if (lease != nullptr && !looks) watch_.given(now_, letter.to, {lease->formation, lease->lease});
  if (proceed != nullptr && !proceed->counts.empty() && !looks)
    watch_.given(now_, letter.to, {proceed->formation, proceed->committed});
  if (const auto* halt = std::get_if<Halt>(&letter.message)) watch_.broke(letter.to, halt->formation);
}

void Session::check_steps() {
  if (phase_ != Phase::training && phase_ != Phase::saving) return;
  const StepWatch::Findings findings = watch_.look(now_);
  for (const WorkerId worker : findings.explain) {
    say(fmt::format("w{} does not get on: {}", worker, watch_.story(now_, worker)));
    out_.send(worker, Explain{});
  }
  for (const WorkerId worker : findings.lose) lose_failed(worker, "does not get on: its log says where it was");
  if (!findings.stuck) return;
  say("the workers wait for each other: they are to stand together anew");
  stand_again();
}

/// A worker that does not get on may hold up those that could save.
void Session::end_saving() {
  if (verdict_) return fail_as_judged();
  const auto busy = watch_.busy();
  if (busy.empty()) return fail("stopped, but no worker could write a last checkpoint");
  for (const WorkerId worker : busy) lose(worker, watch_.story(now_, worker));
  ring(Alarm::save, kSavePatience);
}

void Session::check_checkpoint() {
  // Those that are given back wait for it where they alone hold the state.
  const bool awaited = !to_release_.empty();
  if (phase_ != Phase::training || (!crew_->training() && !awaited) || nan_steps_ > 0) return;
  const bool last = awaited || (target_ && crew_->sample() >= *target_);
  if (saving_.due(now_, crew_->sample(), last, accounts_.preemptions())) request_checkpoint();
}

void Session::check_saving() {
  if (phase_ != Phase::saving || ended_) return;
  const bool nobody =
      std::none_of(members_.all().begin(), members_.all().end(), [](const auto& entry) { return entry.second.joined; });
  // The workers that held more than the newest checkpoint are lost, and no newcomer is let in.
  if (nobody || saving_.holds(crew_->sample())) end(RunEnd::stopped);
}

}  // namespace mayfly
