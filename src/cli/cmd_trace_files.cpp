#include <fmt/core.h>

#include <filesystem>

#include <memory>

#include "base/file.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/trace_flags.h"
#include "trace/stats.h"
#include "trace/write.h"

namespace mayfly::cli {
namespace {

struct TraceFileFlags {
  TraceFlags flags{};
  std::vector<std::string> files{};
  bool json = false;
  std::string output{};
  std::string to = "mayfly";
  std::string from_time{};
  std::string to_time{};
  int cap = 0;
};

Json stats_json(const TraceStats& stats, const Trace& trace) {
  Json json{{"type", stats.type.empty() ? Json() : Json(stats.type)},
            {"zone", stats.zone.empty() ? Json() : Json(stats.zone)},
            {"duration_s", stats.duration.count()},
            {"mean_available", or_null(stats.mean_available)}};
  const bool counted = stats.mean_available.has_value();
  const auto number = [&](const char* key, auto value) { json[key] = counted ? Json(value) : Json(); };
  number("min_available", stats.min_available);
  number("max_available", stats.max_available);
  number("share_at_zero", stats.share_at_zero);
  number("preemption_events", stats.preemption_events);
  number("instances_preempted", stats.instances_preempted);
  number("addition_events", stats.addition_events);
  number("instances_added", stats.instances_added);
  json["share_multi"] = or_null(stats.share_multi);
  json["share_to_zero"] = or_null(stats.share_to_zero);
  json["preemption_sizes"] = Json::array();
  for (const auto& [size, events] : stats.preemption_sizes)
    json["preemption_sizes"].push_back({{"instances", size}, {"events", events}});
  json["between_preemptions_s"] = Json();
  if (stats.between_preemptions_p50) json["between_preemptions_s"] = {{"p50", stats.between_preemptions_p50->count()}};
  json["lifetime_s"] = Json();
  if (const auto& life = stats.lifetime) {
    json["lifetime_s"] = {{"p50", life->p50.count()},
                          {"p90", life->p90.count()},
                          {"mean", life->mean.count()},
                          {"ended", life->ended},
                          {"still_there", life->still_there}};
  }
  json["usd_per_hour"] = Json();
  if (const auto& price = stats.price)
    json["usd_per_hour"] = {{"mean", price->mean.value}, {"min", price->least.value}, {"max", price->most.value}};
  json["losses_per_hour_of_day"] = Json();
  if (trace.start_unix && counted) {
    Json hours = Json::array();
    for (const auto& rate : stats.losses_per_hour) hours.push_back(or_null(rate));
    json["losses_per_hour_of_day"] = hours;
  }
  return json;
}

Json trace_json(const Trace& trace) {
  Json json{{"name", trace.name},
            {"observation", name(trace.observation)},
            {"gap_s", trace.gap.count()},
            {"start", trace.start_unix ? Json(format_time(*trace.start_unix)) : Json()}};
  json.update(stats_json(trace_stats(trace), trace));
  if (trace.series.size() < 2) return json;
  json["series"] = Json::array();
  for (const Series& series : trace.series)
    json["series"].push_back(stats_json(trace_stats(series, trace.duration, trace.start_unix), trace));
  return json;
}

std::string place(const Trace& trace, const TraceStats& stats) {
  std::string text = trace.name;
  for (const std::string& word : {stats.type, stats.zone}) {
    if (!word.empty()) text += " " + word;
  }
  return text;
}

void add_row(Table& table, const std::string& name, const TraceStats& stats) {
  const auto share = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.0f}%", 100 * *value) : std::string("-");
  };
  const bool counted = stats.mean_available.has_value();
  const auto& life = stats.lifetime;
  table.add({name, format_duration(stats.duration), counted ? fmt::format("{:.2f}", *stats.mean_available) : "-",
             counted ? fmt::format("{}-{}", stats.min_available, stats.max_available) : "-",
             counted ? share(stats.share_at_zero) : "-", counted ? fmt::format("{}", stats.preemption_events) : "-",
             counted ? fmt::format("{}", stats.instances_preempted) : "-", share(stats.share_multi),
             share(stats.share_to_zero), life ? format_duration(life->p50) : "-",
             life ? format_duration(life->p90) : "-",
             stats.price ? fmt::format("{:.4f}", stats.price->mean.value) : "-"});
}

