#include "cli/captured.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/text.h"
#include "cli/command.h"

namespace mayfly::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostText = 1 << 16;

/// In the new process; does not return.
[[noreturn]] void become(std::vector<std::string>& words, int output) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

/// Reads until the other end closes; false where that takes too long.
bool read_all(int input, Clock::time_point end, std::string& text) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait{.fd = input, .events = POLLIN, .revents = 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(std::min<long>(left, 1000))) : 0;
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0 && left <= 0) return false;
    if (ready <= 0) continue;
    char bytes[4096];
    const auto count = ::read(input, bytes, sizeof bytes);
    if (count <= 0) return count == 0;
    if (text.size() < kMostText) text.append(bytes, static_cast<std::size_t>(count));
  }
}

}  // namespace

Result<std::string> captured(std::vector<std::string> words, Seconds patience) {
  const std::string program = words.at(0);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return fail("pipe: {}", std::strerror(errno));
  const pid_t pid = ::fork();
  if (pid == 0) become(words, pipe[1]);
  ::close(pipe[1]);
  std::string text;
  const bool whole =
      pid > 0 && read_all(pipe[0], Clock::now() + std::chrono::duration_cast<Clock::duration>(patience), text);
  ::close(pipe[0]);
  if (pid < 0) return fail("{}: cannot start a process", program);
  if (!whole) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole) return fail("{}: no end after {}", program, format_duration(patience));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::string(trimmed(text));
  const std::string last(trimmed(text).substr(trimmed(text).rfind('\n') + 1));
  return fail("{}: {}", program, last.empty() ? fmt::format("status {}", status) : last);
}

std::string found_in_path(const std::string& program) {
  const std::string path = environment("PATH");
  for (const std::string_view folder : split(path, ':')) {
    std::string file = fmt::format("{}/{}", folder, program);
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

}  // namespace mayfly::cli
