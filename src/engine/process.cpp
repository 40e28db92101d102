#include "engine/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/text.h"

namespace mayfly {
namespace {

/// Empty where it cannot be read: a process may end between two looks.
std::string content(const std::string& path) { return load_text(path).value_or(""); }

/// What /proc/PID/stat says of it: state and start.
struct Look {
  char state = 'X';
  long long started = 0;  ///< 0: there is no such process
};
Look look_at(pid_t pid) {
  const std::string text = content(fmt::format("/proc/{}/stat", pid));
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  const auto fields = split(std::string_view(text).substr(name_end + 2), ' ');
  constexpr std::size_t kStart = 22 - 3;
  if (fields.size() <= kStart || fields[0].empty()) return {};
  return {.state = fields[0][0], .started = std::atoll(std::string(fields[kStart]).c_str())};
}

}  // namespace

long long start_ticks(pid_t pid) {
  const Look look = look_at(pid);
  return look.state == 'Z' ? 0 : look.started;
}

ProcessId process_numbered(pid_t pid) { return {pid, start_ticks(pid)}; }

bool alive(const ProcessId& process) {
  return process.pid > 0 && process.started != 0 && start_ticks(process.pid) == process.started;
}

bool frozen(const ProcessId& process) {
  const Look look = look_at(process.pid);
  return process.started != 0 && look.started == process.started && (look.state == 'T' || look.state == 't');
}

bool send_signal(const ProcessId& process, int signal) {
  if (process.pid <= 0) return false;
  // The descriptor stays with this process: its number cannot become another's between the question and the signal.
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  if (descriptor < 0) return false;
  const bool sent = alive(process) && ::syscall(SYS_pidfd_send_signal, descriptor, signal, nullptr, 0) == 0;
  ::close(descriptor);
  return sent;
}

std::string boot_id() { return std::string(trimmed(content("/proc/sys/kernel/random/boot_id"))); }

std::string host_name() {
  char text[256] = {};
  return ::gethostname(text, sizeof text - 1) == 0 ? text : "";
}

}  // namespace mayfly
