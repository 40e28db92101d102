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

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStopLook{100};
/// Two words within a second are one.
constexpr std::chrono::milliseconds kSayAgain{1500};
/// Whoever has frozen a process may be about to let it go on.
constexpr std::chrono::seconds kFrozenPatience{5};
/// A controller writes its status every second, but for the time in which the last checkpoint is made to last.
constexpr std::chrono::seconds kSilentPatience{60};

struct StopFlags {
  std::string directory{};
  bool now = false;
  bool json = false;
};

/// Both processes that drive the run: the front passes it on to the controller that it starts next, but may not get to
/// it. What they hear twice they take for one word.
Result<void> tell(const RunView& view, bool now) {
  if (!view.status) return fail("{}: has just been started: nobody can be told yet", view.directory.string());
  const RunStatus& status = *view.status;
  if (status.host != host_name() || status.boot != boot_id())
    return fail("{}: is driven from {}: stop it there", view.directory.string(), status.host);
  const int signal = now ? SIGINT : SIGTERM;
  const bool front = send_signal(status.front, signal);
  const bool controller = send_signal(status.controller, signal);
  if (!front && !controller && driven(view.directory))
    return fail("{}: is driven, but not by the processes that its status.json names", view.directory.string());
  return {};
}

/// Notices when those who drive a run have fallen silent.
class Listening {
 public:
  /// An error names the process that does not answer.
  Result<void> look(const std::string& directory) {
    const auto status = load_status(directory);
    const RunStatus seen = status ? *status : RunStatus{};
    // The front has nothing to write; it is awaited when its controller is gone.
    const ProcessId awaited = alive(seen.controller) ? seen.controller : seen.front;
    const bool news = seen.written != written_ || awaited != awaited_;
    written_ = seen.written;
    awaited_ = awaited;
    if (news) heard_ = Clock::now();
    const bool still = frozen(awaited);
    if (Clock::now() - heard_ < (still ? kFrozenPatience : kSilentPatience)) return {};
    return fail("{}: told to stop, but process {}, its {}, does not answer{}", directory, awaited.pid,
                awaited == seen.front ? "front" : "controller",
                still ? fmt::format(": it is frozen (go on: kill -CONT {0}; end it: kill -KILL {0})", awaited.pid)
                      : fmt::format(" (end it: kill -KILL {})", awaited.pid));
  }

 private:
  double written_ = 0;
  ProcessId awaited_{};
  Clock::time_point heard_ = Clock::now();
};

/// However they end; an error where they do not.
Result<void> wait_until_ended(const StopFlags& options) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto start = Clock::now();
  auto said = start;
  Listening listening;
  Result<void> heard;
  while (heard && driven(options.directory)) {
    if (terminal) {
      const auto status = load_status(options.directory);
      fmt::print(stderr, "\r\033[K{} | {}", status ? status->phase : "stopping",
                 format_duration(std::chrono::round<std::chrono::seconds>(Clock::now() - start)));
      std::fflush(stderr);
    }
    std::this_thread::sleep_for(kStopLook);
    heard = listening.look(options.directory);
    if (!options.now || Clock::now() - said < kSayAgain) continue;
    said = Clock::now();
    // Who is gone since then need not be told.
    static_cast<void>(tell(view_run(options.directory), true));
  }
  if (terminal) fmt::print(stderr, "\r\033[K");
  return driven(options.directory) ? heard : Result<void>{};
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
    auto told = tell(*view, options.now);
    if (told) told = wait_until_ended(options);
    if (!told) {
      fmt::print(stderr, "mayfly: {}\n", told.error().message);
      return kFailed;
    }
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
      "Waits until the run has ended and prints its summary; says so, with exit code 1, where a process of it does not "
      "answer. A run that does not run is left as it is, which is no error.\nExample: mayfly stop "
      "mayfly-runs/count-20260101T120000");
  verb->callback([options, &code] { code = stop(*options); });
}

}  // namespace mayfly::cli
