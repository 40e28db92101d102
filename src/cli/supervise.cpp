#include "cli/supervise.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "cli/command.h"

namespace mayfly::cli {
namespace {

/// A process that dies at once, time after time, has a reason that starting it again does not mend.
constexpr int kMostDeaths = 5;
constexpr std::chrono::seconds kHealthy{10};
constexpr std::chrono::milliseconds kPause{100};

volatile std::sig_atomic_t child = 0;

void pass_on(int signal) {
  if (child > 0) ::kill(static_cast<pid_t>(child), signal);
}

void catch_signals(void (*handler)(int), std::initializer_list<int> signals) {
  struct sigaction action{};
  action.sa_handler = handler;
  for (const int signal : signals) ::sigaction(signal, &action, nullptr);
}

int run_child(const std::function<int(bool)>& work, bool again) {
  catch_signals(SIG_DFL, {SIGINT, SIGTERM});
  ::setpgid(0, 0);  // Ctrl-C reaches the parent alone, which passes it on once
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int code = work(again);
  std::fflush(stdout);
  std::fflush(stderr);
  return code;
}

/// Waits for one process; others that end meanwhile are orphans of an earlier one.
int wait_for(pid_t pid) {
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) return status;
  }
}

}  // namespace

void pass_on_to(pid_t pid, std::initializer_list<int> signals) {
  child = pid;
  catch_signals(pass_on, signals);
}

int supervise(const std::function<int(bool)>& work, const std::function<void(int)>& died) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  pass_on_to(0, {SIGINT, SIGTERM});
  int deaths = 0;
  for (bool again = false;; again = true) {
    const auto start = std::chrono::steady_clock::now();
    std::fflush(stdout);
    std::fflush(stderr);
    const pid_t pid = ::fork();
    if (pid < 0) {
      fmt::print(stderr, "mayfly: cannot start a process: {}\n", std::strerror(errno));
      return kFailed;
    }
    if (pid == 0) ::_exit(run_child(work, again));
    pass_on_to(pid, {});
    const int status = wait_for(pid);
    pass_on_to(0, {});
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
