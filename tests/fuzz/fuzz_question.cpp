#include "fuzz/fuzz.h"
#include "web/answers.h"

// Questions to the dashboard. The catalogue is the small one, so that an answer takes milliseconds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static mayfly::Answers answers({.profiles = {{"p", MAYFLY_SOURCE_DIR "/data/profiles/cynthia-example.json"}},
                                  .catalogs = {{"default", MAYFLY_SOURCE_DIR "/data/catalogs/spotdnn.yaml"}},
                                  .traces = {}});
  const std::string text(mayfly::fuzz::text_of(data, size));
  static_cast<void>(answers.plan(text));
  static_cast<void>(answers.replay(text));
  return 0;
}
