#include "train/stack_log.h"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "train/log.h"

namespace mayfly {
namespace {

constexpr int kMostFrames = 64;

void write_stack(int /*signal*/) {
  const int before = errno;
  std::array<void*, kMostFrames> frames{};
  const int count = ::backtrace(frames.data(), kMostFrames);
  ::backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  errno = before;
}

}  // namespace

void prepare_stack_log() {
  // The first call loads a library, which a signal's handler must not do.
  std::array<void*, 1> frames{};
  ::backtrace(frames.data(), 1);
  struct sigaction action{};
  action.sa_handler = write_stack;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR2, &action, nullptr);
}

void log_stack(pthread_t thread) {
  log("does not get on; the stack of its thread:");
  ::pthread_kill(thread, SIGUSR2);
}

}  // namespace mayfly
