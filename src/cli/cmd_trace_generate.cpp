#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/file.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "trace/generate.h"
#include "trace/stats.h"
#include "trace/write.h"

namespace mayfly::cli {
namespace {

/// What was said on the command line; the rest stays as the preset, or the default, has it.
struct GeneratorFlags {
  std::string preset{};
  std::optional<int> machines{};
  std::string duration{};
  std::string gap{};
  std::string lifetime_mean{};
  std::string bathtub{};
  std::optional<double> share_multi{};
  std::optional<double> mean_multi{};
  std::optional<double> share_to_zero{};
  std::string rejoin{};
  std::optional<double> droughts_per_day{};
  std::string drought_length{};
  std::optional<int> drought_level{};
  std::optional<double> price{};
  std::optional<double> price_volatility{};
  std::vector<std::string> zones{};
  std::string type{};
  std::uint64_t seed = 1;
  std::string output{};
  std::string to = "mayfly";
  bool json = false;
};

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return names;
}

/// `A,tau1,tau2,b`: a number and three durations.
Result<BathtubLife> parse_bathtub(const std::string& text) {
  const auto words = split(text, ',');
  const auto a = words.size() == 4 ? parse_number(words[0]) : std::nullopt;
  if (!a) return fail("--bathtub '{}': want A,tau1,tau2,b as in 0.4137,54m,2736s,24h", text);
  BathtubLife life{.a = *a};
  Seconds* const parts[] = {&life.tau1, &life.tau2, &life.b};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto part = parse_duration(words[i + 1]);
    if (!part) return fail("--bathtub '{}': {}", text, part.error().message);
    *parts[i] = *part;
  }
  return life;
}

Result<GeneratorOptions> generator_options(const GeneratorFlags& given) {
  GeneratorOptions made;
  if (!given.preset.empty()) {
    const auto& all = presets();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Preset& p) { return p.name == given.preset; });
    if (found == all.end())
      return fail("no preset '{}'{}: want one of {}", given.preset, did_you_mean(given.preset, preset_names()),
                  fmt::join(preset_names(), ", "));
    made = found->options;
  }
  const auto take = [](auto& into, const auto& value) {
    if (value) into = *value;
  };
  take(made.machines, given.machines);
  take(made.share_multi, given.share_multi);
  take(made.mean_multi, given.mean_multi);
  take(made.share_to_zero, given.share_to_zero);
  take(made.droughts_per_day, given.droughts_per_day);
  take(made.drought_level, given.drought_level);
  take(made.price_volatility, given.price_volatility);
  if (given.price) made.price = UsdPerHour{*given.price};
  if (!given.zones.empty()) made.zones = given.zones;
  if (!given.type.empty()) made.type = given.type;
  made.seed = given.seed;
  Seconds mean{};
  struct Length {
    const char* flag;
    const std::string& text;
    Seconds& into;
  };
  for (const Length& length : {Length{"--duration", given.duration, made.duration},
                               {"--gap", given.gap, made.gap},
                               {"--lifetime-mean", given.lifetime_mean, mean},
                               {"--rejoin", given.rejoin, made.rejoin},
                               {"--drought-length", given.drought_length, made.drought_length}}) {
    if (length.text.empty()) continue;
    const auto time = parse_duration(length.text);
    if (!time) return fail("{}: {}", length.flag, time.error().message);
    length.into = *time;
  }
  if (!given.lifetime_mean.empty()) made.lifetime = ExponentialLife{mean};
  if (!given.bathtub.empty()) {
    const auto life = parse_bathtub(given.bathtub);
    if (!life) return unexpected(life.error());
    made.lifetime = *life;
  }
  return made;
}

/// What was asked for beside what came out.
void print_summary(const GeneratorOptions& asked, const TraceStats& got) {
  const double zones = static_cast<double>(std::max<std::size_t>(1, asked.zones.size()));
  const Seconds life = mean_lifetime(asked.lifetime);
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.3f}", *value) : std::string("-");
  };
  Table table({"", ">ASKED", ">GENERATED"});
  table.add({"machines", fmt::format("{:g}", zones * asked.machines), fmt::format("{}", got.max_available)});
  table.add({"mean available",
             asked.droughts_per_day > 0 ? "-" : number(zones * asked.machines * (life / (life + asked.rejoin))),
             number(got.mean_available)});
  table.add({"mean lifetime", format_duration(life), got.lifetime ? format_duration(got.lifetime->mean) : "-"});
  table.add({"events that take several", number(asked.share_multi), number(got.share_multi)});
  table.add({"events that take all", number(asked.share_to_zero), number(got.share_to_zero)});
  table.add({"preemption events", "", fmt::format("{}", got.preemption_events)});
  fmt::print("{}", table.text());
}

