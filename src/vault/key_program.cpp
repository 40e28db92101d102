#include "vault/key_program.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "vault/aws_files.h"

extern char** environ;

namespace mayfly {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr std::size_t kMostOutput = 1 << 16;

/// Its output goes to `out`; nothing that this thread holds back is held back there.
Result<pid_t> spawned(std::vector<std::string> words, int out) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail("{}: {}", printable(words[0]), std::strerror(error));
  return pid;
}

/// All that it says until it closes its output; nothing: it says too much or takes too long.
std::optional<std::string> heard(int from) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string output;
  std::array<char, 4096> buffer;
  while (output.size() <= kMostOutput) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd awaited{.fd = from, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&awaited, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    const auto count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return output;
    output.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> key_program_output(const std::string& line) {
  auto words = command_words(line);
  if (!words) return unexpected(words.error());
  if (words->empty()) return fail("no command");
  const std::string name = printable(words->front());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail("{}: {}", name, std::strerror(errno));
  const OpenFile from(ends[0]);
  OpenFile to(ends[1]);
  const auto pid = spawned(*std::move(words), to.descriptor());
  ::close(to.release());
  if (!pid) return unexpected(pid.error());
  auto output = heard(from.descriptor());
  if (!output) ::kill(*pid, SIGKILL);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(*pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (!output) return fail("{}: want at most {} bytes within {} s", name, kMostOutput, kPatience.count());
  // Where this process looks after all its children, another thread may have heard of the end first.
  if (ended == *pid && status != 0)
    return fail("{}: ended with {} {}", name, WIFEXITED(status) ? "code" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  return *std::move(output);
}

}  // namespace mayfly
