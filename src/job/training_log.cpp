#include "job/training_log.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace mayfly {
namespace {

/// Cells of a CSV line; quoted ones may hold commas.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  for (std::string& cell : cells) cell = std::string(trimmed(cell));
  return cells;
}

/// wandb names a column "run - loss".
std::optional<LogKey> column_key(std::string_view name) {
  const auto dash = name.rfind(" - ");
  return log_key(dash == std::string_view::npos ? name : name.substr(dash + 3));
}

bool is_heading(std::string_view line) {
  if (line.find(',') == std::string_view::npos || line.find(':') != std::string_view::npos) return false;
  bool step = false;
  bool other = false;
  for (const std::string& cell : cells_of(line)) {
    const auto key = column_key(cell);
    step = step || key == LogKey::step || key == LogKey::epoch;
    other = other || (key && key != LogKey::step);
  }
  return step && other;
}

Result<LogPoint> read_row(const std::vector<std::optional<LogKey>>& columns, std::string_view line,
                          const std::string& where) {
  const auto cells = cells_of(line);
  if (cells.size() != columns.size()) return fail("{}: {} cells, want {}", where, cells.size(), columns.size());
  LogPoint point;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!columns[i] || cells[i].empty()) continue;
    const auto number = parse_number(cells[i]);
    if (number) {
      put(point, *columns[i], *number);
    } else if (columns[i] == LogKey::clock && parse_time(cells[i])) {
      point.clock = parse_time(cells[i]);
    } else if (cells[i] != "nan" && cells[i] != "NaN" && cells[i] != "null" && cells[i] != "None") {
      return fail("{}: '{}', want a number", where, cells[i].substr(0, 40));
    }
  }
  return point;
}

Result<TrainingLog> parse_csv(std::string_view text, const std::string& file) {
  TrainingLog log{.kind = "csv"};
  std::vector<std::optional<LogKey>> columns;
  int number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    if (trimmed(line).empty()) continue;
    if (columns.empty()) {
      for (const std::string& cell : cells_of(line)) columns.push_back(column_key(cell));
      continue;
    }
    auto point = read_row(columns, line, fmt::format("{}:{}", file, number));
    if (!point) return unexpected(point.error());
    if (point->empty()) continue;
    point->line = number;
    log.points.push_back(*point);
  }
  return log;
}

/// Hugging Face's: losses by step without times, and at the end how long it all took.
Result<TrainingLog> parse_trainer_state(const Json& json, const std::string& file) {
  TrainingLog log{.kind = "trainer_state"};
  const Json& history = json["log_history"];
  if (!history.is_array()) return fail("{}: log_history: want a list", file);
  const auto number = [](const Json& entry, const char* key) -> std::optional<double> {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_number()) return std::nullopt;
    const auto value = found->get<double>();
    return std::isfinite(value) && value > 0 && value < 1e15 ? std::optional(value) : std::nullopt;
  };
  for (const Json& entry : history) {
    if (!entry.is_object()) return fail("{}: log_history: '{}', want objects", file, entry.dump().substr(0, 40));
    if (const auto runtime = number(entry, "train_runtime")) {
      log.runtime = Seconds(*runtime);
      const auto samples = number(entry, "train_samples_per_second");
      const auto steps = number(entry, "train_steps_per_second");
      if (samples && steps) log.batch = std::round(*samples / *steps);
      log.steps = number(entry, "step");
      continue;
    }
    LogPoint point = parse_log_line(entry.dump(-1, ' ', false, Json::error_handler_t::replace));
    // The position in an entry is all there is to name: the file is one document.
    point.line = 1;
    if (point.loss) log.points.push_back(point);
  }
  if (!log.batch) log.batch = number(json, "train_batch_size");
  return log;
}

