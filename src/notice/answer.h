#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

/// This machine will be taken away, or might be.
struct PreemptionNotice {
  std::string source{};           ///< "aws", "gcp", "azure", "sigterm"
  std::string reason{};           ///< in the cloud's words: "terminate", "preempted", "Preempt"
  std::optional<Seconds> left{};  ///< until it is taken; none: only at risk, no end is set
  bool operator==(const PreemptionNotice&) const = default;
};

/// What a metadata service answered.
struct Answer {
  int status = 0;
  std::string body{};
};

// What the answers mean: a notice, none so far, or an error: no answer that the service is documented to give. Pure;
// `unix_now` is the wall clock, because the clouds say when, not how soon. A clock that is wrong must not turn two
// minutes into an hour: what is left is never more than the service's longest window.

/// spot/instance-action: {"action":"terminate","time":"2020-01-07T01:03:47Z"}; 404: none. At most two minutes.
Result<std::optional<PreemptionNotice>> aws_instance_action(const Answer& answer, double unix_now);
/// events/recommendations/rebalance: {"noticeTime":"2020-10-16T19:18:24Z"}; 404: none. A risk, not an end.
Result<std::optional<PreemptionNotice>> aws_rebalance(const Answer& answer);
/// instance/preempted: TRUE or FALSE. 30 seconds from when it becomes TRUE.
Result<std::optional<PreemptionNotice>> gcp_preempted(const Answer& answer);
/// scheduledevents: the earliest Preempt or Terminate that names `machine`; others' events, reboots and maintenance are
/// none. An event that has started leaves nothing.
Result<std::optional<PreemptionNotice>> azure_events(const Answer& answer, double unix_now, std::string_view machine);

/// "Mon, 19 Sep 2016 18:29:47 GMT" in seconds since 1970; nothing for any other text.
std::optional<double> parse_http_date(std::string_view text);
/// The same form.
std::string format_http_date(double unix_seconds);

}  // namespace mayfly
