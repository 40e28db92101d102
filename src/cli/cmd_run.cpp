#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/how_many.h"
#include "base/untrusted.h"
#include "cli/command.h"
#include "cli/detach.h"
#include "cli/run_setup.h"
#include "cli/run_text.h"
#include "cli/supervise.h"
#include "status/folder.h"

namespace mayfly::cli {
namespace {

struct StartFlags {
  RunFlags flags{};
  std::string directory{};  ///< of resume
  bool yes = false;
  bool detach = false;
  bool json = false;
};

/// True where the user need not be asked or the answer is yes.
Result<bool> agreed(const RunSetup& setup, const StartFlags& options) {
  if (options.yes || !setup.inputs.priced) return true;
  if (::isatty(STDIN_FILENO) == 0) return fail("run: nobody to ask whether this may cost money: say -y");
  fmt::print(stderr, "Start? [Y/n] ");
  std::fflush(stderr);
  std::string answer;
  if (!std::getline(std::cin, answer)) return false;
  return answer.empty() || answer[0] == 'y' || answer[0] == 'Y';
}

/// A new folder that is ours alone.
Result<RunLock> make_folder(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return fail("{}: cannot create: {}", directory.string(), error.message());
  auto lock = RunLock::take(directory);
  if (lock && std::filesystem::exists(directory / "state.db", error))
    return fail("{}: holds a run already; go on with it: mayfly resume {}", directory.string(), directory.string());
  return lock;
}

/// What `resume` needs to find.
Result<void> write_request(const RunFlags& flags, const RunSetup& setup) {
  const auto& directory = setup.inputs.directory;
  std::error_code error;
  RunFlags kept = flags;
  kept.job = setup.inputs.job_file.string();
  if (!kept.checkpoints.empty()) kept.checkpoints = checkpoint_place(setup.inputs);
  for (std::string* path : {&kept.plan, &kept.trace}) {
    if (std::filesystem::exists(*path, error)) *path = std::filesystem::absolute(*path, error).string();
  }
  if (kept.engine.starts_with("exec:")) kept.engine = "exec:" + setup.engine.exec.program.front();
  if (!setup.plan.is_null()) {
    kept.plan = (directory / "plan.json").string();
    if (auto saved = save_text(kept.plan, setup.plan.dump(2) + "\n"); !saved) return saved;
  }
  if (!setup.engine_text.empty()) {
    kept.engine_file = (directory / "engine.yaml").string();
    if (auto saved = save_text(kept.engine_file, setup.engine_text); !saved) return saved;
  }
  if (auto saved = save_text(directory / "job.yaml", setup.inputs.job_text); !saved) return saved;
  return save_text(directory / "request.json", kept.json().dump(2) + "\n");
}

int exit_code(const RunSummary& summary) {
  if (summary.end == RunEnd::unable) return kBadInput;
  return summary.missed.empty() ? kDone : kMissed;
}

int drive_and_tell(const RunSetup& setup, const StartFlags& options) {
  RunScreen screen(::isatty(STDERR_FILENO) != 0);
  const RunCalls calls{.say = [&](const std::string& text) { screen.say(text); },
                       .progress = [&](const RunProgress& progress) { screen.progress(progress); }};
  const auto summary = drive(setup.inputs, calls);
  screen.end();
  if (!summary) {
    fmt::print(stderr, "mayfly: {}\n", summary.error().message);
    return kFailed;
  }
  if (summary->end == RunEnd::unable) return bad_input({summary->failure});
  if (options.json) {
    print_json(summary_json(*summary));
  } else {
    fmt::print("{}", summary_text(*summary, setup.inputs.spec));
    if (summary->end == RunEnd::stopped)
      fmt::print("stopped; go on with: mayfly resume {}\n", setup.inputs.directory.string());
  }
  return exit_code(*summary);
}

/// A run that has saved something has also stored what was decided; without that it would begin anew beside it.
Result<void> check_store(const RunInputs& inputs) {
  std::error_code error;
  const auto store = inputs.directory / "state.db";
  if (std::filesystem::exists(store, error)) return {};
  const auto depot = open_depot(checkpoint_place(inputs), inputs.around, {});
  if (!depot) return unexpected(depot.error());
  const auto newest = (*depot)->newest({.seed = inputs.spec.train->seed});
  if (!newest) return unexpected(newest.error());
  const auto& found = newest->checkpoint;
  if (!found) return {};
  return fail(
      "{}: is missing, but {} holds {} samples: restore it to go on, or start another run: mayfly run {} --out "
      "ANOTHER-FOLDER",
      store.string(), found->path.string(), found->state.sample, inputs.job_file.string());
}

int start_here(const RunSetup& setup, const StartFlags& options) {
  return supervise(
      [&](bool again) {
        // Whoever deletes the folder under a run takes its story away, too.
        const auto stored = again ? check_store(setup.inputs) : Result<void>{};
        if (stored) return drive_and_tell(setup, options);
        fmt::print(stderr, "mayfly: {}\n", stored.error().message);
        return kFailed;
      },
      [](int signal) { fmt::print(stderr, "the controller was killed by signal {}: starting it again\n", signal); });
}

/// The lock of the run is the caller's, and its children's.
int start(const RunSetup& setup, const StartFlags& options) {
  if (!options.detach) return start_here(setup, options);
  const RunInputs& inputs = setup.inputs;
  const std::string directory = inputs.directory.string();
  const Detached run =
      detach({.directory = inputs.directory, .waits = setup.waits}, [&] { return start_here(setup, options); });
  if (!run.stands && run.code == kBadInput) return run.code;
  if (options.json) {
    print_json({{"directory", directory}, {"state", run.stands ? "running" : "ended"}, {"pid", run.pid}});
  } else if (run.stands) {
    fmt::print("runs in the background\n  mayfly status {0}\n  mayfly logs -f {0}\n  mayfly stop {0}\n", directory);
  } else {
    fmt::print("{}: has ended already, with exit code {}\n", directory, run.code);
  }
  return run.code;
}

int run(const StartFlags& options) {
  auto made = set_up(options.flags, {});
  if (!made) return bad_input(made.error());
  if (const auto* no = std::get_if<NoPlan>(&*made)) {
    fmt::print("{}", no->text);
    return kNo;
  }
  const RunSetup& setup = *std::get<std::unique_ptr<RunSetup>>(*made);
  if (!setup.plan_text.empty()) fmt::print(options.json ? stderr : stdout, "{}\n", setup.plan_text);
  std::fflush(stdout);
  for (const std::string& text : setup.notes) note(text);
  const auto agree = agreed(setup, options);
  if (!agree) return bad_input(agree.error());
  if (!*agree) return kDone;
  std::error_code error;
  const bool fresh = !std::filesystem::exists(setup.inputs.directory, error);
  const auto lock = make_folder(setup.inputs.directory);
  if (!lock) return bad_input(lock.error());
  if (const auto written = write_request(options.flags, setup); !written) return bad_input(written.error());
  note(fmt::format("{}: {} in {}", setup.inputs.spec.name, how_many(setup.inputs.workers, "worker"),
                   setup.inputs.directory.string()));
  const int code = start(setup, options);
  // Nothing was trained; the message says all there is to know. A folder that was there before is left alone.
  if (code == kBadInput && fresh) std::filesystem::remove_all(setup.inputs.directory, error);
  return code;
}

int resume(const StartFlags& options) {
  const std::filesystem::path directory(options.directory);
  const auto text = load_own_text(directory / "request.json");
  if (!text) return bad_input({fmt::format("{}: no run here: {}", options.directory, text.error().message)});
  if (const auto own = check_own_folder(directory); !own) return bad_input(own.error());
  const auto flags = RunFlags::parse(*text, (directory / "request.json").string());
  if (!flags) return bad_input(flags.error());
  const auto lock = RunLock::take(directory);
  if (!lock) return bad_input(lock.error());
  const auto made = set_up(*flags, directory);
  if (!made) return bad_input(made.error());
  if (const auto* no = std::get_if<NoPlan>(&*made)) {
    fmt::print("{}", no->text);
    return kNo;
  }
  const RunSetup& setup = *std::get<std::unique_ptr<RunSetup>>(*made);
  if (const auto stored = check_store(setup.inputs); !stored) return bad_input(stored.error());
  return start(setup, options);
}

}  // namespace

void add_run(CLI::App& program, int& code) {
  auto options = std::make_shared<StartFlags>();
  RunFlags& flags = options->flags;
  auto* verb = program.add_subcommand("run", "train for real, through any loss of machines");
  verb->add_option("job", flags.job, "job.yaml with a 'train' block")->required();
  verb->add_option("--plan", flags.plan,
                   "plan.json of 'mayfly plan -o' (default: plan first, where the job has a profile)");
  verb->add_option("--workers", flags.workers,
                   "machines at a time: processes of this machine (default: the plan's, else one a core)")
      ->check(CLI::Range(1, 1024));
  verb->add_option(
      "--as", flags.as,
      "what they play: prices, and as large a part of a core and of their network as makes them differ like "
      "the real ones: g3.8xlarge=2,g4dn.xlarge=1; lambda-1728=7 are functions of 1728 MiB");
  verb->add_option("--lifetime", flags.lifetime,
                   "each machine is replaced after so long, before the time limit ends it; of real machines, in an "
                   "emulation as many times longer (default: none; of functions their platform's)");
  verb->add_option("--trace", flags.trace, "a trace's losses become SIGTERM, then SIGKILL");
  verb->add_option("--speed", flags.speed, "seconds of the trace per second: 60x")->capture_default_str();
  verb->add_option("--notice", flags.notice,
                   "from SIGTERM to the end of a machine (default: 2s with --trace, else 30s)");
  verb->add_option(
          "--notices", flags.notices,
          "whose metadata service tells the workers when this machine will be taken: auto, aws, gcp, azure, none")
      ->capture_default_str();
  verb->add_option("--policy", flags.policy, "who decides (default: liveput with a profile, else the fastest shape)");
  verb->add_option("--market", flags.market,
                   "spot,on-demand or one of them: where workers may be rented (default: as the job file says)");
  verb->add_option("--out", flags.out, "the run's folder (default: mayfly-runs/NAME-TIME)");
  verb->add_option(
      "--checkpoints", flags.checkpoints,
      "where they go: a folder that all machines see, or s3://BUCKET/PREFIX, see docs/storage.md (default: "
      "as the job file says, else in the run's folder)");
  verb->add_option("--catalog", flags.catalog, "catalogue files or names, separated by commas, for prices");
  verb->add_option("--interface", flags.interface,
                   "network interface to listen on; beyond 'lo' connections are encrypted")
      ->capture_default_str();
  verb->add_option("--port", flags.port, "to listen on (default: any that is free)");
  verb->add_option("--advertise", flags.advertise,
                   "HOST[:PORT] where workers reach the controller, if that is not where it listens");
  verb->add_flag("--private-network", flags.private_network,
                 "only machines of yours reach that network: what workers without servers send each other is not "
                 "encrypted there, which is faster");
  verb->add_flag("--trust", flags.trust,
                 "load a TorchScript model that belongs to another user: it is a program and may do what you may");
  verb->add_option(
      "--engine", flags.engine,
      "where machines come from. local: processes of this one; slurm: jobs of a cluster; ssh: computers that "
      "are listed; exec:PROGRAM: a program that gets them; none: they come by themselves (default: as the "
      "job file says, else local). docs/engines.md");
  verb->add_option("--engine-file", flags.engine_file,
                   "partitions, hosts, types and prices, in place of the job file's 'engine' block");
  verb->add_option("--orphan-after", flags.orphan_after,
                   "silence after which workers take the controller for gone, save and end (default 30s)");
  verb->add_option(
      "--step-limit", flags.step_limit,
      "a worker that takes longer for a step, and 20 times as long as steps take, is replaced (default 60s; "
      "for the first step ten times as long)");
  verb->add_option("--seed", flags.seed, "of which machines a trace takes")->capture_default_str();
  flags.trace_flags.add_to(*verb);
  verb->add_flag("-d,--detach", options->detach,
                 "return as soon as it trains, or has failed; its output goes to run.log in its folder");
  verb->add_flag("-y,--yes", options->yes, "start without asking");
  verb->add_flag("--json", options->json, "print the summary as one JSON document; with -d where it runs");
  verb->footer(
      "Ctrl-C once saves and ends, twice ends at once, SIGTERM saves and ends. Exit code 4: trained, but a promise was "
      "missed.\nExample: "
      "mayfly "
      "run examples/count/job.yaml --workers 2");
  verb->callback([options, &code] { code = run(*options); });
}

void add_resume(CLI::App& program, int& code) {
  auto options = std::make_shared<StartFlags>();
  auto* verb = program.add_subcommand("resume", "go on with a run that was stopped or lost its controller");
  verb->add_option("directory", options->directory, "the run's folder")->required();
  verb->add_flag("-d,--detach", options->detach,
                 "return as soon as it trains, or has failed; its output goes to run.log in its folder");
  verb->add_flag("--json", options->json, "print the summary as one JSON document; with -d where it runs");
  verb->footer("Example: mayfly resume mayfly-runs/count-20260101T120000");
  verb->callback([options, &code] { code = resume(*options); });
}

}  // namespace mayfly::cli