TrainingLog parse_lines(std::string_view text) {
  TrainingLog log{.kind = "lines"};
  std::optional<double> epoch;
  int number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    // A progress bar writes over itself: the last of them is what was left on the screen, the others count too.
    for (const auto piece : split(line, '\r')) {
      LogPoint point = parse_log_line(piece);
      if (point.epoch) epoch = point.epoch;
      if (point.batch && !log.batch) log.batch = point.batch;
      if (point.empty() || (point.done && !point.loss && !point.step && !point.step_s && !point.clock)) continue;
      if (!point.epoch) point.epoch = epoch;
      point.line = number;
      log.points.push_back(point);
    }
  }
  return log;
}

/// "time" that mostly grows is a clock; one that goes up and down is the duration of a step.
void name_times(std::vector<LogPoint>& points) {
  std::optional<double> before;
  std::size_t steps = 0;
  std::size_t falls = 0;
  for (const LogPoint& point : points) {
    if (!point.time) continue;
    if (before) {
      ++steps;
      if (*point.time <= *before) ++falls;
    }
    before = point.time;
  }
  const bool clock = falls * 5 <= steps;
  for (LogPoint& point : points) {
    if (!point.time) continue;
    if (clock && !point.clock) point.clock = point.time;
    if (!clock && !point.step_s && *point.time > 0) point.step_s = point.time;
    point.time.reset();
  }
}

}  // namespace

Result<TrainingLog> parse_training_log(std::string_view text, const std::string& file) {
  const auto bad = valid_utf8(text);
  if (bad != text.size() || text.find('\0') != std::string_view::npos)
    return fail(
        "{}:{}: not a text file", file,
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(bad, text.size())), '\n'));
  const std::string_view begin = trimmed(text);
  if (begin.empty()) return fail("{}:1: empty file", file);
  Result<TrainingLog> log = parse_lines("");
  const std::string_view first = begin.substr(0, begin.find('\n'));
  Json json;
  if (begin.front() == '{' && begin.find("\"log_history\"") != std::string_view::npos)
    json = Json::parse(begin, nullptr, false);
  if (json.is_object() && json.contains("log_history")) {
    log = parse_trainer_state(json, file);
  } else {
    log = is_heading(first) ? parse_csv(text, file) : parse_lines(text);
  }
  if (!log) return log;
  if (log->points.empty())
    return fail(
        "{}:1: no line tells a step, a loss or a speed; want CSV with a heading, trainer_state.json, JSON lines, "
        "or lines such as 'step 100 loss 2.31 0.12 s/it'",
        file);
  name_times(log->points);
  return log;
}

void count_steps(TrainingLog& log, LogScale& scale) {
  if (!scale.batch) scale.batch = log.batch;
  for (const LogPoint& point : log.points) {
    if (!scale.batch && point.batch) scale.batch = point.batch;
  }
  // Epochs are counted from 0 by some and from 1 by others.
  double first = 1;
  bool by_epoch = false;
  for (const LogPoint& point : log.points) {
    if (point.epoch) first = std::min(first, std::floor(*point.epoch));
    by_epoch = by_epoch || (point.epoch && point.done);
  }
  for (LogPoint& point : log.points) {
    if (!point.done || !point.of) continue;
    const double passed = by_epoch ? std::max(0.0, std::floor(point.epoch.value_or(first)) - first) : 0;
    const double count = passed * *point.of + *point.done;
    const double per_step = point.done_samples ? scale.batch.value_or(0) : 1;
    if (by_epoch && !scale.samples && (point.done_samples || scale.batch))
      scale.samples = point.done_samples ? *point.of : *point.of * *scale.batch;
    if (!point.step && per_step > 0) point.step = count / per_step;
  }
  // A log that counts both tells how many steps an epoch has.
  const LogPoint& last = log.points.back();
  if (!scale.samples && scale.batch && last.step && last.epoch && *last.epoch > 0 &&
      *last.epoch != std::floor(*last.epoch))
    scale.samples = std::round(*last.step / *last.epoch * *scale.batch);
}

}  // namespace mayfly
