#include "trace/parcae_files.h"

#include <deque>

#include "base/json_reader.h"
#include "trace/lines.h"
#include "trace/read.h"

namespace mayfly {
namespace {

constexpr std::string_view kCount = "a number of machines, 0 to 1000000";

std::array<int, 2> pipelines(JsonReader& json) {
  std::array<int, 2> shape{};
  std::size_t size = 0;
  json.begin_list("[pipelines, stages]");
  while (json.next_item()) {
    const int value = json.integer(0, kMostMachines, "a number of pipelines or stages");
    if (size < shape.size()) shape[size] = value;
    ++size;
  }
  if (size != shape.size()) json.reject(fmt::format("a list of {}, want [pipelines, stages]", size));
  return shape;
}

void read_interval(JsonReader& json, ParcaeChoice& choice) {
  std::array<int*, 3> parts{&choice.before, &choice.added, &choice.removed};
  std::size_t size = 0;
  json.begin_list("[before, added, removed]");
  while (json.next_item()) {
    const int value = json.integer(0, kMostMachines, kCount);
    if (size < parts.size()) *parts[size] = value;
    ++size;
  }
  if (size != parts.size()) json.reject(fmt::format("interval of {} numbers, want [before, added, removed]", size));
  const int left = choice.before + choice.added - choice.removed;
  if (left < 0 || left > kMostMachines)
    json.reject(fmt::format("interval [{}, {}, {}] leaves {} machines, want 0 to {}", choice.before, choice.added,
                            choice.removed, left, kMostMachines));
}

Seconds milliseconds(JsonReader& json, std::string_view what) {
  const double ms = json.number(what);
  if (ms < 0 || ms > kLatest * 1000) json.reject(fmt::format("{}: {}, want 0 or more milliseconds", what, ms));
  return Seconds(ms / 1000);
}

Seconds duration_in(JsonReader& json) {
  const Seconds time = milliseconds(json, "a duration");
  if (json.ok() && time.count() <= 0) json.reject("duration 0, want milliseconds above 0");
  return time;
}

ParcaeChoice read_choice(JsonReader& json) {
  ParcaeChoice choice;
  bool interval = false;
  json.begin_object("an interval: {\"interval\": [before, added, removed], \"duration\": ms, ...}");
  while (const auto key = json.next_key()) {
    if (*key == "interval") {
      read_interval(json, choice);
      interval = true;
    } else if (*key == "duration") {
      choice.duration = duration_in(json);
    } else if (*key == "throughut-opt" || *key == "throughput-opt") {  // the released files spell it the first way
      choice.throughput_opt = pipelines(json);
    } else if (*key == "liveput-truth") {
      choice.truth = pipelines(json);
    } else if (*key == "liveput-predict") {
      choice.predict = pipelines(json);
    } else {
      json.reject(
          fmt::format("key {}, want interval, duration, throughut-opt, liveput-truth or liveput-predict", shown(*key)));
    }
  }
  if (!interval) json.reject("an interval without 'interval', want [before, added, removed]");
  if (choice.duration.count() <= 0) json.reject("an interval without 'duration', want milliseconds above 0");
  return choice;
}

}  // namespace

Result<std::vector<ParcaeChoice>> parse_parcae_choices(std::string_view text, const std::string& file) {
  JsonReader json(text, file);
  std::vector<ParcaeChoice> choices;
  json.begin_list("a list of intervals");
  while (json.next_item()) {
    const ParcaeChoice choice = read_choice(json);
    if (!choices.empty()) {
      const ParcaeChoice& last = choices.back();
      const int left = last.before + last.added - last.removed;
      if (choice.before != left)
        json.reject(fmt::format("interval {} starts with {} machines, want {} as the one before left", choices.size(),
                                choice.before, left));
    }
    choices.push_back(choice);
  }
  json.finish();
  if (!json.ok()) return unexpected(json.error());
  if (choices.empty()) return fail("{}:1: no intervals", file);
  return choices;
}

Result<Trace> read_parcae_choices(std::string_view text, const std::string& file, const TraceOptions& options) {
  const auto choices = parse_parcae_choices(text, file);
  if (!choices) return unexpected(choices.error());
  const auto gap = agreed_gap(choices->front().duration, options, file);
  if (!gap) return unexpected(gap.error());
  Changes changes;
  Seconds now{0};
  for (const ParcaeChoice& choice : *choices) {
    if (changes.empty()) {
      changes.add(now, choice.before + choice.added, choice.removed);
    } else if (choice.added + choice.removed > 0) {
      changes.add(now, choice.added, choice.removed);
    }
    now += choice.duration;
    if (now.count() > kLatest) return fail("{}: intervals of more than {} s together", file, kLatest);
  }
  auto taken = std::move(changes).take(file);
  if (!taken) return unexpected(taken.error());
  return Trace{.gap = *gap, .duration = now, .series = {{.changes = *std::move(taken)}}};
}

namespace {

/// One line `[t_ms, op, {"nodes": [...], "duration": ms, ...}]`.
struct ReplayLine {
  Seconds time{};
  std::string op{};
  std::vector<std::string> nodes{};
  std::optional<Seconds> duration{};
};

ReplayLine read_replay_line(JsonReader& json) {
  ReplayLine line;
  json.begin_list("[ms, op, {nodes, duration}]");
  if (json.next_item()) line.time = milliseconds(json, "a time in milliseconds");
  if (json.next_item()) line.op = json.text("an op: add, remove, no-op or migration");
  if (json.next_item()) {
    json.begin_object();
    while (const auto key = json.next_key()) {
      if (*key == "nodes") {
        json.begin_list("a list of machines");
        while (json.next_item()) line.nodes.emplace_back(json.text("a machine's name"));
      } else if (*key == "duration") {
        line.duration = duration_in(json);
      } else {
        json.skip();  // the choices of the authors' policies
      }
    }
  }
  if (json.next_item()) json.reject("more than three parts, want [ms, op, {nodes, duration}]");
  json.finish();
  return line;
}

}  // namespace

Result<Trace> read_parcae_replay(std::string_view text, const std::string& file, const TraceOptions& options) {
  Lines lines(text);
  std::deque<std::string> names;  // Machines keeps views of them
  Machines machines;
  Seconds now{0};
  std::optional<Seconds> stated;
  while (const auto row = lines.next()) {
    JsonReader json(*row, file, lines.number());
    ReplayLine line = read_replay_line(json);
    const auto reject = [&](const std::string& what) { json.reject(what); };
    if (line.time < now)
      reject(fmt::format("time {} ms goes back, want {} or later", line.time.count() * 1000, now.count() * 1000));
    const bool adds = line.op == "add";
    const bool removes = line.op == "remove";
    if (!adds && !removes && line.op != "no-op" && line.op != "migration")
      reject(fmt::format("op {}, want add, remove, no-op or migration", shown(line.op)));
    if (!adds && !removes && !line.nodes.empty())
      reject(fmt::format("{} with {} machines, want none", line.op, line.nodes.size()));
    if (!json.ok()) return unexpected(json.error());
    now = line.time;
    if (line.duration) stated = line.duration;
    for (std::string& node : line.nodes) {
      if (adds) names.push_back(node);
      if (adds && !machines.add(now, names.back()))
        reject(fmt::format("add {}, which is there already; want a machine that is not", shown(node)));
      if (removes && !machines.remove(now, node))
        reject(fmt::format("remove {}, which is not there; want one added before", shown(node)));
    }
    if (!json.ok()) return unexpected(json.error());
  }
  const auto gap = agreed_gap(stated, options, file);
  if (!gap) return unexpected(gap.error());
  auto series = std::move(machines).take(now + *gap, file);
  if (!series) return unexpected(series.error());
  return Trace{.gap = *gap, .duration = now + *gap, .series = {*std::move(series)}};
}

}  // namespace mayfly
