#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>

#include "base/text.h"
#include "base/untrusted.h"
#include "cli/command.h"
#include "cli/run_engine.h"
#include "engine/program.h"
#include "engine/tagged.h"
#include "run/store.h"
#include "status/folder.h"

namespace mayfly::cli {
namespace {

struct SweepFlags {
  std::string directory{};
  bool json = false;
};

/// A run that no process drives, and what its machines are known by.
struct LeftRun {
  RunSetup setup{};
  std::string tag{};  ///< empty: it never asked for any
};

Result<LeftRun> left_run(const std::filesystem::path& directory) {
  const auto request = load_own_text(directory / "request.json");
  if (!request) return fail("{}: no run here: {}", directory.string(), request.error().message);
  const auto flags = RunFlags::parse(*request, (directory / "request.json").string());
  if (!flags) return unexpected(flags.error());
  auto spec = load_job(directory / "job.yaml");
  if (!spec) return unexpected(spec.error());
  LeftRun left;
  left.setup.inputs.spec = *std::move(spec);
  left.setup.inputs.job_file = flags->job;
  if (const auto chosen = choose_engine(*flags, left.setup); !chosen) return unexpected(chosen.error());
  std::error_code error;
  if (!std::filesystem::exists(directory / "state.db", error)) return left;
  const auto store = Store::open(directory / "state.db");
  if (!store) return unexpected(store.error());
  left.tag = store->noted("run").value_or("");
  return left;
}

/// What was ended, as the provider calls it.
Result<std::vector<std::string>> sweep_provider(Provider& provider) {
  const auto listed = provider.listed(answer_to(provider.list(), provider.patience()));
  if (!listed) return unexpected(listed.error());
  std::vector<Ordered> left;
  std::vector<std::string> ids;
  for (const Listed& one : *listed) {
    const bool over = one.phase == Listed::Phase::over;
    if (over ? !provider.buries() : one.phase == Listed::Phase::ending) continue;
    left.push_back({.launch = one.launch, .id = one.id});
    ids.push_back(one.id);
  }
  if (left.empty()) return ids;
  if (const auto end = answer_to(provider.end(left), provider.patience()); !end.well()) return fail("{}", end.why());
  return ids;
}

std::vector<std::string> sweep_local(const std::string& tag) {
  std::set<int> launches;
  for (const Tagged& process : tagged(tag)) {
    launches.insert(process.launch);
    signal_group(process.pid, SIGKILL);
  }
  std::vector<std::string> names;
  for (const int launch : launches) names.push_back(machine_name(tag, launch));
  return names;
}

int sweep(const SweepFlags& options) {
  const std::filesystem::path directory(options.directory);
  if (driven(directory))
    return bad_input({fmt::format("{}: is driven, and its machines are wanted: mayfly stop {}", options.directory,
                                  options.directory)});
  const auto left = left_run(directory);
  if (!left) return bad_input(left.error());
  const std::string& engine = left->setup.engine.kind;
  auto provider = provider_of(left->setup, left->tag);
  if (!provider) return bad_input(provider.error());
  Result<std::vector<std::string>> ended = std::vector<std::string>{};
  if (!left->tag.empty() && *provider) ended = sweep_provider(**provider);
  if (!left->tag.empty() && engine == "local") ended = sweep_local(left->tag);
  if (!ended) {
    fmt::print(stderr, "mayfly: {}\n", printable(ended.error().message));
    return kFailed;
  }
  if (options.json) {
    print_json({{"directory", options.directory}, {"engine", engine}, {"ended", *ended}});
  } else if (ended->empty()) {
    fmt::print("{}: nothing is left on {}\n", options.directory, engine);
  } else {
    fmt::print("{}: ended on {}: {}\n", options.directory, engine, fmt::join(*ended, ", "));
  }
  const std::string unheard = *provider ? (*provider)->unheard() : "";
  if (unheard.empty()) return kDone;
  fmt::print(stderr, "mayfly: nothing is known of {}\n", printable(unheard));
  return kFailed;
}

}  // namespace

void add_sweep(CLI::App& program, int& code) {
  auto options = std::make_shared<SweepFlags>();
  auto* verb = program.add_subcommand("sweep", "end what a run that nobody drives has left on its engine");
  verb->add_option("directory", options->directory, "the run's folder")->required();
  verb->add_flag("--json", options->json, "print what was ended as one JSON document");
  verb->footer(
      "Machines that were waited for cost nothing but a place in the queue; those that run end by themselves when they "
      "have heard of no controller for --orphan-after.\nExample: mayfly sweep mayfly-runs/count-20260101T120000");
  verb->callback([options, &code] { code = sweep(*options); });
}

}  // namespace mayfly::cli
