#include <array>

#include "plan/planner.h"

namespace mayfly {

std::string_view name(SearchMethod method) {
  return method == SearchMethod::exact ? "exact" : method == SearchMethod::window ? "window" : "exhaustive";
}

Result<SearchMethod> parse_search(std::string_view text) {
  for (const auto method : {SearchMethod::exact, SearchMethod::window, SearchMethod::exhaustive}) {
    if (text == name(method)) return method;
  }
  return fail("search '{}': want exact, window or exhaustive", text);
}

std::string_view name(Meeting meeting) {
  constexpr std::array<std::string_view, 4> kNames{"none", "ring", "servers", "pipeline"};
  return kNames[static_cast<std::size_t>(meeting)];
}

Result<Meeting> parse_meeting(std::string_view text) {
  for (const auto meeting : {Meeting::none, Meeting::ring, Meeting::servers, Meeting::pipeline}) {
    if (text == name(meeting)) return meeting;
  }
  return fail("exchange '{}': want none, ring, servers or pipeline", text);
}

}  // namespace mayfly
