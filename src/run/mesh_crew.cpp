#include "run/mesh_crew.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/overloaded.h"
#include "base/text.h"
#include "run/whole_samples.h"

namespace mayfly {
namespace {

/// Steps between two looks at whether other shares would be faster.
constexpr int kStepsBetweenSplits = 20;

}  // namespace

void MeshCrew::arrived(WorkerId worker, const Held& held) {
  // The step in its hands counts only if it is the very one that was committed: the same samples may have been trained
  // since by others, whose sum is another.
  const bool counts = held.pending == sample_ && held.formation == committed_in_;
  holdings_[worker] = {.sample = counts ? held.pending : held.sample};
  ask_others_than(worker);
}

void MeshCrew::gone(WorkerId worker) {
  holdings_.erase(worker);
  unreached_.remove(worker);
  ask_others_than(worker);
  // Members are the controller's affair; a guest is ours. Without it the members may have nothing to start from, which
  // form_again() finds out.
  if (!stands(worker)) return;
  broken_ = true;
  if (alone_) pause();
}

bool MeshCrew::stands(WorkerId worker) const {
  return phase_ != Phase::idle && std::find(ranks_.begin(), ranks_.end(), worker) != ranks_.end();
}

int MeshCrew::rank_of(WorkerId worker) const {
  return static_cast<int>(std::find(ranks_.begin(), ranks_.end(), worker) - ranks_.begin());
}

bool MeshCrew::holds(WorkerId worker) const {
  const auto found = holdings_.find(worker);
  return found != holdings_.end() && found->second.sample == sample_;
}

bool MeshCrew::needed(WorkerId worker) const {
  const auto other = [&](const auto& entry) { return entry.first != worker && entry.second.sample == sample_; };
  return guest_ == worker || (sample_ > 0 && holds(worker) && std::ranges::none_of(holdings_, other));
}

bool MeshCrew::assign(const Assign& command) {
  generation_ = command.generation;
  members_ = command.members;
  alone_ = false;
  sample_ = whole_samples(command.next_sample);
  return form_again();
}

bool MeshCrew::form_again() {
  if (alone_) {
    pause();
    return true;
  }
  ranks_ = members_;
  guest_.reset();
  const auto source = std::ranges::find_if(ranks_, [&](WorkerId worker) { return holds(worker); });
  if (source != ranks_.end()) {
    form(static_cast<int>(source - ranks_.begin()), false, {});
    return true;
  }
  // A machine that is about to go may still hand over what it holds.
  for (const auto& [worker, holding] : holdings_) {
    if (holding.sample != sample_) continue;
    guest_ = worker;
    ranks_.push_back(worker);
    form(static_cast<int>(ranks_.size()) - 1, false, {});
    return true;
  }
  phase_ = Phase::idle;
  return false;
}

void MeshCrew::roll_back(const std::string& checkpoint, std::int64_t sample, Ledger ledger) {
  sample_ = sample;
  committed_in_ = -1;
  ledger_ = std::move(ledger);
  // What workers hold is of a history that is over, and may one day be as long as the new one.
  for (auto& [worker, holding] : holdings_) holding.sample.reset();
  ranks_ = members_;
  guest_.reset();
  form(0, true, checkpoint);
}

void MeshCrew::form(int source, bool from_checkpoint, const std::string& checkpoint) {
  // A step that was not committed never happened: its samples are leased again.
  ledger_.give_back_all();
  lease_.reset();
  counts_.clear();
  addresses_.clear();
  formed_.clear();
  reports_.clear();
  unreached_.clear();
  broken_ = false;
  untold_ = false;
  alone_ = false;
  phase_ = Phase::gathering;
  ++formation_;
  // After a roll-back all take the source's: weights of as many samples may be of another history.
  std::vector<int> receivers;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const bool has = !from_checkpoint && holds(ranks_[static_cast<std::size_t>(rank)]);
    if (rank != source && !has) receivers.push_back(rank);
  }
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    send(ranks_[static_cast<std::size_t>(rank)], Form{.formation = formation_,
                                                      .rank = rank,
                                                      .size = static_cast<int>(ranks_.size()),
                                                      .sample = sample_,
                                                      .source = source,
                                                      .checkpoint = checkpoint,
                                                      .from_checkpoint = from_checkpoint,
                                                      .receivers = receivers});
  }
}

void MeshCrew::pause() {
  if (phase_ != Phase::idle) send_all(Halt{formation_});
  ledger_.give_back_all();
  lease_.reset();
  members_.clear();
  ranks_.clear();
  guest_.reset();
  broken_ = false;
  alone_ = false;
  phase_ = Phase::idle;
  if (!checkpoint_wanted_) return;
  const auto holder =
      std::ranges::find_if(holdings_, [&](const auto& entry) { return entry.second.sample == sample_; });
  if (holder == holdings_.end()) return;
  ranks_ = {holder->first};
  end_ = sample_;
  form(0, false, {});
  alone_ = true;
}

