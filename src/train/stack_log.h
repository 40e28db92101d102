#pragma once

#include <pthread.h>

namespace mayfly {

/// Lets log_stack() interrupt this process's threads: takes SIGUSR2.
void prepare_stack_log();
/// Writes to standard error, which is the worker's log, where that thread is. Of another thread than the caller's.
void log_stack(pthread_t thread);

}  // namespace mayfly
