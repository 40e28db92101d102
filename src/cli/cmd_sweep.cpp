#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>

#include "base/text.h"
#include "base/untrusted.h"
#include "cli/captured.h"
#include "cli/command.h"
#include "cli/run_engine.h"
#include "engine/slurm_text.h"
#include "engine/tagged.h"
#include "run/store.h"
#include "status/folder.h"

namespace mayfly::cli {
namespace {

constexpr Seconds kSweepPatience{30};

struct SweepFlags {
  std::string directory{};
  bool json = false;
};

/// A run that no process drives, and what its machines are known by.
struct LeftRun {
  std::string engine{};
  std::string tag{};  ///< empty: it never asked for any
};

Result<LeftRun> left_run(const std::filesystem::path& directory) {
  const auto request = load_own_text(directory / "request.json");
  if (!request) return fail("{}: no run here: {}", directory.string(), request.error().message);
  const auto flags = RunFlags::parse(*request, (directory / "request.json").string());
  if (!flags) return unexpected(flags.error());
  auto spec = load_job(directory / "job.yaml");
  if (!spec) return unexpected(spec.error());
  RunSetup setup;
  setup.inputs.spec = *std::move(spec);
  if (const auto chosen = choose_engine(*flags, setup); !chosen) return unexpected(chosen.error());
  LeftRun left{.engine = setup.engine.kind};
  std::error_code error;
  if (!std::filesystem::exists(directory / "state.db", error)) return left;
  const auto store = Store::open(directory / "state.db");
  if (!store) return unexpected(store.error());
  left.tag = store->noted("run").value_or("");
  return left;
}

/// What was ended, as Slurm calls it.
Result<std::vector<std::string>> sweep_slurm(const std::string& tag) {
  const auto queue = captured({"squeue", "--noheader", "--array", fmt::format("--user={}", ::getuid()),
                               fmt::format("--format={}", kSlurmFormat)},
                              kSweepPatience);
  if (!queue) return unexpected(queue.error());
  const auto elements = slurm_elements(*queue, tag);
  if (!elements) return unexpected(elements.error());
  std::vector<std::string> ids;
  for (const SlurmElement& element : *elements) {
    if (slurm_phase(element.state) < SlurmPhase::ending) ids.push_back(element.id);
  }
  if (ids.empty()) return ids;
  std::vector<std::string> words{"scancel"};
  words.insert(words.end(), ids.begin(), ids.end());
  if (const auto done = captured(std::move(words), kSweepPatience); !done) return unexpected(done.error());
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
  Result<std::vector<std::string>> ended = std::vector<std::string>{};
  if (!left->tag.empty() && left->engine == "slurm") ended = sweep_slurm(left->tag);
  if (!left->tag.empty() && left->engine == "local") ended = sweep_local(left->tag);
  if (!ended) {
    fmt::print(stderr, "mayfly: {}\n", printable(ended.error().message));
    return kFailed;
  }
  if (options.json) {
    print_json({{"directory", options.directory}, {"engine", left->engine}, {"ended", *ended}});
  } else if (ended->empty()) {
    fmt::print("{}: nothing is left on {}\n", options.directory, left->engine);
  } else {
    fmt::print("{}: ended on {}: {}\n", options.directory, left->engine, fmt::join(*ended, ", "));
  }
  return kDone;
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
