#pragma once

#include "cli/run_setup.h"

namespace mayfly::cli {

/// The environment of this process, for object stores.
Surroundings surroundings();

/// --checkpoints over the job's own word. A folder counts from where the command was given.
Result<void> set_checkpoints(const RunFlags& flags, RunInputs& inputs);

}  // namespace mayfly::cli
