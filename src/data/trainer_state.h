#pragma once

#include <map>
#include <string>

#include "data/checkpoint.h"
#include "data/new_file.h"

namespace mayfly {

/// trainer_state.json: the state and the seals of the files beside it, by name. Format: docs/formats.md#checkpoint
struct StateFile {
  TrainerState state{};
  std::map<std::string, FileSeal> files{};
};

std::string state_text(const StateFile& content);
/// Checks the seal of the text itself first. Unknown keys and a newer format are errors; an older one is read.
Result<StateFile> parse_state(std::string_view text, const std::string& file);

}  // namespace mayfly
