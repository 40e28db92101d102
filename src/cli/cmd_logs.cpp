#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/command.h"
#include "cli/status_text.h"
#include "status/story.h"

namespace mayfly::cli {
namespace {

constexpr std::chrono::milliseconds kFollowLook{200};

struct LogsFlags {
  std::string directory{};
  std::optional<int> worker{};
  std::optional<int> server{};
  bool controller = false;
  bool follow = false;
};

/// Which file, and whether it is the journal.
struct LogSource {
  std::filesystem::path path{};
  bool journal = false;
};

Result<LogSource> source(const LogsFlags& options, const std::filesystem::path& directory) {
  std::error_code error;
  if (options.controller) {
    const auto path = directory / "run.log";
    if (!std::filesystem::exists(path, error))
      return fail("{}: not there: the controller writes to the terminal it was started from, unless with -d",
                  path.string());
    return LogSource{.path = path};
  }
  const auto number = options.worker ? options.worker : options.server;
  if (!number) return LogSource{.path = directory / "journal.jsonl", .journal = true};
  const auto path = directory / "logs" / fmt::format("worker-{}.log", *number);
  if (!std::filesystem::exists(path, error))
    return fail("{}: not there; 'mayfly status' shows the numbers of the logs", path.string());
  return LogSource{.path = path};
}

/// Prints the journal in words; one that is written anew by another controller tells what was told already first.
class Printer {
 public:
  explicit Printer(const LogSource& source) : tail_(source.path), journal_(source.journal) {}

  void print(bool all) {
    const auto lines = tail_.next(all);
    if (lines.anew) again_ = std::exchange(told_, 0);
    for (const std::string& line : lines.lines) {
      const auto words = journal_ ? story_line(line) : line;
      if (!words) continue;
      if (journal_ && ++told_ <= again_) continue;
      fmt::print("{}\n", terminal_ ? printable(*words) : *words);
    }
    std::fflush(stdout);
  }

 private:
  LineTail tail_;
  bool journal_;
  bool terminal_ = ::isatty(STDOUT_FILENO) != 0;
  std::size_t told_ = 0;
  std::size_t again_ = 0;  ///< lines of the journal that were printed before it was written anew
};

int logs(const LogsFlags& options) {
  const auto view = view_known_run(options.directory);
  if (!view) return bad_input(view.error());
  const auto from = source(options, options.directory);
  if (!from) return bad_input(from.error());
  Printer printer(*from);
  while (options.follow && driven(options.directory)) {
    printer.print(false);
    std::this_thread::sleep_for(kFollowLook);
  }
  printer.print(true);
  if (!options.follow) return kDone;
  const RunView last = view_run(options.directory);
  note(fmt::format("{}: {}", options.directory,
                   last.life == RunLife::lost ? "lost its controller; go on with: mayfly resume " + options.directory
                                              : std::string(name(last.life))));
  return kDone;
}

}  // namespace

void add_logs(CLI::App& program, int& code) {
  auto options = std::make_shared<LogsFlags>();
  auto* verb = program.add_subcommand("logs", "what happened in a run, in words");
  verb->add_option("directory", options->directory, "the run's folder")->required();
  verb->add_flag("-f,--follow", options->follow, "goes on until the run ends, through restarts of its controller");
  auto* group = verb->add_option_group("whose", "instead of the run's events");
  group->add_option("--worker", options->worker, "output of the worker with this log number (see mayfly status)")
      ->check(CLI::NonNegativeNumber);
  group->add_option("--server", options->server, "output of the server with this log number")
      ->check(CLI::NonNegativeNumber);
  group->add_flag("--controller", options->controller, "output of the controller of a run started with -d");
  group->require_option(0, 1);
  verb->footer(
      "Times are the run's own, which stand still while nobody drives it.\nExample: mayfly logs -f "
      "mayfly-runs/count-20260101T120000");
  verb->callback([options, &code] { code = logs(*options); });
}

}  // namespace mayfly::cli
