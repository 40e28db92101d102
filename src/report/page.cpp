#include "report/page.h"

#include "base/check.h"

namespace mayfly {

// Written by the build from web/ (cmake/embed.cmake).
extern const unsigned char kPage[];
extern const std::size_t kPageSize;

std::string_view page() { return {reinterpret_cast<const char*>(kPage), kPageSize}; }

std::string report_html(const Json& document) {
  constexpr std::string_view kPlace = R"(<script id="mayfly-document" type="application/json">null</script>)";
  constexpr std::string_view kEmpty = "null</script>";
  const std::size_t place = page().find(kPlace);
  MAYFLY_CHECK(place != std::string_view::npos, "the page has no place for a document");
  const std::size_t begin = place + kPlace.size() - kEmpty.size();
  // Text of a job or a journal must not end the element it stands in.
  std::string text;
  for (const char c : document.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return std::string(page().substr(0, begin)) + text + std::string(page().substr(begin + 4));
}

}  // namespace mayfly
