#include "notice/answer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace mayfly {
namespace {

constexpr Seconds kAwsWindow{120};
constexpr Seconds kGcpWindow{30};
constexpr Seconds kAzureWindow{900};  ///< the longest that can be set for Terminate
constexpr std::array kDays = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};  ///< from 1970-01-01 on
constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::string shown(std::string_view body) {
  std::string text;
  for (const char c : body.substr(0, 60)) text += c >= ' ' && c < 127 ? c : '?';
  return body.size() > 60 ? text + "..." : text;
}

tl::unexpected<Error> unknown(std::string_view what, const Answer& answer) {
  return fail("{}: status {} with '{}'", what, answer.status, shown(answer.body));
}

Seconds left_until(double deadline, double unix_now, Seconds most) {
  return std::clamp(Seconds(deadline - unix_now), Seconds(0), most);
}

/// The text under a key; nothing where there is none.
std::optional<std::string> text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

/// No answer is deeper than a list of events with a list of names; what is deeper is cut off.
Json parsed(const std::string& body) {
  const auto shallow = [](int depth, Json::parse_event_t, const Json&) { return depth <= 5; };
  return Json::parse(body, shallow, false);
}

bool names(const Json& event, std::string_view machine) {
  const auto found = event.find("Resources");
  if (found == event.end() || !found->is_array()) return false;
  return std::any_of(found->begin(), found->end(),
                     [&](const Json& one) { return one.is_string() && one.get_ref<const std::string&>() == machine; });
}

/// Of one event; nothing where it takes no machine, or another one.
Result<std::optional<PreemptionNotice>> azure_event(const Json& event, double unix_now, std::string_view machine) {
  if (!event.is_object())
    return fail("scheduled events: an event is '{}', want an object",
                shown(event.dump(-1, ' ', true, Json::error_handler_t::replace)));
  const auto type = text_at(event, "EventType");
  if ((type != "Preempt" && type != "Terminate") || !names(event, machine)) return std::nullopt;
  const auto status = text_at(event, "EventStatus");
  if (status == "Completed" || status == "Canceled") return std::nullopt;
  PreemptionNotice notice{.source = "azure", .reason = *type, .left = Seconds(0)};
  const std::string when = text_at(event, "NotBefore").value_or("");
  if (when.empty() || status == "Started") return notice;
  const auto deadline = parse_http_date(when);
  if (!deadline)
    return fail("scheduled events: NotBefore '{}', want a date such as Mon, 19 Sep 2016 18:29:47 GMT", shown(when));
  notice.left = left_until(*deadline, unix_now, kAzureWindow);
  return notice;
}

}  // namespace

std::optional<double> parse_http_date(std::string_view text) {
  const auto words = split(text, ' ');
  if (words.size() != 6 || words[0].size() != 4 || words[0][3] != ',' || words[1].size() != 2 || words[3].size() != 4 ||
      words[5] != "GMT")
    return std::nullopt;
  const auto month = std::find(kMonths.begin(), kMonths.end(), words[2]);
  if (month == kMonths.end()) return std::nullopt;
  return parse_time(fmt::format("{}-{:02}-{}T{}Z", words[3], month - kMonths.begin() + 1, words[1], words[4]));
}

std::string format_http_date(double unix_seconds) {
  const std::string text = format_time(unix_seconds);  // 2016-09-19T18:29:47Z
  const auto day = static_cast<std::size_t>(std::floor(unix_seconds / 86400)) % kDays.size();
  const auto month = static_cast<std::size_t>(parse_integer(text.substr(5, 2)).value_or(1) - 1);
  return fmt::format("{}, {} {} {} {} GMT", kDays[day], text.substr(8, 2), kMonths[month], text.substr(0, 4),
                     text.substr(11, 8));
}

Result<std::optional<PreemptionNotice>> aws_instance_action(const Answer& answer, double unix_now) {
  if (answer.status == 404) return std::nullopt;
  const Json json = answer.status == 200 ? parsed(answer.body) : Json();
  if (!json.is_object()) return unknown("spot/instance-action", answer);
  const auto action = text_at(json, "action"), time = text_at(json, "time");
  const auto deadline = time ? parse_time(*time) : std::nullopt;
  if (!action || !deadline) return unknown("spot/instance-action", answer);
  if (*action != "terminate" && *action != "stop" && *action != "hibernate")
    return unknown("spot/instance-action", answer);
  return PreemptionNotice{.source = "aws", .reason = *action, .left = left_until(*deadline, unix_now, kAwsWindow)};
}

Result<std::optional<PreemptionNotice>> aws_rebalance(const Answer& answer) {
  if (answer.status == 404) return std::nullopt;
  const Json json = answer.status == 200 ? parsed(answer.body) : Json();
  if (!json.is_object() || !text_at(json, "noticeTime")) return unknown("events/recommendations/rebalance", answer);
  return PreemptionNotice{.source = "aws", .reason = "rebalance recommendation"};
}

Result<std::optional<PreemptionNotice>> gcp_preempted(const Answer& answer) {
  const auto word = trimmed(answer.body);
  if (answer.status != 200 || (word != "TRUE" && word != "FALSE")) return unknown("instance/preempted", answer);
  if (word == "FALSE") return std::nullopt;
  return PreemptionNotice{.source = "gcp", .reason = "preempted", .left = kGcpWindow};
}

Result<std::optional<PreemptionNotice>> azure_events(const Answer& answer, double unix_now, std::string_view machine) {
  const Json json = answer.status == 200 ? parsed(answer.body) : Json();
  if (!json.is_object() || !json.contains("Events") || !json["Events"].is_array())
    return unknown("scheduled events", answer);
  std::optional<PreemptionNotice> first;
  for (const Json& event : json["Events"]) {
    auto notice = azure_event(event, unix_now, machine);
    if (!notice) return notice;
    if (*notice && (!first || *(*notice)->left < *first->left)) first = **std::move(notice);
  }
  return first;
}

}  // namespace mayfly
