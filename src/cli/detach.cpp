#include "cli/detach.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "cli/command.h"
#include "status/status.h"

namespace mayfly::cli {
namespace {

constexpr std::chrono::milliseconds kStartLook{50};

[[noreturn]] void live_alone(int log, const std::function<int()>& work) {
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  const int code = work();
  std::fflush(stdout);
  std::fflush(stderr);
  ::_exit(code);
}

/// What was written to the log from here on.
void repeat(const std::filesystem::path& path, std::streamoff from) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(from);
  std::string line;
  while (std::getline(file, line)) fmt::print(stderr, "{}\n", line);
}

bool stands(const DetachOptions& options, const ProcessId& front) {
  const auto status = load_status(options.directory);
  if (!status || status->front != front) return false;  // of an earlier process
  return status->phase == "training" || status->phase == "saving" || (options.waits && status->phase == "waiting");
}

}  // namespace

Detached detach(const DetachOptions& options, const std::function<int()>& work) {
  const auto path = options.directory / "run.log";
  auto file = open_own_file(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (!file) {
    fmt::print(stderr, "mayfly: {}\n", file.error().message);
    return {.code = kFailed};
  }
  const int log = file->release();
  const off_t from = ::lseek(log, 0, SEEK_END);
  std::fflush(stdout);
  std::fflush(stderr);
  const pid_t pid = ::fork();
  if (pid == 0) live_alone(log, work);
  ::close(log);
  if (pid < 0) {
    fmt::print(stderr, "mayfly: cannot start a process: {}\n", std::strerror(errno));
    return {.code = kFailed};
  }
  const ProcessId front = process_numbered(pid);
  while (true) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) {
      repeat(path, from);
      return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : kFailed, .pid = pid};
    }
    if (stands(options, front)) return {.stands = true, .pid = pid};
    std::this_thread::sleep_for(kStartLook);
  }
}

}  // namespace mayfly::cli
