#include "run/run.h"

#include "run/runner.h"

namespace mayfly {
namespace {

/// Bumped when an older store would be misunderstood.
constexpr std::string_view kStoreFormat = "mayfly-run/1";

}  // namespace

Result<RunSummary> drive(const RunInputs& inputs, const RunCalls& calls) {
  auto store = Store::open(inputs.directory / "state.db");
  if (!store) return unexpected(store.error());
  const std::string format = store->noted("format").value_or(std::string(kStoreFormat));
  if (format != kStoreFormat)
    return fail("{}: format {}, want {}", (inputs.directory / "state.db").string(), format, kStoreFormat);
  if (const auto noted = store->note("format", kStoreFormat); !noted) return unexpected(noted.error());
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

std::filesystem::path checkpoint_folder(const RunInputs& inputs) {
  const auto& named = inputs.spec.train->checkpoint.directory;
  return named.empty() ? inputs.directory / "checkpoints" : inputs.job_file.parent_path() / named;
}

}  // namespace mayfly
