#include "fuzz/traces.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mayfly::fuzz::try_trace(mayfly::fuzz::text_of(data, size), {"", "journal"});
  return 0;
}
