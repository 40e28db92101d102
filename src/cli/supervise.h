#pragma once

#include <sys/types.h>

#include <functional>
#include <initializer_list>

namespace mayfly::cli {

/// Runs `work` in a process of its own and returns its exit code. Should a signal kill that process, it is started
/// anew: what it does must be such that it can go on. SIGINT and SIGTERM are passed on; the last of them also to a
/// process that is started later. `work` begins with both blocked and must let them through when it is ready to hear
/// them, as SignalWatch does. Should this process be killed, the other gets SIGTERM. Workers whose controller died
/// become this process's children, so none is left behind as a zombie. Afterwards both signals stay
/// blocked.
int supervise(const std::function<int(bool again)>& work, const std::function<void(int signal)>& died);

/// From now on these signals, and those of earlier calls, go to that process; 0: to none.
void pass_on_to(pid_t pid, std::initializer_list<int> signals);

}  // namespace mayfly::cli