int generate(const GeneratorFlags& options) {
  const auto asked = generator_options(options);
  if (!asked) return bad_input(asked.error());
  const auto trace = generated_trace(*asked);
  if (!trace) return bad_input(trace.error());
  const Result<std::string> text = options.to == "events"   ? events_text(*trace)
                                   : options.to == "counts" ? counts_text(*trace)
                                                            : Result<std::string>(mayfly_trace_text(*trace));
  if (!text) return bad_input(text.error());
  if (const auto saved = save_text(options.output, *text); !saved) return bad_input(saved.error());
  const TraceStats got = trace_stats(*trace);
  if (!options.json) {
    fmt::print("{}: {} series of {}\n", options.output, trace->series.size(), format_duration(trace->duration));
    print_summary(*asked, got);
    return kDone;
  }
  print_json({{"trace", options.output},
              {"name", trace->name},
              {"seed", asked->seed},
              {"series", trace->series.size()},
              {"machines", asked->machines},
              {"gap_s", trace->gap.count()},
              {"duration_s", trace->duration.count()},
              {"mean_available", or_null(got.mean_available)},
              {"preemption_events", got.preemption_events},
              {"instances_preempted", got.instances_preempted},
              {"share_multi", or_null(got.share_multi)},
              {"share_to_zero", or_null(got.share_to_zero)},
              {"lifetime_s", got.lifetime ? Json{{"mean", got.lifetime->mean.count()},
                                                 {"p50", got.lifetime->p50.count()},
                                                 {"p90", got.lifetime->p90.count()}}
                                          : Json()}});
  return kDone;
}

}  // namespace

void add_trace_generate(CLI::App& verb, int& code) {
  auto options = std::make_shared<GeneratorFlags>();
  auto* action = verb.add_subcommand("generate", "a synthetic trace with the statistics asked for");
  std::string list = "Presets:\n";
  for (const Preset& preset : presets()) list += fmt::format("  {:<9} {}\n", preset.name, preset.about);
  action->footer(list);
  action->add_option("--preset", options->preset, "where to start from: see below");
  action->add_option("--machines", options->machines, "machines asked for, in each zone (default 32)");
  action->add_option("--duration", options->duration, "length of the trace (default 14d)");
  action->add_option("--gap", options->gap, "between observations (default 60s)");
  auto* mean = action->add_option("--lifetime-mean", options->lifetime_mean, "exponential lifetimes (default 6h)");
  action->add_option("--bathtub", options->bathtub, "lifetimes A,tau1,tau2,b: 0.4137,54m,2736s,24h")->excludes(mean);
  action->add_option("--share-multi", options->share_multi, "share of preemption events that take several machines");
  action->add_option("--mean-multi", options->mean_multi, "how many those take on average (default 3)");
  action->add_option("--share-to-zero", options->share_to_zero, "share of preemption events that take all");
  action->add_option("--rejoin", options->rejoin, "mean time until a lost machine is replaced (default 20m)");
  action->add_option("--droughts-per-day", options->droughts_per_day, "times a day when nothing can be had");
  action->add_option("--drought-length", options->drought_length, "mean length of those (default 2h)");
  action->add_option("--drought-level", options->drought_level, "machines left when one begins (default 0)");
  action->add_option("--price", options->price, "mean spot price, USD per hour")
      ->check(
          [](const std::string& seen) {
            const auto price = parse_number(seen);
            return price && *price > 0 && *price <= 1e6 ? std::string()
                                                        : "'" + seen + "', want above 0 and at most 10^6";
          },
          "");
  action->add_option("--price-volatility", options->price_volatility, "deviation of the price's logarithm");
  action->add_option("--zones", options->zones, "names of zones, independent of each other: a,b")->delimiter(',');
  action->add_option("--type", options->type, "instance type");
  action->add_option("--seed", options->seed, "the same seed gives the same trace")
      ->capture_default_str()
      ->check([](const std::string& seen) { return seen.starts_with('-') ? "want 0 or more" : ""; }, "");
  action->add_option("-o,--output", options->output, "file to write")->required();
  action->add_option("--to", options->to, "mayfly, events (ms,add|remove,machine) or counts (ms,count)")
      ->capture_default_str()
      ->check(CLI::IsMember({"mayfly", "events", "counts"}));
  action->add_flag("--json", options->json, "print one JSON document");
  action->callback([options, &code] { code = generate(*options); });
}

}  // namespace mayfly::cli
