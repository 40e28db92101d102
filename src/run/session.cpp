// Commits, and what the controller is told and commands.

#include "run/session.h"

#include <algorithm>
#include <cmath>

#include "data/order.h"
#include "run/mesh_crew.h"
#include "run/server_crew.h"
#include "run/whole_samples.h"

namespace mayfly {
namespace {

/// Losses this close together are answered by one decision.
constexpr Seconds kSettle{0.005};
/// Time between two losses in the journal: at first, and as a share of the run's time.
constexpr Seconds kReadingEvery{1};
constexpr double kReadings = 2000;

MachineRole server_role(const RunInputs& inputs) {
  return {.type = inputs.servers.type,
          .market = Market::on_demand,
          .price = inputs.servers.price,
          .server = true,
          .limits = inputs.servers.limits};
}

ControllerOptions controller_options(const RunInputs& inputs, Seconds patience) {
  // The number of samples is told as soon as it is known.
  return {.promise = {.deadline = inputs.profile != nullptr ? inputs.spec.deadline : std::nullopt,
                      .budget = inputs.priced ? inputs.spec.budget : std::nullopt},
          .settle = kSettle,
          .most_machines = inputs.job->shapes.most_machines(),
          .patience = patience,
          .standing = inputs.servers.price * static_cast<double>(inputs.servers.count),
          .save_at_target = true};
}

PolicyOptions policy_options(const RunInputs& inputs) {
  PolicyOptions options{.most_machines = inputs.job->shapes.most_machines()};
  // Runs of minutes are looked at every few seconds, those of days every few minutes.
  const Seconds length = inputs.spec.deadline.value_or(inputs.forecast.time.value_or(Seconds(3600)));
  options.interval = std::clamp(length / 100, Seconds(1), Seconds(60));
  options.check = std::clamp(length / 50, Seconds(1), Seconds(300));
  options.start = Seconds(2);
  options.offers = {{.type = inputs.roles.back().type,
                     .market = Market::on_demand,
                     .rate = inputs.job->on_demand.value_or(UsdPerHour{}),
                     .limit = inputs.starts_machines && inputs.rents ? inputs.workers : 0}};
  return options;
}

Fleet::Options fleet_options(const RunInputs& inputs, std::function<Expectation(const MachineRole&)> expected) {
  Fleet::Options options{.starts = inputs.starts_machines,
                         .workers = inputs.workers,
                         .roles = inputs.roles,
                         .servers = inputs.servers.count,
                         .server = server_role(inputs),
                         .replacement = inputs.times.replacement,
                         .expected = std::move(expected)};
  if (inputs.priced) options.rent = inputs.job->on_demand;
  return options;
}

}  // namespace

Session::Session(const RunInputs& inputs, const std::function<Expectation(const MachineRole&)>& expected)
    : inputs_(inputs),
      train_(*inputs.spec.train),
      controller_(inputs.job->shapes,
                  make_policy(inputs.policy, inputs.job->shapes, inputs.job->costs, policy_options(inputs)),
                  controller_options(inputs, expected(inputs.roles.back()).start)),
      crew_(make_crew(0)),
      fleet_(fleet_options(inputs, expected)),
      saving_(train_.checkpoint.every),
      watch_(inputs.times.step) {
  controller_.keep_journal(true);
}

std::unique_ptr<Crew> Session::make_crew(std::int64_t formation) const {
  if (!train_.servers) return std::make_unique<MeshCrew>(train_.batch, formation);
  return std::make_unique<ServerCrew>(
      ServerCrew::Options{.servers = *train_.servers, .batch = train_.batch, .sum = train_.sum}, formation);
}

std::int64_t Session::end_sample() const {
  // A worker that joins or comes back while the last checkpoint is written changes nothing about it.
  if (parting_ || phase_ == Phase::saving) return crew_->sample();
  return target_.value_or(std::int64_t{1} << 60);
}

void Session::commit(const Crew::Step& step) {
  if (phase_ == Phase::ending) return;
  if (const auto sound = check_step(step); !sound) return fail(sound.error().message);
  const bool ends = diverged(step);
  const TimedEvent event{now_, StepCommitted{.generation = step.generation,
                                             .first_sample = progress_of(step.range.first),
                                             .samples = progress_of(step.range.count)}};
  // Stored in one transaction with the event: a crash must not leave the ledger of another step.
  const std::string before = std::exchange(crew_record_, crew_->record());
  const bool news = crew_record_ != before;
  const Reaction reaction = controller_.step(event.time, event.event);
  // Before anything follows: a worker that hears of the step may apply it.
  out_.add(Record{event, reaction.records, news ? "crew" : "", news ? crew_record_ : ""});
  // A step that the controller does not accept, such as one of an earlier generation, never happened.
  const bool counts = whole_samples(controller_.committed()) == step.range.end();
  if (counts) {
    failures_.step();
    crew_->commit();
    accounts_.committed(event.time, step.range.count, step.loss, step.staleness);
    learn(step, store_time_);
  }
  obey(reaction.commands);
  // No step is in hand: a change of members costs none now.
  const bool told = !held_.empty();
  tell_held();
  if (!counts) return;
  if (ends)
    return give_up(
        fmt::format("the loss is no number for {} steps in a row, up to sample {}", nan_steps_, step.range.end()));
  if (phase_ == Phase::saving) {
    crew_->go_on(crew_->sample());  // nothing more is leased but what was left behind
    if (crew_->resting()) request_checkpoint();
    return;
  }
  const bool epoch_over = epoch_ > 0 && step.range.first / epoch_ != step.range.end() / epoch_;
  go_on_after(told, epoch_over && train_.validation.has_value());
}

/// Before it counts: workers that are not as they should be would spoil what there is.
Result<void> Session::check_step(const Crew::Step& step) {
  for (const Crew::Part& part : step.parts) {
    if (part.read != SampleOrder(epoch_, train_.seed).reading(part.first, part.samples))
      return mayfly::fail("w{} has read other samples than the {} from place {} on that it was leased: not counted",
                          part.worker, part.samples, part.first);
  }
  if (!step.drift) return {};
  if (train_.stop_on_drift)
    return mayfly::fail("{}. Where their machines round differently, 'on_drift: go' trains on", *step.drift);
  if (!std::exchange(drift_told_, true)) say(*step.drift);
  return {};
}

bool Session::diverged(const Crew::Step& step) {
  if (!train_.stop_on_nan || std::isfinite(step.loss)) {
    nan_steps_ = 0;
    return false;
  }
  // No worker applies the step before it hears that it counts: what there was before it can still be saved.
  if (nan_steps_ == 0) {
    last_good_ = crew_->sample();
    if (!saving_.holds(last_good_)) request_checkpoint();
  }
  return ++nan_steps_ >= train_.nan_steps;
}

void Session::give_up(std::string why) {
  verdict_ = std::move(why);
  if (saving_.asked()) return ring(Alarm::save, kSavePatience);
  fail_as_judged();
}

void Session::fail_as_judged() {
  fail(fmt::format("{}; the state before them, of sample {}, {} saved", *verdict_, last_good_,
                   saving_.holds(last_good_) ? "is" : "could not be"));
}

void Session::go_on_after(bool told, bool evaluate) {
  if (!told) return crew_->go_on(end_sample(), evaluate);
  // The controller decides when events have settled: a step begun before that would be thrown away.
  evaluate_ = evaluate;
  ring(Alarm::decision, 2 * kSettle);
}

void Session::learn(const Crew::Step& step, Seconds commit) {
  if (step.validation_loss) {
    accounts_.validated(*step.validation_loss, step.accuracy);
    out_.remark(now_, fmt::format("validation loss {:.4f}, accuracy {:.1f} %", *step.validation_loss,
                                  100 * step.accuracy.value_or(0)));
    Json reading{{"reading", "validation"}, {"sample", crew_->sample()}, {"loss", *step.validation_loss}};
    if (step.accuracy) reading["accuracy"] = *step.accuracy;
    out_.journal(now_, reading);
  }
  if (!guard_) return;
  const auto findings = guard_->saw(
      step, commit, {.now = now_, .spent = controller_.spent(), .samples = crew_->sample(), .target = target_});
  // Ever more rarely, so that a journal of weeks stays short.
  if (now_ >= next_reading_ && guard_->training_loss()) {
    next_reading_ = now_ + std::max(kReadingEvery, now_ / kReadings);
    out_.journal(now_, {{"reading", "training"}, {"sample", crew_->sample()}, {"loss", *guard_->training_loss()}});
  }
  for (const std::string& text : findings.sayings) say(text);
  if (findings.estimated && target_ != wanted_samples(*findings.estimated)) {
    target_ = wanted_samples(*findings.estimated);
    tell(Estimated{*findings.estimated});
  }
  if (findings.ratio) tell(Measured{*findings.ratio});
}

void Session::tell(const Event& event) {
  const TimedEvent timed{now_, event};
  const auto* joined = std::get_if<Joined>(&event);
  if (joined != nullptr) fleet_.joined(joined->worker);
  if (const auto* lost = std::get_if<Lost>(&event)) fleet_.parted(now_, lost->worker);
  const Reaction reaction = controller_.step(timed.time, event);
  // Ticks that did nothing are not kept.
  const bool nothing = std::holds_alternative<Tick>(event) && reaction.records.empty();
  if (!nothing) out_.add(Record{.event = timed, .lines = reaction.records});
  obey(reaction.commands);
}

void Session::tell_at_boundary(const Event& event, Seconds patience) {
  if (!crew_->mid_step()) return tell(event);
  if (held_.empty()) ring(Alarm::boundary, patience);
  held_.push_back(event);
}

void Session::tell_held() {
  alarms_.erase(Alarm::boundary);
  for (const Event& event : std::exchange(held_, {})) tell(event);
}

void Session::obey(const std::vector<Command>& commands) {
  for (const Command& command : commands) std::visit([&](const auto& c) { obey(c); }, command);
}

void Session::obey(const Assign& command) {
  assigned_ = command;
  // Carried out by begin_training(), when it is known which of the members are back.
  if (phase_ == Phase::attaching) return;
  stateless_ = !crew_->assign(command);
  if (stateless_) seek_state();
  crew_->go_on(end_sample());
}

void Session::obey(const Pause&) {
  // Those who have their notice, all of them, are the ones who can write the last checkpoint.
  if (phase_ == Phase::saving && (crew_->has_servers() || (crew_->training() && !crew_->broken()))) return;
  assigned_.reset();
  stateless_ = false;
  // Afterwards perhaps no worker is left that holds the state.
  const bool time = crew_->has_servers() || crew_->ranks().empty() || can_save(crew_->ranks().front());
  if (crew_->sample() > 0 && !saving_.holds(crew_->sample()) && time) {
    crew_->go_on(crew_->sample());  // what is committed is applied first
    request_checkpoint();
  }
  crew_->pause();
}

void Session::obey(const Acquire& command) {
  if (phase_ != Phase::training) return;
  Shortfall shortfall{.elapsed = now_, .loss = guard_ ? guard_->training_loss() : std::nullopt};
  for (const auto& [launch, it] : fleet_.launches()) {
    if (it.stage != Sighting::Stage::ordered) shortfall.machines.push_back(it.role);
  }
  if (epoch_ > 0) shortfall.epochs = static_cast<double>(crew_->sample()) / static_cast<double>(epoch_);
  std::vector<MachineRole> roles = inputs_.addition ? inputs_.addition(shortfall) : std::vector<MachineRole>{};
  if (roles.empty()) roles.assign(static_cast<std::size_t>(command.count), fleet_.spare_role(command.kind));
  const auto acquired = fleet_.acquire(now_, roles);
  say(acquired ? fmt::format("the promise is at risk: {} x {} ordered, {}", roles.size(), roles[0].type,
                             name(roles[0].market))
               : fmt::format("the promise is at risk: {}", acquired.error().message));
}

void Session::obey(const Release& command) {
  fleet_.parted(now_, command.worker);
  fleet_.give_up(fleet_.launch_of(command.worker));
  to_release_.push_back(command.worker);
  release();
}

/// Not the one that writes a checkpoint, nor the last that holds the state, before others have it or it is saved.
void Session::release() {
  if (saving_.asked()) return;
  for (const WorkerId worker : std::exchange(to_release_, {})) {
    if (members_.find(worker) == nullptr) continue;
    if (crew_->needed(worker) && !saving_.holds(crew_->sample())) {
      to_release_.push_back(worker);
    } else {
      dismiss(worker, "released");
    }
  }
}

void Session::obey(const Checkpoint&) { request_checkpoint(); }

void Session::obey(const Finish& command) {
  if (command.why == Finish::Why::budget) say("the budget is spent");
  end(command.why == Finish::Why::target ? RunEnd::trained : RunEnd::budget);
}

void Session::obey(const Warn& command) {
  const std::string_view why = !inputs_.starts_machines ? "this run starts no machines by itself"
                               : inputs_.rents
                                   ? "no more may be ordered"
                                   : "the job takes spot machines alone, others with --market spot,on-demand";
  say(fmt::format("the deadline is in danger: {}; {}", command.what, why));
}

void Session::obey(const Wake& command) { alarms_[Alarm::wake] = command.at; }

/// The same once more, after a connection broke without a member being lost.
void Session::stand_again() {
  stateless_ = !crew_->form_again();
  if (stateless_) seek_state();
}

void Session::check_state() {
  if (!assigned_ || phase_ == Phase::attaching || phase_ == Phase::ending || !crew_->stateless()) return;
  stateless_ = true;
  seek_state();
}

void Session::seek_state() {
  if (std::exchange(seeking_, true)) return;
  seek_after_ = publishes_;
  out_.add(Seek{lineage()});
}

void Session::sought(Seconds now, const FoundCheckpoint& found) {
  at(now);
  seeking_ = false;
  // A worker that holds the state may have come meanwhile, or none is assigned any more.
  if (!stateless_ || !assigned_ || phase_ == Phase::ending) return;
  // What was found may have been removed since, in favour of a newer one.
  if (seek_after_ != publishes_) {
    seek_state();
  } else {
    roll_back(found);
  }
  deliver();
}

void Session::roll_back(const FoundCheckpoint& found) {
  for (const std::string& broken : found.broken) say("checkpoint passed over: " + broken);
  const std::int64_t sample = found.checkpoint ? found.checkpoint->state.sample : 0;
  auto ledger = Ledger::restored(found.checkpoint ? found.checkpoint->state.ledger : std::vector<SampleRange>{});
  if (!ledger) return fail(ledger.error().message);
  if (!crew_->has_servers() && ledger->frontier() != sample)
    return fail(fmt::format("{}: its samples have gaps, as servers leave them: go on with a 'servers' block",
                            found.checkpoint->path.string()));
  const std::int64_t before = whole_samples(controller_.committed());
  tell(RolledBack{.generation = controller_.generation(), .sample = progress_of(sample)});
  if (whole_samples(controller_.committed()) != sample) {
    // The state went with the servers, so the machines begin anew, and a checkpoint is looked for again.
    if (crew_->has_servers()) return tell(StateLost{controller_.generation()});
    // They have trained in this generation, so they should hold what they made: one that does not is broken.
    for (const WorkerId worker : std::vector<WorkerId>(assigned_->members)) lose(worker, "holds no state");
    return;
  }
  if (sample != before) {
    say(fmt::format("nobody holds the state: {} samples are trained again from {}", before - sample,
                    found.checkpoint ? found.checkpoint->path.filename().string() : "the first weights"));
    accounts_.rolled_back(before, sample);
    note_accounts();
    if (guard_) guard_->roll_back(sample);
  }
  saving_.start_from(sample);
  stateless_ = false;
  crew_->roll_back(found.checkpoint ? found.checkpoint->path.string() : "", sample, *std::move(ledger));
  crew_->go_on(end_sample());
  // The process that wrote it, or the one that was told, may have died before the controller heard of it; of the last
  // one it must.
  if (whole_samples(controller_.checkpointed()) < sample) tell(CheckpointDone{progress_of(sample)});
}

void Session::request_checkpoint() {
  saving_.ask();
  crew_->write_checkpoint();
}

void Session::note_accounts() {
  out_.note("accounts", Json{{"preemptions", accounts_.preemptions()}, {"samples_redone", accounts_.redone()}}.dump());
}

void Session::note_crew() {
  const std::string before = std::exchange(crew_record_, crew_->record());
  if (crew_record_ != before) out_.note("crew", crew_record_);
}

}  // namespace mayfly
