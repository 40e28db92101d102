#include <cmath>

#include "cli/what_if.h"
#include "fuzz/fuzz.h"

// `profile --what-if`, and what is then computed of it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mayfly::fuzz::require;
  static const mayfly::DataPath path{
      .device = 1000, .prep = 100, .threads = 2, .cores = 4, .sample = {1e5}, .storage = {2e8}};
  const auto changed = mayfly::cli::parse_what_if(mayfly::fuzz::text_of(data, size), path);
  if (!changed) {
    require(!changed.error().message.empty(), "an error has a message");
    return 0;
  }
  require(!changed->text.empty(), "a change has words");
  const auto speed = mayfly::data_speed(changed->path);
  require(!std::isnan(speed.speed) && speed.speed >= 0, "a speed is a speed");
  require(speed.speed <= speed.device && speed.speed <= speed.fetch, "no stage is slower than all together");
  static_cast<void>(mayfly::enough_cache(changed->path));
  static_cast<void>(mayfly::enough_threads(changed->path));
  return 0;
}