std::optional<MeshCrew::Step> MeshCrew::hear(WorkerId from, const FromMember& message) {
  std::optional<Step> step;
  const bool here = stands(from);
  std::visit(Overloaded{
                 [&](const Reachable& reachable) {
                   if (here) gather(from, reachable);
                 },
                 [&](const Formed& formed) {
                   if (here) join(from, formed);
                 },
                 [&](const Broken& broken) {
                   if (here) broke(from, broken);
                 },
                 [&](const StepDone& done) {
                   if (here) step = count(from, done);
                 },
                 [&](const CheckpointWritten&) { answered(from); }, [&](const CheckpointFailed&) { answered(from); },
                 Ignoring<void, Pushed>{},                                                   // there are no servers
                 Ignoring<void, Ready, Leaving, AtRisk, Unable, Fed, Measurement, Alive>{},  // for the session
             },
             message);
  return step;
}

void MeshCrew::broke(WorkerId from, const Broken& message) {
  if (message.formation != formation_) return;
  broken_ = true;
  if (!message.unreached) return;
  for (const auto& [worker, address] : addresses_) {
    if (std::ranges::find(*message.unreached, address) != message.unreached->end()) unreached_.add(from, worker);
  }
}

std::vector<WorkerId> MeshCrew::apart() const {
  if (unreached_.empty()) return {};
  const double all = static_cast<double>(ranks_.size());
  // Fewer first; of as many, those that have nothing to say themselves, then those that hold nothing, then newcomers.
  const auto worth = [&](WorkerId worker) {
    const double older = static_cast<double>(std::ranges::count_if(ranks_, [&](WorkerId one) { return one > worker; }));
    return 1 + (unreached_.reported(worker) ? 0.5 : 0) / all + (holds(worker) ? 0.25 : 0) / all +
           0.2 * older / (all * all);
  };
  auto chosen = unreached_.cheapest(worth);
  const auto stays = [&](WorkerId worker) {
    return holds(worker) && std::ranges::find(chosen, worker) == chosen.end();
  };
  const auto holder = [&](WorkerId worker) { return holds(worker); };
  if (std::ranges::none_of(ranks_, holder) || std::ranges::any_of(ranks_, stays)) return chosen;
  // Without any that holds the state much would be trained again: one of them stays, whatever that costs.
  chosen.clear();
  for (const WorkerId kept : ranks_) {
    if (!holds(kept)) continue;
    auto others = unreached_.cheapest([&](WorkerId worker) { return worker == kept ? 1e6 : worth(worker); });
    if (chosen.empty() || others.size() < chosen.size()) chosen = std::move(others);
  }
  return chosen;
}

void MeshCrew::answered(WorkerId from) {
  if (writer_ == from) writer_.reset();
  if (alone_ && stands(from) && !checkpoint_wanted_) pause();
}

void MeshCrew::gather(WorkerId from, const Reachable& message) {
  if (message.formation != formation_ || phase_ != Phase::gathering) return;
  addresses_[from] = message.address;
  if (addresses_.size() < ranks_.size()) return;
  Peers peers{.formation = formation_};
  for (const WorkerId worker : ranks_) peers.addresses.push_back(addresses_[worker]);
  send_all(peers);
  phase_ = Phase::joining;
}

void MeshCrew::join(WorkerId from, const Formed& message) {
  if (message.formation != formation_ || phase_ != Phase::joining) return;
  formed_.insert(from);
  // Whatever becomes of the formation: it may be the only one left that holds this state.
  holdings_[from].sample = sample_;
  if (formed_.size() < ranks_.size()) return;
  // A mesh cannot shrink: without the guest, which may be taken at any moment, it is another formation.
  if (guest_) {
    send(*guest_, Halt{formation_});
    form_again();
    return;
  }
  phase_ = Phase::training;
  comparison_.restart();
  go_on(end_);
}

std::optional<MeshCrew::Step> MeshCrew::count(WorkerId from, const StepDone& message) {
  if (message.formation != formation_ || phase_ != Phase::training) return std::nullopt;
  if (!lease_ && message.samples == 0 && message.validation_loss)
    return Step{.generation = generation_,
                .range = {sample_, 0},
                .validation_loss = message.validation_loss,
                .accuracy = message.accuracy};
  if (!lease_) return std::nullopt;
  if (message.first_sample != lease_->first || message.samples != lease_->count) return std::nullopt;
  reports_[from] = message;
  Holding& holding = holdings_[from];
  const int samples = counts_[static_cast<std::size_t>(rank_of(from))];
  // Waiting for data counts as computing: a worker with slow storage should get fewer samples, too.
  if (message.compute_s > 0 && samples > 0) {
    holding.speed.add(samples, message.compute_s + message.wait_s.value_or(0));
  }
  if (reports_.size() < ranks_.size()) return std::nullopt;
  Step step = finished_step();
  step.drift = comparison_.saw(reports_);
  return step;
}

