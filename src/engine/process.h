#pragma once

#include <sys/types.h>

#include <string>

namespace mayfly {

/// A process of this machine, told from a later one with the same number by when it started.
struct ProcessId {
  pid_t pid = 0;          ///< 0: none
  long long started = 0;  ///< ticks since the machine was started
  bool operator==(const ProcessId&) const = default;
};

/// Field 22 of /proc/PID/stat; 0 where there is no such process, or only its remains.
long long start_ticks(pid_t pid);

ProcessId process_numbered(pid_t pid);
bool alive(const ProcessId& process);
/// Stopped by a signal (SIGSTOP), until another lets it go on.
bool frozen(const ProcessId& process);
/// Sends it only to this very process; false where that is gone.
bool send_signal(const ProcessId& process, int signal);

/// Another one each time the machine is started; start times compare only within one.
std::string boot_id();
std::string host_name();

}  // namespace mayfly
