#include "cloud/import.h"
#include "fuzz/catalogs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto csv = mayfly::fuzz::text_of(data, size);
  for (const char* cloud : {"aws", "gcp", "azure", "primeintellect", "runpod", "shadeform", "vast"}) {
    const auto imported = mayfly::import_skypilot(csv, mayfly::fuzz::kFile, mayfly::fuzz::known_catalog(),
                                                  {.name = "fuzzed", .date = "2025-06-01", .cloud = cloud});
    if (!imported) {
      mayfly::fuzz::check_message(imported.error());
      continue;
    }
    mayfly::fuzz::require(!imported->catalog.types.empty(), "an import has types");
    for (const auto& note : imported->notes) mayfly::fuzz::require(!note.empty(), "a note says something");
    mayfly::fuzz::check_catalog(imported->catalog);
  }
  return 0;
}
