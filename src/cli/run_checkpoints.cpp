#include "cli/run_checkpoints.h"

#include <cstdlib>
#include <filesystem>

#include "job/store_url.h"

namespace mayfly::cli {

Surroundings surroundings() {
  return {.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }};
}

Result<void> set_checkpoints(const RunFlags& flags, RunInputs& inputs) {
  inputs.around = surroundings();
  std::string& place = inputs.spec.train->checkpoint.directory;
  if (!flags.checkpoints.empty()) place = flags.checkpoints;
  if (!is_store_url(place)) {
    std::error_code error;
    if (!flags.checkpoints.empty()) place = std::filesystem::absolute(place, error).string();
    return {};
  }
  const auto url = parse_store_url(place);
  if (!url) return fail("--checkpoints {}", url.error().message);
  place = url->text();
  // Its workers are Python's, which write files.
  if (inputs.spec.train->model.is_script())
    return fail("{}: the workers of a script save into folders only: want a folder that all machines see", place);
  return {};
}

}  // namespace mayfly::cli
