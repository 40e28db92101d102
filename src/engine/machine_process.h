#pragma once

#include "base/units.h"

// Machines that are processes of this computer.
namespace mayfly {

/// Closes all files but one and the standard three. Of a process that is about to become another program: locks that
/// its parent holds must not outlive the parent here, should that be killed before exec closes them.
void leave_files(int but);

/// From start_ticks().
Seconds age_of(long long started_ticks);

}  // namespace mayfly
