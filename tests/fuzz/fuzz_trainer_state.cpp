#include "data/trainer_state.h"
#include "fuzz/fuzz.h"

namespace {

using mayfly::fuzz::require;

/// A seal that fits would take the fuzzer for ever to find: whatever stands before it gets the right one.
std::string sealed(std::string_view text) {
  constexpr std::string_view kSeal = "\"xxh3\": \"";
  const auto covered = text.substr(0, text.rfind(kSeal));
  return fmt::format("{}{}{:016x}\"\n}}\n", covered, kSeal, mayfly::xxh3_of(covered));
}

void check(std::string_view text) {
  const auto content = mayfly::parse_state(text, mayfly::fuzz::kFile);
  if (!content) return mayfly::fuzz::check_message(content.error());
  const auto& state = content->state;
  require(state.sample >= 0 && state.step >= 0, "a state is at a sample and a step");
  require(mayfly::Ledger::restored(state.ledger).has_value(), "a ledger that was read can be gone on with");
  const auto written = mayfly::state_text(*content);
  const auto again = mayfly::parse_state(written, mayfly::fuzz::kFile);
  if (!again) std::fprintf(stderr, "%s\n%s\n", written.c_str(), again.error().message.c_str());
  require(again.has_value(), "a written state can be read");
  require(again->files == content->files && again->state.ledger == state.ledger, "a written state reads the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  check(text);
  check(sealed(text));
  return 0;
}
