#include "cloud/import.h"
#include "fuzz/catalogs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = mayfly::fuzz::text_of(data, size);
  const auto& known = mayfly::fuzz::known_catalog();
  const auto imported = mayfly::import_spot_history(json, mayfly::fuzz::kFile, known);
  if (!imported) {
    mayfly::fuzz::check_message(imported.error());
    return 0;
  }
  mayfly::fuzz::require(imported->catalog.type_names() == known.type_names(), "a history neither adds nor drops types");
  for (const auto& note : imported->notes) mayfly::fuzz::require(!note.empty(), "a note says something");
  mayfly::fuzz::check_catalog(imported->catalog);
  return 0;
}
