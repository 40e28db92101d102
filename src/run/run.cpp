#include "run/run.h"

#include "data/checkpoint.h"
#include "run/runner.h"

namespace mayfly {
namespace {

/// Bumped when an older store would be misunderstood.
constexpr std::string_view kFormat = "mayfly-run/1";

/// All together.
std::optional<Fed> sum_of(const std::map<WorkerId, Fed>& workers) {
  if (workers.empty()) return std::nullopt;
  Fed sum;
  for (const auto& [worker, fed] : workers) {
    sum.hits += fed.hits;
    sum.from_peers += fed.from_peers;
    sum.from_storage += fed.from_storage;
    sum.peers_failed += fed.peers_failed;
    sum.prepared += fed.prepared;
    sum.received += fed.received;
    sum.fetch_s += fed.fetch_s;
    sum.prep_s += fed.prep_s;
    sum.wait_s += fed.wait_s;
  }
  return sum;
}

}  // namespace

Result<RunSummary> drive(const RunInputs& inputs, const RunCalls& calls) {
  auto store = Store::open(inputs.directory / "state.db");
  if (!store) return unexpected(store.error());
  const std::string format = store->noted("format").value_or(std::string(kFormat));
  if (format != kFormat)
    return fail("{}: format {}, want {}", (inputs.directory / "state.db").string(), format, kFormat);
  if (const auto noted = store->note("format", kFormat); !noted) return unexpected(noted.error());
  auto journal = Journal::create(inputs.directory / "journal.jsonl", inputs.spec.name,
                                 inputs.servers.price * static_cast<double>(inputs.servers.count));
  if (!journal) return unexpected(journal.error());
  Runner runner(inputs, calls, *std::move(store), *std::move(journal));
  return runner.run();
}

RunSummary Runner::summary() const {
  RunSummary summary{.end = ended_.value_or(RunEnd::stopped),
                     .loss = guard_ && guard_->training_loss() ? guard_->training_loss() : accounts_.loss(),
                     .validation_loss = validation_loss_,
                     .accuracy = accuracy_,
                     .samples_redone = accounts_.redone(),
                     .preemptions = accounts_.preemptions(),
                     .time = now(),
                     .forecast = inputs_.forecast,
                     .recovery_p50 = accounts_.recovery_p50(),
                     .recovery_max = accounts_.recovery_max(),
                     .strangers = desk_ ? desk_->strangers() : 0,
                     .emulated = inputs_.emulation,
                     .loader = sum_of(fed_)};
  if (servers_ != nullptr) {
    summary.staleness_mean = accounts_.mean_staleness();
    summary.staleness_max = accounts_.worst_staleness();
  }
  // What the weights hold is what counts, so the figures come from the checkpoint's own ledger.
  if (const auto found = newest_checkpoint(checkpoints()); found.checkpoint) {
    const TrainerState& state = found.checkpoint->state;
    summary.checkpoint = found.checkpoint->path.string();
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
