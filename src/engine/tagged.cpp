#include "engine/tagged.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "engine/engine.h"

namespace mayfly {

namespace {

constexpr const char* kMachine = "MAYFLY_MACHINE";
/// Its own number: what it starts has inherited another's.
constexpr const char* kMachinePid = "MAYFLY_MACHINE_PID";

}  // namespace

void tag_this_process(const std::string& run, int launch) {
  ::setenv(kMachine, machine_name(run, launch).c_str(), 1);
  ::setenv(kMachinePid, std::to_string(::getpid()).c_str(), 1);
}

std::vector<Tagged> tagged(const std::string& run) {
  std::vector<Tagged> found;
  const std::string wanted = fmt::format("{}={}-", kMachine, run);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = parse_integer(entry.path().filename().string());
    const auto text = pid ? load_text(entry.path() / "environ") : std::string();
    if (!text || text->empty()) continue;
    const auto words = split(*text, '\0');
    const bool machine = std::ranges::find(words, fmt::format("{}={}", kMachinePid, *pid)) != words.end();
    for (const std::string_view word : words) {
      if (!word.starts_with(wanted)) continue;
      if (const auto launch = parse_integer(word.substr(wanted.size())))
        found.push_back({.launch = *launch, .pid = *pid, .machine = machine});
    }
  }
  return found;
}

void signal_group(pid_t pid, int signal) {
  if (::kill(-pid, signal) != 0) ::kill(pid, signal);
}

}  // namespace mayfly
