#include <cmath>

#include "fuzz/fuzz.h"
#include "notice/answer.h"
#include "notice/cloud.h"

namespace {

using mayfly::fuzz::require;

void check(const mayfly::Result<std::optional<mayfly::PreemptionNotice>>& notice) {
  if (!notice) return require(!notice.error().message.empty(), "an error has a message");
  if (!*notice) return;
  require(!(*notice)->source.empty() && !(*notice)->reason.empty(), "a notice says from whom and why");
  if (!(*notice)->left) return;
  require((*notice)->left->count() >= 0 && (*notice)->left->count() <= 900, "what is left is bounded");
}

}  // namespace

/// The first byte is the status, the rest a body that any of the services might send.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto text = mayfly::fuzz::text_of(data + 1, size - 1);
  const mayfly::Answer answer{.status = data[0] % 4 == 0 ? 404 : 200, .body = std::string(text)};
  for (const double now : {0.0, 1474309757.0, 1e12}) {
    check(mayfly::aws_instance_action(answer, now));
    check(mayfly::azure_events(answer, now, "vm1"));
  }
  check(mayfly::aws_rebalance(answer));
  check(mayfly::gcp_preempted(answer));
  if (const auto date = mayfly::parse_http_date(text))
    require(mayfly::parse_http_date(mayfly::format_http_date(*date)) == std::floor(*date), "a date comes back");
  if (const auto url = mayfly::endpoint_url(answer.body))
    require(mayfly::endpoint_url(*url) == *url, "an address in order stays as it is");
  return 0;
}
