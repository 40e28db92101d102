#include "run/run.h"

#include <map>

#include "base/json.h"
#include "job/lasting.h"
#include "job/store_url.h"
#include "run/runner.h"

namespace mayfly {
namespace {

/// Bumped when an older store would be misunderstood.
constexpr std::string_view kStoreFormat = "mayfly-run/1";

/// A run that goes on must train what it began to train. Nothing is written before that is known.
Result<void> check_lasting(Store& store, const RunInputs& inputs) {
  const auto terms = lasting_terms(inputs.job_text, inputs.job_file.string());
  if (!terms) return unexpected(terms.error());
  const auto kept = store.noted("terms");
  if (!kept) return store.note("terms", Json(*terms).dump());
  const Json before = Json::parse(*kept, nullptr, false);
  if (!before.is_object()) return fail("{}: 'terms' cannot be read", (inputs.directory / "state.db").string());
  const std::string changed = differences(before.get<std::map<std::string, std::string>>(), *terms);
  if (changed.empty()) return {};
  return fail(
      "{}: the job has changed since the run began: {}. Samples would be repeated or skipped: put it back, or begin a "
      "new run. What may change: everything but 'run' and 'train', and of 'train' checkpoint, data.loader, on_nan, "
      "nan_steps and on_drift",
      (inputs.directory / "job.yaml").string(), changed);
}

}  // namespace

Result<RunSummary> drive(const RunInputs& inputs, const RunCalls& calls) {
  auto store = Store::open(inputs.directory / "state.db");
  if (!store) return unexpected(store.error());
  const std::string format = store->noted("format").value_or(std::string(kStoreFormat));
  if (format != kStoreFormat)
    return fail("{}: format {}, want {}", (inputs.directory / "state.db").string(), format, kStoreFormat);
  if (const auto noted = store->note("format", kStoreFormat); !noted) return unexpected(noted.error());
  if (const auto same = check_lasting(*store, inputs); !same)
    return RunSummary{.end = RunEnd::unable, .failure = same.error().message};
  auto journal = Journal::create(inputs.directory / "journal.jsonl", inputs.spec.name,
                                 inputs.servers.price * static_cast<double>(inputs.servers.count));
  if (!journal) return unexpected(journal.error());
  Runner runner(inputs, calls, *std::move(store), *std::move(journal));
  return runner.run();
}

Result<void> check_policy(PolicyName policy) {
  switch (mechanism(policy)) {
    case Mechanism::shadow:
      return fail("{}: a worker that does its neighbour's work besides its own can be replayed, not run", name(policy));
    case Mechanism::regroup:
      return fail("{}: pipelines of prepared lengths can be replayed, not run", name(policy));
    default:
      return {};
  }
}

std::string checkpoint_place(const RunInputs& inputs) {
  const auto& named = inputs.spec.train->checkpoint.directory;
  if (is_store_url(named)) return named;
  return (named.empty() ? inputs.directory / "checkpoints" : inputs.job_file.parent_path() / named).string();
}

}  // namespace mayfly
