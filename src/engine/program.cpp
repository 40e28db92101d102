#include "engine/program.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"

extern char** environ;

namespace mayfly {
namespace {

constexpr int kNotStarted = 127;
constexpr int kKillTime_ms = 100;

OpenFile memory_file(const char* name) { return OpenFile(::memfd_create(name, MFD_CLOEXEC)); }

std::string content_of(const OpenFile& file) {
  if (file.descriptor() < 0 || ::lseek(file.descriptor(), 0, SEEK_SET) != 0) return {};
  return load_text(file, "output of a program").value_or("");
}

int shell_code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/// Signals as a program finds them that a shell starts; a group of its own, so that Ctrl-C is not for it.
struct SpawnSettings {
  SpawnSettings(int input, int output, int error) {
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_init(&files);
    sigset_t none, usual;
    ::sigemptyset(&none);
    ::sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::sigaddset(&usual, signal);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, error, STDERR_FILENO);
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_t files{};
};

}  // namespace

std::string ProgramEnd::why() const {
  if (late) return "no answer in time";
  const std::string_view text = trimmed(trimmed(error).empty() ? output : error);
  const auto last = text.rfind('\n');
  const std::string_view line = trimmed(last == std::string_view::npos ? text : text.substr(last));
  return line.empty() ? fmt::format("exit code {}", code) : printable(std::string(line.substr(0, 300)));
}

Program::Program(Loop& loop, std::vector<std::string> words, const std::string& input, Seconds patience,
                 std::function<void(const ProgramEnd&)> then)
    : loop_(loop),
      then_(std::move(then)),
      output_(memory_file("output")),
      error_(memory_file("error")),
      patience_(loop) {
  patience_.start(patience, [this] { expire(); });
  start(std::move(words), input);
}

Program::~Program() = default;

void Program::start(std::vector<std::string> words, const std::string& input) {
  const OpenFile text = memory_file("input");
  const bool written = ::write(text.descriptor(), input.data(), input.size()) == static_cast<ssize_t>(input.size());
  ::lseek(text.descriptor(), 0, SEEK_SET);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const SpawnSettings settings(text.descriptor(), output_.descriptor(), error_.descriptor());
  const int error =
      written ? ::posix_spawnp(&pid_, arguments[0], &settings.files, &settings.attributes, arguments.data(), environ)
              : ENOMEM;
  const int descriptor = error == 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)) : -1;
  if (error == 0 && descriptor >= 0) {
    watch_ = std::make_unique<DescriptorWatch>(loop_, descriptor, [this] { wait(Seconds(0)); });
    return;
  }
  if (error == 0) return;  // without a descriptor to spare the end is seen when its time is over
  const std::string why = fmt::format("{} cannot be started: {}", words[0], std::strerror(error));
  [[maybe_unused]] const auto said = ::write(error_.descriptor(), why.data(), why.size());
  pid_ = 0;
  // Never from within the constructor.
  loop_.post([this, here = std::weak_ptr(here_)] {
    if (!here.expired()) end(false, kNotStarted);
  });
}

void Program::wait(Seconds patience) {
  if (pid_ == 0) return then_ ? end(false, kNotStarted) : void();
  const OpenFile watched(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended{.fd = watched.descriptor(), .events = POLLIN, .revents = 0};
  // Signals do not shorten it: what was asked for at the end must be done.
  sigset_t all;
  ::sigfillset(&all);
  const auto whole = static_cast<time_t>(patience.count());
  const timespec limit{.tv_sec = whole,
                       .tv_nsec = static_cast<long>(1e9 * (patience.count() - static_cast<double>(whole)))};
  if (patience > Seconds(0)) ::ppoll(&ended, 1, &limit, &all);
  int status = 0;
  const pid_t found = ::waitpid(pid_, &status, WNOHANG);
  if (found == 0) return patience > Seconds(0) ? expire() : void();
  end(false, found == pid_ ? shell_code(status) : kNotStarted);
}

void Program::expire() {
  int status = 0;
  if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) return end(false, shell_code(status));
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    // One that hangs in the kernel, as on a file system that is away, is not waited for.
    const OpenFile killed(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd ended{.fd = killed.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, kKillTime_ms);
    ::waitpid(pid_, &status, WNOHANG);
  }
  end(true, 128 + SIGKILL);
}

void Program::end(bool late, int code) {
  patience_.cancel();
  watch_.reset();
  const ProgramEnd end{.late = late, .code = code, .output = content_of(output_), .error = content_of(error_)};
  const auto then = std::exchange(then_, nullptr);
  if (then) then(end);
}

}  // namespace mayfly
