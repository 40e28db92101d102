#include "torchrun/torchrun.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "base/file.h"
#include "base/text.h"
#include "engine/process.h"
#include "run/journal.h"
#include "torchrun/passing.h"
#include "torchrun/talked_progress.h"
#include "wire/loop.h"

namespace mayfly {
namespace {

constexpr Seconds kScriptLook{1};
/// Of the deadline; a forecast that moves by less says nothing new.
constexpr double kWorthSaying = 0.03;
/// Of the deadline, after which silence about the progress is said.
constexpr double kSilentShare = 0.1;

/// Empty where it cannot be read: a process may end between two looks.
std::string content(const std::string& path) { return load_text(path).value_or(""); }

/// Field 4 of /proc/PID/stat.
int parent_of(const std::string& pid) {
  const std::string text = content("/proc/" + pid + "/stat");
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return -1;
  const auto fields = split(std::string_view(text).substr(name_end + 2), ' ');
  return fields.size() > 1 && fields[0] != "Z" ? parse_integer(fields[1]).value_or(-1) : -1;
}

std::optional<int> local_rank(const std::string& pid) {
  constexpr std::string_view kName = "LOCAL_RANK=";
  const std::string environment = content("/proc/" + pid + "/environ");
  for (const auto entry : split(environment, '\0')) {
    if (entry.starts_with(kName)) return parse_integer(entry.substr(kName.size()));
  }
  return std::nullopt;
}

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/// One torchrun while it runs. The loop's thread does everything but pass on output.
class Torchrun {
 public:
  Torchrun(const TorchrunInputs& inputs, const TorchrunCalls& calls, Journal journal)
      : inputs_(inputs), calls_(calls), journal_(std::move(journal)), progress_(inputs.steps) {}

  Result<TorchrunSummary> run() {
    journal_.add_line(journal_line(Seconds(0), Joined{.worker = 1,
                                                      .type = inputs_.type,
                                                      .market = inputs_.market,
                                                      .price = inputs_.price.value_or(UsdPerHour{})}));
    // Before there is a process that a signal could orphan; it is looked at once torchrun runs.
    const SignalWatch signals(loop_, {SIGINT, SIGTERM}, [this](int signal) { on_signal(signal); });
    if (auto started = start(); !started) return unexpected(started.error());
    if (calls_.notices)
      calls_.notices([this](Seconds left, const std::string& source) {
        loop_.post([this, left, source] { notice(left, source); });
      });
    look();
    loop_.run();
    if (calls_.notices) calls_.notices({});
    out_.finish();
    error_.finish();
    return end();
  }

 private:
  Seconds now() const { return std::chrono::steady_clock::now() - start_; }

  void say(const std::string& text) {
    journal_.add_line(Json{{"t_s", now().count()}, {"remark", text}}.dump());
    calls_.say(text);
  }

