#include "engine/machine_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"

namespace mayfly {

std::map<int, pid_t> tagged_machines(const std::string& run) {
  std::map<int, pid_t> found;
  const std::string wanted = fmt::format("{}={}-", kMachineTag, run);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = parse_integer(entry.path().filename().string());
    if (!pid || ::getpgid(static_cast<pid_t>(*pid)) != *pid) continue;
    const auto text = load_text(entry.path() / "environ");
    if (!text) continue;
    for (const std::string_view word : split(*text, '\0')) {
      if (!word.starts_with(wanted)) continue;
      if (const auto launch = parse_integer(word.substr(wanted.size())))
        found[static_cast<int>(*launch)] = static_cast<pid_t>(*pid);
    }
  }
  return found;
}

void signal_group(pid_t pid, int signal) {
  if (::kill(-pid, signal) != 0) ::kill(pid, signal);
}

void leave_files(int but) {
  ::close_range(STDERR_FILENO + 1, static_cast<unsigned>(but) - 1, 0);
  ::close_range(static_cast<unsigned>(but) + 1, ~0U, 0);
}

Seconds age_of(long long started_ticks) {
  timespec now{};
  if (started_ticks == 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return Seconds(0);
  const double started = static_cast<double>(started_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return Seconds(std::max(0.0, static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started));
}

}  // namespace mayfly
