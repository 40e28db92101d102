#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/command.h"
#include "cli/run_text.h"
#include "cli/status_text.h"
#include "job/job_spec.h"

namespace mayfly::cli {
namespace {

constexpr std::chrono::milliseconds kStopLook{100};

struct StopFlags {
  std::string directory{};
  bool now = false;
  bool json = false;
};

/// The process that drives the run is told once; the front passes it on to the controller it watches.
Result<void> tell(const RunView& view, bool now) {
  if (!view.status) return fail("{}: has just been started: nobody can be told yet", view.directory.string());
  const RunStatus& status = *view.status;
  if (status.host != host_name() || status.boot != boot_id())
    return fail("{}: is driven from {}: stop it there", view.directory.string(), status.host);
  // Two kinds: two of one kind may arrive as one.
  for (const int signal : now ? std::vector<int>{SIGTERM, SIGINT} : std::vector<int>{SIGTERM}) {
    if (!send_signal(status.front, signal) && !send_signal(status.controller, signal) && driven(view.directory))
      return fail("{}: is driven, but not by the processes that its status.json names", view.directory.string());
  }
  return {};
}

void wait_until_ended(const std::string& directory) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto start = std::chrono::steady_clock::now();
  while (driven(directory)) {
    if (terminal) {
      const auto status = load_status(directory);
      fmt::print(stderr, "\r\033[K{} | {}", status ? status->phase : "stopping",
                 format_duration(std::chrono::round<std::chrono::seconds>(std::chrono::steady_clock::now() - start)));
      std::fflush(stderr);
    }
    std::this_thread::sleep_for(kStopLook);
  }
  if (terminal) fmt::print(stderr, "\r\033[K");
}

/// What a run that does not run is; `was`: before it was stopped.
int tell_end(const StopFlags& options, RunLife was) {
  const RunView view = view_run(options.directory);
  const bool stopped_now = was == RunLife::running || was == RunLife::starting;
  const auto summary = load_summary(options.directory);
  const bool whole = summary && view.life != RunLife::lost && view.life != RunLife::failed;
  if (options.json) {
    print_json({{"directory", options.directory},
                {"state", name(view.life)},
                {"was_running", stopped_now},
                {"summary", whole ? summary_json(*summary) : Json()}});
  } else {
    if (!stopped_now) fmt::print("{}: is not running: {}\n", options.directory, name(view.life));
    const auto job = load_job(view.directory / "job.yaml");
    if (whole && job) fmt::print("{}", summary_text(*summary, *job));
    if (view.life == RunLife::stopped || view.life == RunLife::lost)
      fmt::print("go on with: mayfly resume {}\n", options.directory);
  }
  if (stopped_now && view.life == RunLife::failed) {
    fmt::print(stderr, "mayfly: {}\n", view.status ? view.status->failure : "the run failed");
    return kFailed;
  }
  return kDone;
}

int stop(const StopFlags& options) {
  auto view = view_known_run(options.directory);
  if (!view) return bad_input(view.error());
  const RunLife was = view->life;
  // A run that has been started a moment ago has not said yet who drives it.
  for (int look = 0; view->life == RunLife::starting && look < 100; ++look) {
    std::this_thread::sleep_for(kStopLook);
    view = view_known_run(options.directory);
    if (!view) return bad_input(view.error());
  }
  if (view->life == RunLife::running || view->life == RunLife::starting) {
    if (const auto told = tell(*view, options.now); !told) {
      fmt::print(stderr, "mayfly: {}\n", told.error().message);
      return kFailed;
    }
    wait_until_ended(options.directory);
  }
  return tell_end(options, was);
}

}  // namespace

void add_stop(CLI::App& program, int& code) {
  auto options = std::make_shared<StopFlags>();
  auto* verb = program.add_subcommand("stop", "save a run and end it");
  verb->add_option("directory", options->directory, "the run's folder")->required();
  verb->add_flag("--now", options->now, "end at once: what was trained since the last checkpoint is trained again");
  verb->add_flag("--json", options->json, "print one JSON document");
  verb->footer(
      "Waits until the run has ended and prints its summary. A run that does not run is left as it is, which is no "
      "error.\nExample: mayfly stop mayfly-runs/count-20260101T120000");
  verb->callback([options, &code] { code = stop(*options); });
}

}  // namespace mayfly::cli
