#include "engine/tagged.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "engine/engine.h"

namespace mayfly {

namespace {

constexpr const char* kMachine = "MAYFLY_MACHINE";
/// Its own number: what it starts has inherited another's.
constexpr const char* kMachinePid = "MAYFLY_MACHINE_PID";

/// Empty for who has none, or is not ours to look at. In the middle of an exec a process shows none for a moment.
std::string environment_of(const std::filesystem::path& process) {
  constexpr int kLooks = 10;
  std::error_code error;
  for (int look = 0; look < kLooks; ++look) {
    const auto text = load_text(process / "environ");
    if (!text || !text->empty()) return text.value_or("");
    // The kernel's own have no program, nor have the dead.
    if (std::filesystem::read_symlink(process / "exe", error).empty()) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "";
}

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
    const std::string text = pid ? environment_of(entry.path()) : "";
    if (text.empty()) continue;
    const auto words = split(text, '\0');
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