int stats(const TraceFileFlags& options) {
  Json traces = Json::array();
  Table table({"TRACE", ">LASTS", ">MEAN", ">RANGE", ">AT ZERO", ">PREEMPTIONS", ">MACHINES", ">MULTI", ">TO ZERO",
               ">LIFE P50", ">LIFE P90", ">USD/h"});
  for (const auto& file : options.files) {
    const auto trace = options.flags.load(file);
    if (!trace) return bad_input(trace.error());
    if (options.json) {
      traces.push_back(trace_json(*trace));
      continue;
    }
    const TraceStats all = trace_stats(*trace);
    add_row(table, place(*trace, all), all);
    if (trace->series.size() < 2) continue;
    for (const Series& series : trace->series) {
      const TraceStats one = trace_stats(series, trace->duration, trace->start_unix);
      add_row(table, "  " + place({}, one), one);
    }
  }
  if (!options.json) {
    fmt::print("{}", table.text());
  } else if (options.files.size() == 1) {
    print_json(traces[0]);
  } else {
    print_json({{"traces", traces}});
  }
  return kDone;
}

/// The part of the trace the user asked for.
Result<void> cut(Trace& trace, const TraceFileFlags& options) {
  const auto moment = [](const std::string& text, Seconds otherwise) -> Result<Seconds> {
    return text.empty() ? otherwise : parse_duration(text);
  };
  const auto from = moment(options.from_time, Seconds(0));
  if (!from) return fail("--from-time: {}", from.error().message);
  const auto to = moment(options.to_time, trace.duration);
  if (!to) return fail("--to-time: {}", to.error().message);
  if (*to > trace.duration || *from >= *to)
    return fail("{}: --from-time {} s --to-time {} s: want a part of 0 to {} s", trace.name, from->count(), to->count(),
                trace.duration.count());
  const bool whole = options.from_time.empty() && options.to_time.empty();
  for (Series& series : trace.series) {
    if (!whole) series = slice(series, *from, *to);
    if (options.cap > 0) series = capped(series, options.cap);
  }
  if (trace.start_unix) *trace.start_unix += from->count();
  trace.duration = *to - *from;
  return {};
}

int convert(const TraceFileFlags& options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(options.files[0], options.output, ignored))
    return bad_input({fmt::format("-o {}: is the trace that is read, want another file", options.output)});
  auto trace = options.flags.load(options.files[0]);
  if (!trace) return bad_input(trace.error());
  const auto of_file = [&](const Error& error) {
    return bad_input({fmt::format("{}: {}", options.files[0], error.message)});
  };
  if (const auto done = cut(*trace, options); !done) return of_file(done.error());
  const Result<std::string> text = options.to == "events"   ? events_text(*trace)
                                   : options.to == "counts" ? counts_text(*trace)
                                                            : Result<std::string>(mayfly_trace_text(*trace));
  if (!text) return of_file(text.error());
  if (const auto saved = save_text(options.output, *text); !saved) return bad_input(saved.error());
  if (options.json) {
    print_json({{"trace", options.output}, {"series", trace->series.size()}, {"duration_s", trace->duration.count()}});
  } else {
    fmt::print("{}: {} series of {}\n", options.output, trace->series.size(), format_duration(trace->duration));
  }
  return kDone;
}

}  // namespace

void add_trace_files(CLI::App& verb, int& code) {
  auto options = std::make_shared<TraceFileFlags>();
  const auto common = [&](CLI::App* action) {
    options->flags.add_to(*action);
    action->add_flag("--json", options->json, "print one JSON document");
  };
  auto* counter = verb.add_subcommand("stats", "how many machines, how often they went, how long they stayed");
  counter->add_option("file", options->files, "traces: files, or names of shipped ones")->required();
  common(counter);
  counter->callback([options, &code] { code = stats(*options); });
  auto* converter = verb.add_subcommand("convert", "a trace into another format, whole or in part");
  converter->add_option("file", options->files, "the trace: a file, or the name of a shipped one")
      ->required()
      ->expected(1);
  converter->add_option("-o,--output", options->output, "file to write")->required();
  converter->add_option("--to", options->to, "mayfly, events (ms,add|remove,machine) or counts (ms,count)")
      ->capture_default_str()
      ->check(CLI::IsMember({"mayfly", "events", "counts"}));
  converter->add_option("--from-time", options->from_time, "leave out what was before: 5h30m");
  converter->add_option("--to-time", options->to_time, "leave out what came from then on: 6h30m");
  converter->add_option("--cap", options->cap, "never more than this many machines")->check(above_zero());
  common(converter);
  converter->callback([options, &code] { code = convert(*options); });
}

}  // namespace mayfly::cli
