#include "run/runner.h"

#include <signal.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "data/checkpoint.h"
#include "run/mesh_crew.h"

namespace mayfly {
namespace {

/// Losses this close together are answered by one decision.
constexpr Seconds kSettle{0.005};
/// Time between two losses in the journal: at first, and as a share of the run's time.
constexpr Seconds kReadingEvery{1};
constexpr double kReadings = 2000;

ControllerOptions controller_options(const RunInputs& inputs) {
  // The number of samples is told as soon as it is known.
  return {.promise = {.deadline = inputs.profile != nullptr ? inputs.spec.deadline : std::nullopt,
                      .budget = inputs.priced ? inputs.spec.budget : std::nullopt},
          .settle = kSettle,
          .most_machines = inputs.job->shapes.most_machines(),
          .patience = Seconds(30),
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
  return options;
}

}  // namespace

Runner::Runner(const RunInputs& inputs, const RunCalls& calls, Store store, Journal journal)
    : inputs_(inputs),
      calls_(calls),
      train_(*inputs.spec.train),
      store_(std::move(store)),
      journal_(std::move(journal)),
      status_(inputs.directory, inputs.supervised),
      controller_(inputs.job->shapes,
                  make_policy(inputs.policy, inputs.job->shapes, inputs.job->costs, policy_options(inputs)),
                  controller_options(inputs)),
      crew_(make_crew(0)) {
  controller_.keep_journal(true);
}

std::unique_ptr<Crew> Runner::make_crew(std::int64_t formation) {
  if (!train_.servers) return std::make_unique<MeshCrew>(train_.batch, formation);
  auto crew = std::make_unique<ServerCrew>(
      ServerCrew::Options{.servers = *train_.servers, .batch = train_.batch, .sum = train_.sum}, formation);
  servers_ = crew.get();
  return crew;
}

Seconds Runner::now() const { return std::max(last_now_, Seconds(std::chrono::steady_clock::now() - zero_)); }

std::int64_t Runner::end_sample() const { return parting_ ? crew_->sample() : target_.value_or(std::int64_t{1} << 60); }

Result<RunSummary> Runner::run() {
  if (const auto opened = open(); !opened) {
    failure_ = opened.error().message;
    write_last_status(nullptr);
    return unexpected(opened.error());
  }
  signals_ = std::make_unique<SignalWatch>(loop_, std::initializer_list<int>{SIGINT, SIGTERM},
                                           [this](int signal) { stop(signal); });
  pulse();
  loop_.run();
  journal_.flush();
  if (failure_) write_last_status(nullptr);
  if (ended_ == RunEnd::unable) return RunSummary{.end = *ended_, .failure = *failure_};
  if (failure_) return unexpected(Error{*failure_});
  RunSummary result = summary();
  if (const auto saved = save_text(inputs_.directory / "summary.json", summary_json(result).dump(2) + "\n"); !saved)
    return unexpected(saved.error());
  write_last_status(&result);
  return result;
}

void Runner::begin_training() {
  if (phase_ != Phase::attaching) return;
  phase_ = Phase::training;
  std::vector<WorkerId> missing;
  for (const auto& [worker, member] : members_) {
    // Those that are new and not ready yet are not missed.
    if (member.joined && !crew_->alive(worker)) missing.push_back(worker);
  }
  const auto before = controller_.generation();
  const bool workers_missing =
      std::any_of(missing.begin(), missing.end(), [&](WorkerId id) { return !members_[id].server; });
  for (const WorkerId worker : missing) lose(worker, "did not come back to the controller");
  for (const int launch : machines_->launches()) {
    const bool attached =
        std::any_of(members_.begin(), members_.end(), [&](const auto& entry) { return entry.second.launch == launch; });
    if (!attached && launch < first_launch_) machines_->kill(launch);
  }
  if (assigned_ && controller_.generation() == before && !workers_missing) obey(*assigned_);
  tell_held();
  tell(Tick{});
  deliver();
  if (std::exchange(signals_seen_, 0) > 0) stop(SIGINT);
}

void Runner::hear(WorkerId worker, const Message& message) {
  if (const auto* ready = std::get_if<Ready>(&message)) on_ready(worker, *ready);
  if (const auto* leaving = std::get_if<Leaving>(&message)) on_leaving(worker, *leaving);
  if (const auto* risk = std::get_if<AtRisk>(&message)) on_at_risk(worker, *risk);
  if (const auto* fed = std::get_if<Fed>(&message)) fed_[worker] = *fed;
  if (const auto* written = std::get_if<CheckpointWritten>(&message)) on_written(*written);
  if (const auto* failed = std::get_if<CheckpointFailed>(&message)) on_not_written(*failed);
  if (const auto* unable = std::get_if<Unable>(&message)) return on_unable(worker, *unable);
  const auto step = crew_->hear(worker, message);
  if (step && step->range.count == 0) {
    learn(*step, Seconds(0));
  } else if (step) {
    commit(*step);
  } else if (crew_->training() && !held_.empty() && crew_->awaited().empty()) {
    tell_held();
  }
  deliver();
}

void Runner::commit(const Crew::Step& step) {
  if (phase_ == Phase::ending) return;
  const TimedEvent event{now(), StepCommitted{.generation = step.generation,
                                              .first_sample = static_cast<double>(step.range.first),
                                              .samples = static_cast<double>(step.range.count)}};
  last_now_ = event.time;
  const std::string record = crew_->record();
  const auto stored = record.empty() ? store_.append(event) : store_.append(event, "crew", record);
  if (!stored) return fail_run(stored.error().message);
  const Reaction reaction = controller_.step(event.time, event.event);
  journal_.add(event, reaction.records);
  const Seconds took = now() - event.time;
  const bool counts = controller_.committed() == static_cast<double>(step.range.end());
  if (counts) {
    unable_in_a_row_ = 0;
    crew_->commit();
    accounts_.committed(event.time, step.range.count, step.loss, step.staleness);
    learn(step, took);
  }
  obey(reaction.commands);
  const bool told = !held_.empty();
  tell_held();
  if (phase_ == Phase::saving && counts) {
    crew_->go_on(crew_->sample());  // nothing more is leased but what was left behind
    if (crew_->resting()) request_checkpoint();
    return;
  }
  const bool epoch_over = epoch_ > 0 && step.range.first / epoch_ != step.range.end() / epoch_;
  const bool evaluate = epoch_over && train_.validation.has_value();
  if (counts && told) {
    // The controller decides when events have settled: a step begun before that would be thrown away.
    decision_.start(2 * kSettle, [this, evaluate] {
      if (phase_ != Phase::ending) crew_->go_on(end_sample(), evaluate);
      deliver();
    });
  } else if (counts) {
    crew_->go_on(end_sample(), evaluate);
  }
  report();
}

void Runner::learn(const Crew::Step& step, Seconds commit) {
  if (step.validation_loss) {
    validation_loss_ = step.validation_loss;
    accuracy_ = step.accuracy;
    remark(fmt::format("validation loss {:.4f}, accuracy {:.1f} %", *step.validation_loss,
                       100 * step.accuracy.value_or(0)));
    Json reading{{"reading", "validation"}, {"sample", crew_->sample()}, {"loss", *step.validation_loss}};
    if (step.accuracy) reading["accuracy"] = *step.accuracy;
    read(std::move(reading));
  }
  if (!guard_) return;
  const auto findings = guard_->saw(
      step, commit, {.now = now(), .spent = controller_.spent(), .samples = crew_->sample(), .target = target_});
  // Ever more rarely, so that a journal of weeks stays short.
  if (now() >= next_reading_ && guard_->training_loss()) {
    next_reading_ = now() + std::max(kReadingEvery, now() / kReadings);
    read({{"reading", "training"}, {"sample", crew_->sample()}, {"loss", *guard_->training_loss()}});
  }
  for (const std::string& text : findings.sayings) say(text);
  if (findings.estimated && target_ != static_cast<std::int64_t>(*findings.estimated)) {
    target_ = static_cast<std::int64_t>(*findings.estimated);
    tell(Estimated{*findings.estimated});
  }
  if (findings.ratio) tell(Measured{*findings.ratio});
}

void Runner::tell(const Event& event) {
  const TimedEvent timed{now(), event};
  const bool tick = std::holds_alternative<Tick>(event);
  if (!tick && !remember(timed)) return;
  const Reaction reaction = controller_.step(timed.time, event);
  // Ticks that did nothing are not kept.
  if (tick && !reaction.records.empty() && !remember(timed)) return;
  journal_.add(timed, reaction.records);
  obey(reaction.commands);
}

bool Runner::remember(const TimedEvent& event) {
  last_now_ = event.time;
  const auto stored = store_.append(event);
  if (!stored) fail_run(stored.error().message);
  return stored.has_value();
}

void Runner::tell_at_boundary(const Event& event, Seconds patience) {
  if (!crew_->mid_step()) return tell(event);
  if (held_.empty())
    boundary_.start(patience, [this] {
      tell_held();
      deliver();
    });
  held_.push_back(event);
}

void Runner::tell_held() {
  boundary_.cancel();
  for (const Event& event : std::exchange(held_, {})) tell(event);
}

void Runner::obey(const std::vector<Command>& commands) {
  for (const Command& command : commands) std::visit([&](const auto& c) { obey(c); }, command);
}

void Runner::obey(const Assign& command) {
  assigned_ = command;
  if (phase_ == Phase::attaching) return;
  if (!crew_->assign(command.generation, command.members, static_cast<std::int64_t>(command.next_sample))) roll_back();
  crew_->go_on(end_sample());
}

void Runner::roll_back() {
  const auto found = newest_checkpoint(checkpoints());
  for (const std::string& broken : found.broken) say("checkpoint passed over: " + broken);
  const std::int64_t sample = found.checkpoint ? found.checkpoint->state.sample : 0;
  auto ledger = Ledger::restored(found.checkpoint ? found.checkpoint->state.ledger : std::vector<SampleRange>{});
  if (!ledger) return fail_run(ledger.error().message);
  if (servers_ == nullptr && ledger->frontier() != sample)
    return fail_run(fmt::format("{}: its samples have gaps, as servers leave them: go on with a 'servers' block",
                                found.checkpoint->path.string()));
  const auto before = static_cast<std::int64_t>(controller_.committed());
  tell(RolledBack{.generation = controller_.generation(), .sample = static_cast<double>(sample)});
  if (controller_.committed() != static_cast<double>(sample)) {
    // The state went with the servers, so the machines begin anew, and this is called again.
    if (servers_ != nullptr) return tell(StateLost{controller_.generation()});
    // They have trained in this generation, so they should hold what they made: whoever does not is broken.
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
  checkpoint_sample_ = sample;
  crew_->roll_back(found.checkpoint ? found.checkpoint->path.string() : "", sample, *std::move(ledger));
}

void Runner::check_state() {
  if (assigned_ && phase_ != Phase::attaching && phase_ != Phase::ending && crew_->stateless()) roll_back();
}

void Runner::obey(const Pause&) {
  assigned_.reset();
  // Nobody may be left who holds the state.
  const bool time = servers_ != nullptr || crew_->ranks().empty() || can_save(crew_->ranks().front());
  if (crew_->training() && crew_->sample() > checkpoint_sample_ && time) {
    crew_->go_on(crew_->sample());  // what is committed is applied first
    request_checkpoint();
  }
  crew_->pause();
}

void Runner::obey(const Acquire& command) {
  if (phase_ != Phase::training) return;
  Shortfall shortfall{.elapsed = now(), .loss = guard_ ? guard_->training_loss() : std::nullopt};
  for (const int launch : machines_->launches()) shortfall.machines.push_back(machines_->role(launch));
  if (epoch_ > 0) shortfall.epochs = static_cast<double>(crew_->sample()) / static_cast<double>(epoch_);
  std::vector<MachineRole> roles = inputs_.addition ? inputs_.addition(shortfall) : std::vector<MachineRole>{};
  if (roles.empty()) roles.assign(static_cast<std::size_t>(command.count), machines_->spare_role(command.market));
  const auto acquired = machines_->acquire(roles);
  say(acquired ? fmt::format("the promise is at risk: {} x {} ordered, {}", roles.size(), roles[0].type,
                             name(roles[0].market))
               : fmt::format("the promise is at risk: {}", acquired.error().message));
}

void Runner::obey(const Release& command) {
  if (checkpoint_asked_) {
    to_release_.push_back(command.worker);
  } else {
    dismiss(command.worker, "released");
  }
}

void Runner::obey(const Checkpoint&) { request_checkpoint(); }

void Runner::obey(const Finish& command) {
  if (command.why == Finish::Why::budget) say("the budget is spent");
  end(command.why == Finish::Why::target ? RunEnd::trained : RunEnd::budget);
}

void Runner::obey(const Wake& command) {
  wake_.start(std::max(Seconds(0), command.at - now()), [this] {
    tell(Tick{});
    deliver();
  });
}

void Runner::deliver() {
  if (crew_->formation() != formation_seen_) {
    formation_seen_ = crew_->formation();
    formation_time_ = now();
    workers_seen_ = 0;
    // Before anybody hears of it: the number must not be used again.
    if (const auto noted = store_.note("formation", std::to_string(formation_seen_)); !noted)
      return fail_run(noted.error().message);
    note_crew();
  }
  if (crew_->training() && crew_->ranks().size() != workers_seen_) {
    workers_seen_ = crew_->ranks().size();
    if (guard_) guard_->begin(static_cast<int>(workers_seen_));
  }
  for (const Crew::Letter& letter : crew_->letters()) desk_->send(letter.to, letter.message);
}

void Runner::note_accounts() {
  const Json counts{{"preemptions", accounts_.preemptions()}, {"samples_redone", accounts_.redone()}};
  if (const auto noted = store_.note("accounts", counts.dump()); !noted) fail_run(noted.error().message);
}

void Runner::note_crew() {
  const std::string record = crew_->record();
  if (record.empty()) return;
  if (const auto noted = store_.note("crew", record); !noted) fail_run(noted.error().message);
}

void Runner::dismiss(WorkerId worker, const std::string& why) {
  desk_->send(worker, Leave{why});
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  const int launch = found->second.launch;
  members_.erase(found);
  crew_->gone(worker);
  if (launch >= 0) machines_->release(launch, inputs_.script ? end_patience() : Seconds(3));
}

void Runner::request_checkpoint() {
  checkpoint_asked_ = true;
  crew_->write_checkpoint();
}

}  // namespace mayfly
