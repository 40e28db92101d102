#pragma once

#include "cli/run_setup.h"

namespace mayfly::cli {

/// Which engine, by --engine, --engine-file and the job; first, as what machines are depends on it.
Result<void> choose_engine(const RunFlags& flags, RunSetup& setup);

/// --trace and --speed: what the trace has instead of what markets have.
Result<void> set_weather(const RunFlags& flags, RunSetup& setup);

/// Where machines come from, as --engine says. Last, as it looks at all the rest.
Result<void> set_engine(const RunFlags& flags, RunSetup& setup);

}  // namespace mayfly::cli
