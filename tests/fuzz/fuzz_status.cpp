#include "base/text.h"
#include "control/event.h"
#include "fuzz/fuzz.h"
#include "status/status.h"
#include "status/story.h"

namespace {

using mayfly::fuzz::require;

std::string text(const mayfly::Json& json) { return json.dump(-1, ' ', false, mayfly::Json::error_handler_t::replace); }

/// As `status`, `logs` and a controller that starts anew read a journal.
void check_line(std::string_view line) {
  const auto told = mayfly::story_line(line);
  require(!told || !told->empty(), "a line that is told says something");
  static_cast<void>(mayfly::remark_in(line));
  const auto event = mayfly::event_in(line);
  if (!event) return;
  const auto written = mayfly::journal_line(event->time, event->event);
  const auto again = mayfly::event_in(written);
  require(again && mayfly::journal_line(again->time, again->event) == written, "an event comes back as it was written");
}

}  // namespace

/// status.json of a run that anybody may have written, or a journal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = mayfly::fuzz::text_of(data, size);
  for (const auto line : mayfly::split(input, '\n')) check_line(line);
  const auto status = mayfly::parse_status(input, mayfly::fuzz::kFile);
  if (!status) {
    mayfly::fuzz::check_message(status.error());
    return 0;
  }
  const auto written = text(mayfly::status_json(*status));
  const auto again = mayfly::parse_status(written, mayfly::fuzz::kFile);
  require(again.has_value() && text(mayfly::status_json(*again)) == written, "a written status reads the same");
  return 0;
}
