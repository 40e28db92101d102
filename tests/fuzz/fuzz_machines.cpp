#include <cmath>

#include "engine/exec_text.h"
#include "engine/ssh_script.h"
#include "fuzz/fuzz.h"

namespace {

using mayfly::fuzz::require;

void check_listed(const std::vector<mayfly::Listed>& all) {
  for (const mayfly::Listed& one : all) {
    require(one.launch >= 0 && one.launch <= mayfly::kMostLaunches, "launches are counted from 0");
    require(!one.id.empty(), "a machine has a name");
    require(one.age.count() >= 0 && one.age <= mayfly::kMostAge, "what has passed is bounded");
    require(one.where.find('\x1b') == std::string::npos && one.ending.how.find('\x1b') == std::string::npos,
            "a terminal is not steered");
  }
}

}  // namespace

/// What a program of the user's prints, and what hosts say over ssh.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  if (const auto all = mayfly::exec_listed(text)) check_listed(*all);
  if (const auto placed = mayfly::exec_placed(text)) {
    for (const auto& [launch, one] : *placed) require(one.id.empty() != one.refused.empty(), "it is there, or refused");
  }
  for (const auto& [host, answer] : mayfly::ssh_answers(text)) {
    require(!answer.why().empty(), "there is always a reason");
    check_listed(mayfly::ssh_held(answer, {.host = "n1"}).machines);
  }
  return 0;
}