MeshCrew::Step MeshCrew::finished_step() const {
  // The sums are the same bits at all workers, so one report says the loss; those of validation are with rank 0 alone.
  const StepDone& first = reports_.at(ranks_[0]);
  Step step{.generation = generation_,
            .range = *lease_,
            .loss = first.loss,
            .validation_loss = first.validation_loss,
            .accuracy = first.accuracy};
  std::int64_t place = lease_->first;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const StepDone& report = reports_.at(ranks_[rank]);
    step.parts.push_back({.worker = ranks_[rank],
                          .first = place,
                          .samples = counts_[rank],
                          .read = report.read,
                          .compute = Seconds(report.compute_s),
                          .exchange = Seconds(report.exchange_s),
                          .wait = Seconds(report.wait_s.value_or(0))});
    place += counts_[rank];
  }
  return step;
}

void MeshCrew::commit() {
  MAYFLY_CHECK(finished(), "only a finished step is committed");
  const bool kept = ledger_.commit(*lease_);
  MAYFLY_CHECK(kept, "a lease that is out can be committed");
  sample_ = lease_->end();
  committed_in_ = formation_;
  // They apply it when they hear of it, be it from Proceed or from the next Form. One that reported may be gone.
  for (const WorkerId worker : ranks_) {
    if (const auto found = holdings_.find(worker); found != holdings_.end()) found->second.sample = sample_;
  }
  lease_.reset();
  reports_.clear();
  untold_ = true;
}

void MeshCrew::go_on(std::int64_t end, bool evaluate) {
  end_ = end;
  if (phase_ != Phase::training || lease_ || broken_) return;
  const auto left = std::max<std::int64_t>(0, end_ - sample_);
  const int samples = static_cast<int>(std::min<std::int64_t>(batch_, left));
  if (samples > 0) {
    const SampleRange range = ledger_.lease(samples, end_);
    MAYFLY_CHECK(range.first == sample_ && range.count > 0, "samples are leased in order");
    lease_ = range;
    split(static_cast<int>(range.count));
  } else {
    counts_.clear();
  }
  untold_ = false;
  send_all(Proceed{.formation = formation_,
                   .committed = sample_,
                   .step = (sample_ + batch_ - 1) / batch_,
                   .counts = counts_,
                   .evaluate = evaluate,
                   .compare = samples > 0 && ranks_.size() > 1 && comparison_.due()});
  if (checkpoint_wanted_) write_checkpoint();
}

void MeshCrew::split(int samples) {
  std::vector<double> speeds;
  for (const WorkerId worker : ranks_) speeds.push_back(holdings_[worker].speed.value());
  // Other counts mean other samples for each worker, and what its loader has read ahead is dropped: changed seldom.
  const bool same = std::accumulate(counts_.begin(), counts_.end(), 0) == samples && counts_.size() == ranks_.size();
  if (same && ++steps_since_split_ < kStepsBetweenSplits) return;
  const auto wanted = shares(samples, speeds);
  if (same && !worth_a_change(wanted, counts_, speeds)) return;
  steps_since_split_ = 0;
  counts_ = wanted;
}

bool MeshCrew::write_checkpoint() {
  // Before it has heard that a step counts, the writer has not applied it: the checkpoint would be behind.
  checkpoint_wanted_ = phase_ != Phase::training || broken_ || untold_;
  if (checkpoint_wanted_) return false;
  writer_ = ranks_[0];
  send(*writer_, WriteCheckpoint{formation_});
  return true;
}

void MeshCrew::ask_others_than(WorkerId worker) {
  if (writer_ != worker) return;
  writer_.reset();
  checkpoint_wanted_ = true;
}

void MeshCrew::send_all(const ToMember& message) {
  for (const WorkerId worker : ranks_) send(worker, message);
}

/// As it will be when the step that was returned counts.
std::string MeshCrew::record() const { return std::to_string(finished() ? formation_ : committed_in_); }

void MeshCrew::restore(const std::string& record, std::int64_t committed) {
  sample_ = committed;
  committed_in_ = parse_integer(record).value_or(-1);
  // Workers in a mesh commit samples in their order, so the count is the whole ledger.
  if (committed > 0) ledger_ = *Ledger::restored({{0, committed}});
}

bool MeshCrew::complete() const {
  return std::all_of(members_.begin(), members_.end(), [&](WorkerId member) { return alive(member); });
}

std::vector<Letter> MeshCrew::letters() { return std::exchange(letters_, {}); }

std::vector<WorkerId> MeshCrew::awaited() const {
  std::vector<WorkerId> missing;
  for (const WorkerId worker : ranks_) {
    const bool here = phase_ == Phase::gathering ? addresses_.contains(worker)
                      : phase_ == Phase::joining ? formed_.contains(worker)
                                                 : !lease_ || reports_.contains(worker);
    if (!here) missing.push_back(worker);
  }
  return missing;
}

}  // namespace mayfly
