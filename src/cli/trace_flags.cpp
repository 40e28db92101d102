#include "cli/trace_flags.h"

#include "base/text.h"
#include "cli/command.h"

namespace mayfly::cli {

void TraceFlags::add_to(CLI::App& verb) {
  const auto names = trace_formats();
  verb.add_option("--format", format, "the trace's format (default: recognised from its contents)")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())));
  verb.add_option("--polarity", polarity, "what 1 means in a JSON trace that does not say: available or preempted")
      ->check(CLI::IsMember({"available", "preempted"}));
  verb.add_option("--gap", gap, "time between observations, where the trace does not say: 60s");
  verb.add_option("--type", type, "instance type the trace is of; of several, the one to take");
  verb.add_option("--zone", zone, "zone the trace is of; of several, the one to take");
  verb.add_option("--observation", observation, "held: machines somebody kept; probe: what a request would have got")
      ->check(CLI::IsMember({"held", "probe"}));
}

Result<Trace> TraceFlags::load(const std::string& given) const {
  TraceOptions options{.format = format, .type = type, .zone = zone};
  if (!polarity.empty()) options.preempted = polarity == "preempted";
  if (!observation.empty()) options.observation = observation == "held" ? Observation::held : Observation::probe;
  if (!gap.empty()) {
    const auto length = parse_duration(gap);
    if (!length) return fail("--gap: {}", length.error().message);
    constexpr double kLongest = 1e9;
    if (length->count() <= 0 || length->count() > kLongest) return fail("--gap '{}': want a time above 0", gap);
    options.gap = *length;
  }
  return load_trace(find_trace(given), options);
}

}  // namespace mayfly::cli
