// Rows of milliseconds: Bamboo's events `ms,add|remove,machine` and Parcae's counts `ms,count`.
#include <cmath>

#include "trace/lines.h"
#include "trace/read.h"

namespace mayfly {
namespace {

constexpr Seconds kUsualGap{60};

/// The time at the start of a row, which may not go back.
Result<Seconds> row_time(std::string_view field, Seconds before, const std::string& file, int line) {
  const auto ms = parse_number(field);
  if (!ms || *ms < 0 || *ms > kLatest * 1000)
    return fail("{}:{}: time {}, want milliseconds since the start", file, line, shown(field));
  const Seconds time(*ms / 1000);
  if (time < before)
    return fail("{}:{}: time {} ms goes back, want {} or later", file, line, field, before.count() * 1000);
  return time;
}

}  // namespace

Result<Trace> read_events(std::string_view text, const std::string& file, const TraceOptions& options) {
  Lines lines(text);
  Machines machines;
  Seconds now{0};
  while (const auto line = lines.next()) {
    const int number = lines.number();
    const auto row = fields<3>(*line);
    if (!row) return fail("{}:{}: {}, want ms,add|remove,machine", file, number, shown(*line));
    const auto& [ms, event, machine] = *row;
    const auto time = row_time(ms, now, file, number);
    if (!time) return unexpected(time.error());
    now = *time;
    if (machine.empty()) return fail("{}:{}: {} without a machine's name", file, number, shown(event));
    if (event == "add") {
      if (!machines.add(now, machine))
        return fail("{}:{}: add {}, which is there already; want a machine that is not", file, number, shown(machine));
    } else if (event == "remove") {
      if (!machines.remove(now, machine))
        return fail("{}:{}: remove {}, which is not there; want one added before", file, number, shown(machine));
    } else {
      return fail("{}:{}: event {}, want add or remove", file, number, shown(event));
    }
  }
  const Seconds gap = options.gap.value_or(kUsualGap);
  auto series = std::move(machines).take(now + gap, file);
  if (!series) return unexpected(series.error());
  return Trace{.gap = gap, .duration = now + gap, .series = {*std::move(series)}};
}

Result<Trace> read_counts(std::string_view text, const std::string& file, const TraceOptions& options) {
  Lines lines(text);
  Changes changes;
  Seconds now{0};
  while (const auto line = lines.next()) {
    const int number = lines.number();
    const auto row = fields<2>(*line);
    if (!row) return fail("{}:{}: {}, want ms,count", file, number, shown(*line));
    const auto time = row_time((*row)[0], now, file, number);
    if (!time) return unexpected(time.error());
    now = *time;
    const auto count = parse_integer((*row)[1]);
    if (!count || *count < 0 || *count > kMostMachines)
      return fail("{}:{}: count {}, want 0 to {}", file, number, shown((*row)[1]), kMostMachines);
    changes.observe(now, *count);
  }
  const Seconds gap = options.gap.value_or(kUsualGap);
  auto taken = std::move(changes).take(file);
  if (!taken) return unexpected(taken.error());
  return Trace{.gap = gap, .duration = now + gap, .series = {{.changes = *std::move(taken)}}};
}

}  // namespace mayfly
