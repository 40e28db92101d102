// What a run tells those who look at it from outside.

#include <algorithm>

#include "run/session.h"

namespace mayfly {
namespace {

/// One that is in the run.
MachineStatus member_status(WorkerId worker, const Roster::Member& member, const Fleet::Launch* launch,
                            const Crew& crew) {
  const MachineRole role = launch != nullptr ? launch->role : MachineRole{.type = "joined"};
  const bool at_work = crew.training() && (member.server || crew.stands(worker));
  std::string state = at_work ? (member.server ? "serving" : "training") : member.ready ? "ready" : "loading";
  return {.name = short_name(worker, member),
          .launch = member.launch,
          .where = launch != nullptr ? launch->where : "",
          .stage = member.leaving ? "leaving" : "running",
          .pid = launch != nullptr ? launch->pid : 0,
          .type = role.type,
          .zone = role.zone,
          .market = std::string(name(role.market)),
          .price = role.price,
          .since = member.since,
          .state = member.leaving ? "leaving" : std::move(state)};
}

/// One that was ordered, and whose worker has not said a word.
MachineStatus launch_status(int number, const Fleet::Launch& launch) {
  const std::string stage(name(launch.stage));
  return {.launch = number,
          .where = launch.where,
          .stage = stage,
          .pid = launch.pid,
          .type = launch.role.type,
          .zone = launch.role.zone,
          .market = std::string(name(launch.role.market)),
          .price = launch.role.price,
          .since = launch.since.value_or(launch.ordered),
          .state = launch.stage == Sighting::Stage::running ? "loading" : stage};
}

}  // namespace

std::string Session::checkpoints() const { return checkpoint_place(inputs_); }

std::string Session::phase_name() const {
  switch (phase_) {
    case Phase::attaching:
      return "attaching";
    case Phase::training:
      return crew_->training() ? "training" : "waiting";
    case Phase::saving:
      return "saving";
    case Phase::ending:
      return "ending";
  }
  return "";
}

std::optional<double> Session::training_loss() const {
  return guard_ && guard_->training_loss() ? guard_->training_loss() : accounts_.loss();
}

std::vector<MachineStatus> Session::machine_statuses() const {
  std::vector<MachineStatus> list;
  for (const auto& [worker, member] : members_.all())
    list.push_back(member_status(worker, member, fleet_.find(member.launch), *crew_));
  for (const auto& [number, launch] : fleet_.launches()) {
    if (members_.of_launch(number) == 0 && !launch.released) list.push_back(launch_status(number, launch));
  }
  return list;
}

RunProgress Session::progress() const {
  RunProgress progress{.time = now_,
                       .step = crew_->sample() / train_.batch,
                       .samples = crew_->sample(),
                       .target = target_,
                       .loss = accounts_.loss().value_or(0),
                       .samples_per_s = crew_->training() ? accounts_.samples_per_s(now_) : 0,
                       .machines = static_cast<int>(crew_->training() ? crew_->ranks().size() : 0),
                       .deadline = inputs_.spec.deadline};
  if (inputs_.priced) progress.spent = controller_.spent();
  if (target_ && progress.samples_per_s > 0)
    progress.left = Seconds(static_cast<double>(*target_ - crew_->sample()) / progress.samples_per_s);
  return progress;
}

RunStatus Session::status() const {
  RunStatus status{.job = inputs_.spec.name,
                   .phase = phase_name(),
                   .time = now_,
                   .step = crew_->sample() / train_.batch,
                   .samples = crew_->sample(),
                   .target = target_,
                   .loss = training_loss(),
                   .deadline = inputs_.spec.deadline,
                   .budget = inputs_.spec.budget,
                   .target_loss = inputs_.spec.loss,
                   .predicted_time = inputs_.forecast.time,
                   .predicted_cost = inputs_.forecast.cost,
                   .machines = machine_statuses(),
                   .preemptions = accounts_.preemptions(),
                   .samples_redone = accounts_.redone()};
  if (epoch_ > 0) status.epochs = static_cast<double>(crew_->sample()) / static_cast<double>(epoch_);
  if (inputs_.priced) status.cost = controller_.spent();
  if (crew_->training()) status.samples_per_s = accounts_.samples_per_s(now_);
  if (target_ && status.samples_per_s.value_or(0) > 0)
    status.left = Seconds(static_cast<double>(*target_ - crew_->sample()) / *status.samples_per_s);
  if (status.deadline && status.left) status.deadline_met = now_ + *status.left <= *status.deadline;
  return status;
}

RunSummary Session::summary(const FoundCheckpoint& newest) const {
  RunSummary summary{.end = ended_.value_or(RunEnd::stopped),
                     .loss = training_loss(),
                     .validation_loss = accounts_.validation_loss(),
                     .accuracy = accounts_.accuracy(),
                     .samples_redone = accounts_.redone(),
                     .preemptions = accounts_.preemptions(),
                     .time = now_,
                     .forecast = inputs_.forecast,
                     .recovery_p50 = accounts_.recovery_p50(),
                     .recovery_max = accounts_.recovery_max(),
                     .emulated = inputs_.emulation,
                     .loader = accounts_.loader()};
  if (crew_->has_servers()) {
    summary.staleness_mean = accounts_.mean_staleness();
    summary.staleness_max = accounts_.worst_staleness();
  }
  // What the weights hold is what counts, so the figures come from the checkpoint's own ledger.
  if (newest.checkpoint) {
    const TrainerState& state = newest.checkpoint->state;
    summary.checkpoint = newest.checkpoint->path.string();
    if (const auto ledger = Ledger::restored(state.ledger)) {
      summary.samples = ledger->samples();
      summary.samples_repeated = std::max<std::int64_t>(0, state.sample - ledger->samples());
      const std::int64_t wanted =
          summary.end == RunEnd::trained ? target_.value_or(state.sample) : std::max(state.sample, ledger->frontier());
      summary.samples_skipped = std::max<std::int64_t>(0, wanted - ledger->samples());
    }
  }
  if (epoch_ > 0) summary.epochs = static_cast<double>(summary.samples) / static_cast<double>(epoch_);
  if (inputs_.priced) summary.cost = controller_.spent();
  const auto& spec = inputs_.spec;
  if (summary.end == RunEnd::trained || summary.end == RunEnd::budget) {
    if (spec.deadline && summary.time > *spec.deadline) summary.missed.emplace_back("deadline");
    if (spec.loss && !(guard_ && guard_->loss_reached())) summary.missed.emplace_back("loss");
    if (summary.end == RunEnd::budget && !spec.loss) summary.missed.emplace_back(spec.epochs ? "epochs" : "steps");
    if (spec.budget && summary.cost && *summary.cost > *spec.budget * 1.001) summary.missed.emplace_back("budget");
  }
  return summary;
}

}  // namespace mayfly
