#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mayfly {

/// A process of a machine of this computer.
struct Tagged {
  int launch = 0;
  pid_t pid = 0;
  bool machine = false;  ///< the machine itself; otherwise what that has started, in whatever group or session
};

/// In the new process of a machine, before it becomes the machine's program.
void tag_this_process(const std::string& run, int launch);
/// Every process of a run. What a machine starts has its environment too, unless it takes it off.
std::vector<Tagged> tagged(const std::string& run);

/// Also to what it has started, as far as that is in its process group.
void signal_group(pid_t pid, int signal);

}  // namespace mayfly
