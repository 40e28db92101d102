#pragma once

#include <memory>
#include <string>

#include "cli/run_setup.h"
#include "engine/provider.h"

namespace mayfly::cli {

/// Which engine, by --engine, --engine-file and the job; first, as what machines are depends on it.
Result<void> choose_engine(const RunFlags& flags, RunSetup& setup);

/// Words for the engine that was chosen, about the machines of the run of this tag; none: its machines are no
/// provider's.
Result<std::unique_ptr<Provider>> provider_of(const RunSetup& setup, const std::string& tag);

/// --trace and --speed: what the trace has instead of what markets have.
Result<void> set_weather(const RunFlags& flags, RunSetup& setup);

/// Where machines come from, as --engine says. Last, as it looks at all the rest.
Result<void> set_engine(const RunFlags& flags, RunSetup& setup);

}  // namespace mayfly::cli
