#include "fuzz/catalogs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto catalog = mayfly::parse_catalog(mayfly::fuzz::text_of(data, size), mayfly::fuzz::kFile);
  if (catalog) {
    mayfly::fuzz::check_catalog(*catalog);
  } else {
    mayfly::fuzz::check_message(catalog.error());
  }
  return 0;
}
