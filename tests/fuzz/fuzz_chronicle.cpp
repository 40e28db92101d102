#include "base/text.h"
#include "fuzz/fuzz.h"
#include "report/view.h"

// A journal that anybody may have written, and the view that is made of it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mayfly::Chronicle chronicle;
  const std::string text(mayfly::fuzz::text_of(data, size));
  for (const std::string_view line : mayfly::split(text, '\n')) chronicle.add(line);
  const auto view = mayfly::view_json(chronicle, {.name = "fuzz"});
  static_cast<void>(view.dump(-1, ' ', false, mayfly::Json::error_handler_t::replace));
  return 0;
}
