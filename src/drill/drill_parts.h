#pragma once

#include <filesystem>
#include <vector>

#include "drill/drill.h"
#include "engine/process.h"
#include "wire/message.h"

namespace mayfly {

// For drill.cpp: who is taken, the word to the controller, and what the run's folder tells.

struct DrillVictim {
  int worker = -1;  ///< -1: the controller
  bool server = false;
  ProcessId process{};
};

/// From DIR/processes.json: those that have been in the run longest. An error where there are not as many.
Result<std::vector<DrillVictim>> drill_victims(const DrillRequest& request);

/// Asks the run's controller, by DIR/address and DIR/token, and waits for its answer.
Result<Drilling> ask_controller(const std::filesystem::path& directory, const Drill& word);

/// It has left its summary, and no process drives it.
bool run_is_over(const std::filesystem::path& directory);

}  // namespace mayfly
