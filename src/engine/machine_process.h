#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include "base/units.h"

// Machines that are processes of this computer.
namespace mayfly {

/// In the environment of a machine and of what it has started: RUN-LAUNCH.
inline constexpr const char* kMachineTag = "MAYFLY_MACHINE";

/// Launch and process of every machine with this tag. Children of a machine have its environment too, but only the
/// machine leads a process group.
std::map<int, pid_t> tagged_machines(const std::string& run);

/// A machine is a process and what it has started.
void signal_group(pid_t pid, int signal);

/// Closes all files but one and the standard three. Of a process that is about to become another program: locks that
/// its parent holds must not outlive the parent here, should that be killed before exec closes them.
void leave_files(int but);

/// From start_ticks().
Seconds age_of(long long started_ticks);

}  // namespace mayfly