  Result<void> start() {
    std::vector<char*> arguments;
    for (const std::string& word : inputs_.command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) return fail("cannot start a process: {}", std::strerror(errno));
    if (pid_ == 0) {
      ::dup2(out_.writer(), STDOUT_FILENO);
      ::dup2(error_.writer(), STDERR_FILENO);
      // Python writes to a pipe in blocks, and to a terminal, which this was, line by line.
      if (inputs_.terminal) ::setenv("PYTHONUNBUFFERED", "1", 0);
      ::setenv("MAYFLY_NOTICE_FILE", (inputs_.directory / "notice.json").c_str(), 1);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    // A reader of our output that goes away must not take the training with it.
    ::signal(SIGPIPE, SIG_IGN);
    const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    if (descriptor < 0) return fail("cannot watch a process: {}", std::strerror(errno));
    ended_ = std::make_unique<DescriptorWatch>(loop_, descriptor, [this] {
      ::waitpid(pid_, &status_, 0);
      loop_.stop();
    });
    out_.start();
    error_.start();
    return {};
  }

  void hear(std::string_view line) {
    const LogPoint point = parse_log_line(line);
    if (point.empty()) return;
    const std::lock_guard lock(mutex_);
    progress_.saw(now(), point);
  }

  void on_signal(int signal) {
    if (signal == SIGTERM && !noticed_) return notice(inputs_.grace, "SIGTERM");
    if (signal == SIGTERM || !inputs_.terminal) ::kill(pid_, signal);
  }

  /// This machine will be taken, or is not paid for any longer.
  void notice(Seconds left, const std::string& source) {
    if (noticed_) return;
    noticed_ = true;
    ++summary_.preemptions;
    journal_.add_line(journal_line(now(), Notice{.worker = 1, .left = left}));
    say(fmt::format("{}: {} left; the script's processes are told with SIGTERM", source, format_duration(left)));
    tell_script(left, source);
  }

  void tell_script(Seconds left, const std::string& source) {
    const Json document{
        {"left_s", left.count()},
        {"source", source},
        {"ends", format_time(Seconds(std::chrono::system_clock::now().time_since_epoch()).count() + left.count())}};
    static_cast<void>(save_text(inputs_.directory / "notice.json", document.dump() + "\n"));
    for (const auto& [rank, pid] : ranked_children(pid_)) ::kill(pid, SIGTERM);
    over_.start(left, [this] {
      say("the time is over: torchrun is told to end");
      ::kill(pid_, SIGTERM);
    });
  }

  void look() {
    look_.start(kScriptLook, [this] { look(); });
    watch_script();
    watch_deadline();
    watch_budget();
  }

  void watch_script() {
    bool again = false;
    for (const auto& [rank, pid] : ranked_children(pid_)) {
      int& known = script_[rank];
      if (known == pid) continue;
      again = again || known != 0;
      known = pid;
    }
    if (!again) return;
    ++summary_.restarts;
    say(fmt::format("torchrun has started the script's processes again ({})", summary_.restarts));
    const std::lock_guard lock(mutex_);
    progress_.restarted();
    // They had their notice: another start would only be lost with the machine.
    if (noticed_) ::kill(pid_, SIGTERM);
  }

  void watch_deadline() {
    if (!inputs_.deadline) return;
    const std::lock_guard lock(mutex_);
    const auto end = progress_.end();
    if (!end) {
      if (!heard_nothing_ && !progress_.total() && now() > kSilentShare * *inputs_.deadline) {
        heard_nothing_ = true;
        say("nobody watches the deadline: the output tells no steps out of how many; give --steps");
      }
      return;
    }
    const double over = *end / *inputs_.deadline - 1;
    if (!at_risk_ && over > 0) {
      at_risk_ = true;
      say(fmt::format("the deadline is at risk: step {:.0f} of {:.0f}, done in {}, promised {}",
                      progress_.step().value_or(0), *progress_.total(), whole(*end), whole(*inputs_.deadline)));
    } else if (at_risk_ && over < -kWorthSaying) {
      at_risk_ = false;
      say(fmt::format("the deadline holds again: done in {}", whole(*end)));
    }
  }

  void watch_budget() {
    if (!inputs_.budget || !inputs_.price || summary_.over_budget) return;
    if (*inputs_.price * now() < *inputs_.budget) return;
    summary_.over_budget = true;
    if (noticed_) return;
    noticed_ = true;
    say(fmt::format("the budget of {:.4f} USD is spent: the script's processes are told with SIGTERM",
                    inputs_.budget->value));
    tell_script(inputs_.grace, "budget");
  }

  TorchrunSummary end() {
    summary_.exit_code = exit_code_of(status_);
    summary_.time = now();
    if (inputs_.price) summary_.cost = *inputs_.price * summary_.time;
    summary_.step = progress_.step();
    summary_.loss = progress_.loss();
    if (inputs_.deadline && summary_.exit_code == 0) summary_.deadline_met = summary_.time <= *inputs_.deadline;
    say(fmt::format("torchrun has ended with exit code {}", summary_.exit_code));
    journal_.add_line(journal_line(summary_.time, Lost{1}));
    return summary_;
  }

  static std::string whole(Seconds time) { return format_duration(std::chrono::round<std::chrono::seconds>(time)); }

  const TorchrunInputs& inputs_;
  const TorchrunCalls& calls_;
  Journal journal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Loop loop_{};
  Timer look_{loop_};
  Timer over_{loop_};
  std::unique_ptr<DescriptorWatch> ended_{};
  std::mutex mutex_{};  ///< of progress_
  TalkedProgress progress_;
  PassingOutput out_{STDOUT_FILENO, [this](std::string_view line) { hear(line); }};
  PassingOutput error_{STDERR_FILENO, [this](std::string_view line) { hear(line); }};
  pid_t pid_ = -1;
  int status_ = 0;
  bool noticed_ = false;
  bool at_risk_ = false;
  bool heard_nothing_ = false;
  std::map<int, int> script_{};  ///< local rank -> process
  TorchrunSummary summary_{};
};

}  // namespace

std::vector<std::pair<int, int>> ranked_children(int torchrun) {
  std::vector<std::pair<int, int>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto pid = parse_integer(name);
    if (!pid || parent_of(name) != torchrun) continue;
    // Before a child has become the script it has torchrun's own environment.
    if (const auto rank = local_rank(name)) found.emplace_back(*rank, *pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<TorchrunSummary> drive_torchrun(const TorchrunInputs& inputs, const TorchrunCalls& calls) {
  auto journal = Journal::create(inputs.directory / "journal.jsonl", "torchrun");
  if (!journal) return unexpected(journal.error());
  Torchrun torchrun(inputs, calls, *std::move(journal));
  auto summary = torchrun.run();
  if (!summary) return summary;
  const auto saved = save_text(inputs.directory / "summary.json", summary_json(*summary).dump(2) + "\n");
  if (!saved) return unexpected(saved.error());
  return summary;
}

Json summary_json(const TorchrunSummary& summary) {
  const auto number = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"format", "mayfly-torchrun/1"},      {"exit_code", summary.exit_code},
          {"time_s", summary.time.count()},     {"cost_usd", summary.cost ? Json(summary.cost->value) : Json(nullptr)},
          {"restarts", summary.restarts},       {"preemptions", summary.preemptions},
          {"over_budget", summary.over_budget}, {"step", number(summary.step)},
          {"loss", number(summary.loss)},       {"deadline_met", number(summary.deadline_met)}};
}

}  // namespace mayfly
