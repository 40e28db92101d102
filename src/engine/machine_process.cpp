#include "engine/machine_process.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace mayfly {

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
