#include "cli/supervise.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

#include "cli/command.h"

namespace mayfly::cli {
namespace {

/// A process that dies at once, time after time, has a reason that starting it again does not mend.
constexpr int kMostDeaths = 5;
constexpr std::chrono::seconds kHealthy{10};
constexpr std::chrono::milliseconds kPause{100};
/// Between two tries to start one at all.
constexpr std::chrono::milliseconds kMostPause{30'000};

volatile std::sig_atomic_t child = 0;

void pass_on(int signal) {
  if (child > 0) ::kill(static_cast<pid_t>(child), signal);
}

void catch_signals(void (*handler)(int), std::initializer_list<int> signals) {
  struct sigaction action{};
  action.sa_handler = handler;
  for (const int signal : signals) ::sigaction(signal, &action, nullptr);
}

pthread_t waiter;

/// A thread of a library may have left them unblocked: then it gets them instead of the one that waits for them.
void hand_over(int signal) { ::pthread_kill(waiter, signal); }

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

/// SIGINT and SIGTERM stay blocked until the work watches for them: by default they would kill it.
int run_child(pid_t front, const std::function<int(bool)>& work, bool again) {
  catch_signals(SIG_DFL, {SIGINT, SIGTERM, SIGCHLD});
  const sigset_t ends = set_of({SIGCHLD});
  ::pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  ::setpgid(0, 0);  // Ctrl-C reaches the parent alone, which passes it on once
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != front) ::raise(SIGTERM);  // it died before that
  const int code = work(again);
  std::fflush(stdout);
  std::fflush(stderr);
  return code;
}

/// How it ended, if it has; others that end meanwhile are orphans of an earlier one.
std::optional<int> ended(pid_t pid) {
  int status = 0;
  while (true) {
    const pid_t found = ::waitpid(-1, &status, WNOHANG);
    if (found == pid || (found < 0 && errno != EINTR)) return status;
    if (found == 0) return std::nullopt;
  }
}

/// Until it ends. Signals are taken one by one from those that wait, and go to it; `asked` is the last of them.
int wait_for(pid_t pid, std::optional<int>& asked) {
  const sigset_t awaited = set_of({SIGINT, SIGTERM, SIGCHLD});
  // A controller that is killed while it saves, or was dead before it could be told, leaves that to the next one.
  if (asked) ::kill(pid, *asked);
  while (true) {
    if (const auto status = ended(pid)) return *status;
    const int signal = ::sigwaitinfo(&awaited, nullptr);
    if (signal != SIGINT && signal != SIGTERM) continue;
    asked = signal;
    ::kill(pid, signal);
  }
}

/// fork(), again and again for a while where the computer has no room just now: a run is not given up for a moment.
pid_t forked() {
  for (std::chrono::milliseconds pause = kPause;; pause *= 2) {
    const pid_t pid = ::fork();
    if (pid >= 0) return pid;
    const int error = errno;
    const bool again = error == EAGAIN && pause <= kMostPause;
    fmt::print(stderr, "mayfly: cannot start a process: {}{}\n", std::strerror(error), again ? "; tried again" : "");
    if (!again) return pid;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

void pass_on_to(pid_t pid, std::initializer_list<int> signals) {
  child = pid;
  catch_signals(pass_on, signals);
}

int supervise(const std::function<int(bool)>& work, const std::function<void(int)>& died) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Blocked, they wait while there is no child, and none comes between a fork and the knowledge of whom to tell. They
  // stay so to the end: what comes when all is over changes nothing.
  const sigset_t blocked = set_of({SIGINT, SIGTERM, SIGCHLD});
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  waiter = ::pthread_self();
  catch_signals(hand_over, {SIGINT, SIGTERM, SIGCHLD});
  const pid_t front = ::getpid();
  std::optional<int> asked;
  int deaths = 0;
  for (bool again = false;; again = true) {
    const auto start = std::chrono::steady_clock::now();
    std::fflush(stdout);
    std::fflush(stderr);
    const pid_t pid = forked();
    if (pid < 0) return kFailed;
    if (pid == 0) ::_exit(run_child(front, work, again));
    const int status = wait_for(pid, asked);
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    died(WTERMSIG(status));
    deaths = std::chrono::steady_clock::now() - start < kHealthy ? deaths + 1 : 1;
    if (deaths >= kMostDeaths) {
      fmt::print(stderr, "mayfly: the controller died {} times in a row: giving up; its workers save and end\n",
                 deaths);
      return kFailed;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace mayfly::cli
