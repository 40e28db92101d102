// What a run tells those who look at it from outside.

#include "run/runner.h"

namespace mayfly {

std::string Runner::phase_name() const {
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

std::vector<MachineStatus> Runner::machine_statuses() const {
  std::vector<MachineStatus> list;
  for (const auto& [worker, member] : members_) {
    const bool ours = machines_ && member.launch >= 0 && machines_->runs(member.launch);
    const MachineRole role = ours ? machines_->role(member.launch) : MachineRole{.type = "joined"};
    const bool at_work = crew_->training() && (member.server || crew_->stands(worker));
    std::string state = at_work ? (member.server ? "serving" : "training") : member.ready ? "ready" : "loading";
    list.push_back({.name = fmt::format("{}{}", member.server ? "s" : "w", worker),
                    .launch = member.launch,
                    .pid = ours ? machines_->pid(member.launch) : 0,
                    .type = role.type,
                    .market = std::string(name(role.market)),
                    .price = role.price,
                    .since = member.since,
                    .state = member.leaving ? "leaving" : std::move(state)});
  }
  return list;
}

RunStatus Runner::status() const {
  RunStatus status{.job = inputs_.spec.name,
                   .phase = phase_name(),
                   .time = now(),
                   .step = crew_->sample() / train_.batch,
                   .samples = crew_->sample(),
                   .target = target_,
                   .loss = guard_ && guard_->training_loss() ? guard_->training_loss() : accounts_.loss(),
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
  if (crew_->training()) status.samples_per_s = accounts_.samples_per_s(now());
  if (target_ && status.samples_per_s.value_or(0) > 0)
    status.left = Seconds(static_cast<double>(*target_ - crew_->sample()) / *status.samples_per_s);
  if (status.deadline && status.left) status.deadline_met = now() + *status.left <= *status.deadline;
  std::error_code error;
  const auto latest = std::filesystem::read_symlink(checkpoints() / "latest", error);
  if (!error) status.checkpoint = (checkpoints() / latest).string();
  return status;
}

void Runner::write_status() { status_.write(now(), status()); }

void Runner::write_last_status(const RunSummary* summary) {
  RunStatus last = status();
  last.phase = "ended";
  last.machines.clear();
  last.samples_per_s.reset();
  last.left.reset();
  last.deadline_met.reset();
  if (summary == nullptr) {
    last.end = "failed";
    last.failure = failure_.value_or("");
  } else {
    last.end = std::string(name(summary->end));
    last.samples = summary->samples;
    last.step = summary->samples / train_.batch;
    last.loss = summary->loss;
    last.checkpoint = summary->checkpoint;
    if (last.deadline && summary->end == RunEnd::trained) last.deadline_met = summary->time <= *last.deadline;
  }
  status_.write(now(), last);
}

}  // namespace mayfly
