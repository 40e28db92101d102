// What workers and servers say, and what becomes of them.

#include <algorithm>
#include <cmath>

#include "base/overloaded.h"
#include "base/text.h"
#include "data/checkpoint_folder.h"
#include "run/session.h"
#include "run/whole_samples.h"

namespace mayfly {
namespace {

/// Machines that fail by themselves before they are ready, in a row, until the run is given up.
constexpr int kMostFailedStarts = 5;
/// The list of those in the run waits so long for others that come, for each one in it: a long list takes longer to
/// write.
constexpr Seconds kListEach{1e-4};
/// Until a machine that was dismissed is ended.
constexpr Seconds kLeavePatience{3};

}  // namespace

Result<Welcome> Session::hello(Seconds now, const Hello& hello) {
  at(now);
  if (hello.launch >= 0 && hello.machine != machine_name(run_, hello.launch))
    return mayfly::fail("slot {} belongs to a machine that the run starts itself: a worker started by hand has none",
                        hello.launch);
  WorkerId worker = 0;
  if (hello.worker) {
    // It counts as lost for good: others go on without it, and it might hold another history.
    if (members_.find(*hello.worker) == nullptr) return mayfly::fail("its lease has ended");
    worker = *hello.worker;
  } else {
    if (phase_ == Phase::saving || phase_ == Phase::ending) return mayfly::fail("the run is ending");
    if (hello.role != "worker" && hello.role != "server")
      return mayfly::fail("role '{}', want worker or server", hello.role.substr(0, 40));
    if (hello.role == "server" && !crew_->has_servers()) return mayfly::fail("this job has no servers");
    if (fleet_.numbered(hello.launch) && fleet_.find(hello.launch) == nullptr)
      return mayfly::fail("its machine has been given up");
    if (fleet_.numbered(hello.launch)) {
      for (const WorkerId other : members_.forget_unready(hello.launch)) out_.add(Cut{other});
    }
    worker = members_.admit({.launch = hello.launch, .server = hello.role == "server", .since = now_});
    // Before it is told: after a restart the name must not be given to another.
    out_.note("worker", std::to_string(worker));
  }
  const bool describes = train_.model.is_script() && train_.servers;
  return Welcome{.worker = worker,
                 .run = run_,
                 .job = inputs_.job_text,
                 .job_file = inputs_.job_file.string(),
                 .directory = checkpoints(),
                 .heartbeat_s = inputs_.times.heartbeat.count(),
                 .lease_s = inputs_.times.silence.count(),
                 .orphan_s = inputs_.times.orphan.count(),
                 .seed = static_cast<std::int64_t>(train_.seed),
                 .sum = train_.sum,
                 .clip = train_.clip,
                 .network = describes ? (std::filesystem::path(checkpoints()) / kNetworkFile).string() : "",
                 .private_network = inputs_.private_network};
}

void Session::connected(Seconds now, WorkerId worker, const Hello& hello) {
  at(now);
  Roster::Member* const found = members_.find(worker);
  if (found == nullptr) return;
  Roster::Member& member = *found;
  member.closed.reset();
  member.heard = now_;
  member.launch = hello.launch;
  member.pid = hello.pid;
  if (fleet_.find(hello.launch) != nullptr) {
    fleet_.greeted(hello.launch, worker);
    note_fleet();
  }
  if (!alarms_.contains(Alarm::list)) ring(Alarm::list, kListEach * static_cast<double>(members_.all().size()));
  if (!hello.worker) return;
  // It missed what was said meanwhile, and this process may be another than the one it told.
  if (member.cache.empty()) member.cache = member.noted_cache;
  if (!member.cache.empty()) tell_neighbours();
  if (!member.joined) return;
  const bool stood = crew_->stands(worker);
  crew_->arrived(worker, {.sample = hello.sample, .pending = hello.pending, .formation = hello.formation});
  if (phase_ == Phase::attaching) {
    const bool all = std::all_of(members_.all().begin(), members_.all().end(),
                                 [&](const auto& entry) { return crew_->alive(entry.first); });
    if (all) begin_training();
  } else if (stood) {
    // What was said meanwhile is lost on one side or the other: stand together anew.
    stand_again();
  }
  deliver();
}

void Session::hear(Seconds now, WorkerId worker, const FromMember& message) {
  at(now);
  if (Roster::Member* const member = members_.find(worker)) member->heard = now_;
  std::visit(Overloaded{
                 [&](const Ready& ready) { on_ready(worker, ready); },
                 [&](const Leaving& leaving) { on_leaving(worker, leaving); },
                 [&](const AtRisk& risk) { on_at_risk(worker, risk); },
                 [&](const Fed& fed) { accounts_.fed(worker, fed); },
                 [&](const CheckpointWritten& written) {
                   // From here on the vault may remove an older one that is just being sought.
                   ++publishes_;
                   out_.add(Publish{written});
                 },
                 [&](const CheckpointFailed& failed) { on_not_written(failed); },
                 [&](const Unable& unable) { on_unable(worker, unable); },
                 Ignoring<void, Reachable, Formed, StepDone, Pushed, Broken>{},  // for the crew
                 Ignoring<void, Measurement>{},                                  // no run measures
                 [&](const Alive& alive) { watch_.heard(worker, alive.doing); },
             },
             message);
  // A worker that is unable is lost: a crew does not hear its last word.
  if (std::holds_alternative<Unable>(message)) return deliver();
  if (const auto* done = std::get_if<StepDone>(&message))
    watch_.done(now_, worker, {done->formation, done->first_sample});
  if (const auto* pushed = std::get_if<Pushed>(&message)) watch_.done(now_, worker, {pushed->formation, pushed->lease});
  if (const auto* broken = std::get_if<Broken>(&message)) watch_.broke(worker, broken->formation);
  if (const auto* reachable = std::get_if<Reachable>(&message)) watch_.broke(worker, reachable->formation - 1);
  const auto step = crew_->hear(worker, message);
  if (step && step->range.count == 0) {
    learn(*step, Seconds(0));
  } else if (step) {
    commit(*step);
  } else if (crew_->training() && !held_.empty() && crew_->awaited().empty()) {
    // Nothing is in hand, so no end of a step will come at which they could be told.
    tell_held();
  }
  deliver();
}

void Session::on_server_ready(WorkerId worker, const Ready& message) {
  members_.find(worker)->joined = true;
  crew_->server_ready(worker, message.address);
  note_crew();
  check_state();
}

/// All must train on the same: the order of samples follows from their number.
Result<void> Session::check_data(const Ready& message) const {
  if (epoch_ > 0 && message.samples != epoch_)
    return mayfly::fail("its data set has {} samples, that of the run {}", message.samples, epoch_);
  if (!data_.empty() && !message.data.empty() && message.data != data_)
    return mayfly::fail("its data set is another than that of the run: {}, want {}", message.data, data_);
  return {};
}

void Session::learn_epoch(const Ready& message) {
  if (epoch_ == 0) {
    epoch_ = message.samples;
    out_.note("epoch", std::to_string(epoch_));
  }
  if (data_.empty() && !message.data.empty()) {
    data_ = message.data;
    out_.note("data", data_);
  }
  if (!guard_) guard_.emplace(inputs_, epoch_);
  // 0: not known. What the job says counts, also where it said something else when the run began.
  double wanted = target_ ? 0 : inputs_.forecast.samples.value_or(0);
  if (inputs_.spec.epochs) wanted = std::ceil(*inputs_.spec.epochs * static_cast<double>(epoch_));
  if (inputs_.spec.steps) wanted = *inputs_.spec.steps * train_.batch;
  if (wanted <= 0 || target_ == wanted_samples(wanted)) return;
  if (wanted >= static_cast<double>(kMostSamples)) {
    ended_ = RunEnd::unable;
    return fail(fmt::format("{}: {:g} samples are wanted, and a run counts up to {:g}", inputs_.job_file.string(),
                            wanted, static_cast<double>(kMostSamples)));
  }
  target_ = wanted_samples(wanted);
  tell(Estimated{wanted});
}

void Session::on_ready(WorkerId worker, const Ready& message) {
  Roster::Member* const found = members_.find(worker);
  if (found == nullptr || found->ready) return;
  Roster::Member& member = *found;
  if (message.cache) {
    member.cache = *message.cache;
    out_.note(fmt::format("cache-{}", worker), member.cache);
    tell_neighbours();
  }
  member.ready = true;
  failed_starts_ = 0;
  out_.remark(now_, fmt::format("{} is ready: {} parameters, {:.2f} MB of state, loaded in {:.2f} s",
                                short_name(worker, member), message.parameters, message.state_mb, message.load_s));
  saving_.learn_size(message.state_mb);
  if (member.leaving) return;  // gone before it could do anything
  if (member.server) return on_server_ready(worker, message);
  fleet_.settled(now_, member.launch);
  if (const auto same = check_data(message); !same) return on_unable(worker, {same.error().message});
  learn_epoch(message);
  crew_->arrived(worker, {.sample = 0});  // the first weights
  join(worker, member);
}

void Session::join(WorkerId worker, Roster::Member& member) {
  member.joined = true;
  const Fleet::Launch* launch = fleet_.find(member.launch);
  const MachineRole role = launch != nullptr ? launch->role : MachineRole{.type = "joined"};
  if (role.batch > 0) crew_->set_batch(worker, role.batch);
  const Joined joined{.worker = worker,
                      .type = role.type,
                      .zone = role.zone,
                      .market = role.market,
                      .price = role.price,
                      .since = launch != nullptr ? fleet_.uncounted_since(*launch) : std::nullopt};
  // Those of an earlier controller still count as there, and a machine too many would be sent away at once.
  if (phase_ == Phase::attaching) return held_.push_back(joined);
  tell_at_boundary(joined, Seconds(2));
}

void Session::tell_neighbours() {
  const Neighbours neighbours = members_.neighbours();
  for (const int worker : neighbours.workers) out_.send(worker, neighbours);
}

void Session::on_unable(WorkerId worker, const Unable& message) {
  // Nothing was ever trained: the job is at fault rather than a machine.
  if (controller_.committed() == 0) {
    ended_ = RunEnd::unable;
    return fail(message.what);
  }
  lose_failed(worker, message.what);
}

void Session::lose_failed(WorkerId worker, const std::string& why) {
  const Roster::Member* const member = members_.find(worker);
  if (member == nullptr) return;
  const std::int64_t place = crew_->place_of(worker);
  if (phase_ != Phase::ending && failures_.add(place))
    return fail(
        fmt::format("{} failed at sample {}, as others did before it: {}", name_of(worker, *member), place, why));
  // Of one that the controller does not know yet nothing is said otherwise.
  if (!member->joined) say(fmt::format("{} is not let in: {}", name_of(worker, *member), why));
  lose(worker, why);
}

void Session::published(Seconds now, const CheckpointWritten& checkpoint, const Result<void>& result) {
  at(now);
  if (!result) say(result.error().message);
  saving_.written(now_, checkpoint);
  out_.remark(now_, fmt::format("{}: {:.2f} MB, training stood still {:.3f} s, written in {:.2f} s",
                                std::filesystem::path(checkpoint.path).filename().string(), checkpoint.size_mb,
                                checkpoint.stall_s, checkpoint.write_s));
  tell(CheckpointDone{progress_of(checkpoint.sample)});
  release();
  if (verdict_) {
    fail_as_judged();
  } else if (phase_ == Phase::saving) {
    // One that was asked for earlier may come first.
    if (ended_ || checkpoint.sample >= crew_->sample()) {
      end(RunEnd::stopped);
    } else {
      request_checkpoint();
    }
  }
  deliver();
}

void Session::on_not_written(const CheckpointFailed& message) {
  saving_.failed(now_);
  say("no checkpoint: " + message.what);
  release();
  if (verdict_) return fail_as_judged();
  if (phase_ == Phase::saving)
    fail(fmt::format("stopped, but the last checkpoint could not be written: {}", message.what));
}

void Session::closed(Seconds now, WorkerId worker) {
  at(now);
  Roster::Member* const member = members_.find(worker);
  if (member == nullptr) return;
  const int launch = member->launch;
  if (fleet_.numbered(launch) && fleet_.find(launch) == nullptr) {
    lose(worker, "its process ended");
    return deliver();
  }
  // No loss yet: a worker mends its line. Where it does not, its silence tells.
  member->closed = now_;
}

void Session::seen(Seconds now, const Sighting& sight) {
  at(now);
  const Fleet::Launch* launch = fleet_.find(sight.launch);
  if (launch == nullptr) return;
  const Fleet::Launch was = *launch;
  fleet_.seen(now_, sight);
  if (sight.stage == Sighting::Stage::gone) {
    // Before the member is forgotten: whether it had joined decides who counts its money.
    charge(was);
    note_fleet();
    machine_gone(sight.launch, sight.ending.value_or(Ending{}));
  } else if (launch->stage != was.stage) {
    out_.add(List{});
  }
  deliver();
  close_when_empty();
}

void Session::listed(Seconds now, const std::vector<Sighting>& all) {
  at(now);
  // The word that a machine has come may have been lost.
  for (const Sighting& sight : all) {
    const Fleet::Launch* known = fleet_.find(sight.launch);
    if (known != nullptr && known->stage < sight.stage) seen(now, sight);
  }
  for (const int launch : fleet_.unknown_to(now_, all)) {
    seen(now, {.launch = launch,
               .stage = Sighting::Stage::gone,
               .ending = Ending{.how = "the engine does not know of it any more"}});
  }
}

void Session::priced(Seconds now, const MachineKind& kind, UsdPerHour price) {
  at(now);
  // Of a run without prices nothing is known of what else it costs.
  if (!inputs_.priced || !fleet_.priced(kind, price)) return;
  note_fleet();
  tell(Priced{.type = kind.type, .zone = kind.zone, .price = price, .market = kind.market});
  deliver();
}

/// A machine that never joined was paid for all the same, and so is one between the loss of its worker and its end.
void Session::charge(const Fleet::Launch& launch) {
  const auto since = fleet_.uncounted_since(launch);
  if (!since || launch.role.server || launch.role.price.value <= 0 || controller_.finished()) return;
  const Seconds time = now_ - *since;
  tell(Charged{.type = launch.role.type,
               .zone = launch.role.zone,
               .cost = launch.role.price * time,
               .market = launch.role.market,
               .time = time});
}

void Session::machine_gone(int launch, const Ending& ending) {
  out_.add(List{});
  const WorkerId worker = members_.of_launch(launch);
  const Roster::Member* const member = members_.find(worker);
  const bool was_ready = member != nullptr && member->ready;
  // A script that never asks for work, or ends by itself, would be started over and over.
  const bool failed = ending.kind == Ending::Kind::failed || (inputs_.script && ending.kind == Ending::Kind::finished);
  const std::string how = ending.log.empty() ? ending.how : fmt::format("{}, see {}", ending.how, ending.log);
  if (failed && was_ready && !member->leaving) {
    lose_failed(worker, how);
  } else {
    lose(worker, ending.how);
  }
  if (!failed || was_ready || phase_ == Phase::ending || ++failed_starts_ < kMostFailedStarts) return;
  fail(fmt::format("{} machines in a row ended before they were ready; the last: {}", failed_starts_, how));
}

void Session::lose(WorkerId worker, const std::string& why) {
  const Roster::Member* const found = members_.find(worker);
  if (found == nullptr) return;
  const Roster::Member member = *found;
  const bool stood = crew_->stands(worker);
  members_.remove(worker);
  watch_.drop(worker);
  crew_->gone(worker);
  // Fenced before the controller hears of it: others will train its samples, and its word must not count any more.
  out_.add(Cut{worker});
  fleet_.end(member.launch);
  if (!member.cache.empty()) tell_neighbours();
  std::erase_if(held_, [&](const Event& event) {
    const auto* joined = std::get_if<Joined>(&event);
    return joined != nullptr && joined->worker == worker;
  });
  if (phase_ == Phase::ending || !member.joined) return;
  accounts_.preempted(now_, stood);
  note_accounts();
  say(member.leaving ? fmt::format("{} has gone", name_of(worker, member))
                     : fmt::format("{} lost: {}", name_of(worker, member), why));
  if (member.server) return check_state();
  tell(Lost{worker});
}

void Session::dismiss(WorkerId worker, const std::string& why) {
  out_.send(worker, Leave{why});
  const Roster::Member* const member = members_.find(worker);
  if (member == nullptr) return;
  const int launch = member->launch;
  members_.remove(worker);
  watch_.drop(worker);
  crew_->gone(worker);
  fleet_.release(now_, launch, inputs_.script ? end_patience() : kLeavePatience);
}

}  // namespace mayfly
