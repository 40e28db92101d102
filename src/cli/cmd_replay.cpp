#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "base/file.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/trace_flags.h"
#include "simulate/bamboo.h"
#include "simulate/replay.h"
#include "trace/stats.h"

namespace mayfly::cli {
namespace {

struct Options {
  std::string profile{};
  std::string trace{};
  std::string policies = "on-demand,checkpoint,reactive,persist,liveput,ideal";
  std::string catalog{};
  std::string compat{};
  std::string deadline{};
  std::string interval{};
  std::string costs = "released";
  std::string spares = "cold";
  std::string pipelines = "even";
  std::string checkpoint_every{};
  std::string journal{};
  int lookahead = 12;
  bool oracle = false;
  bool blind = false;
  bool json = false;
  std::optional<double> samples{};
  std::optional<double> budget{};
  std::uint64_t seed = 1;
  TraceFlags flags{};
};

/// One line of the table.
struct Row {
  std::string policy{};
  Replay replay{};
};

struct Inputs {
  Profile profile{};
  Trace trace{};
  Series series{};
  std::vector<PolicyName> policies{};
  ReplayOptions options{};
};

Result<Seconds> duration_flag(std::string_view flag, const std::string& text) {
  const auto time = parse_duration(text);
  if (!time) return fail("{}: {}", flag, time.error().message);
  if (time->count() <= 0) return fail("{} {}: want more than 0", flag, text);
  return *time;
}

Result<std::vector<PolicyName>> parse_policies(const std::string& text) {
  std::vector<PolicyName> policies;
  for (const auto word : split(text, ',')) {
    const auto policy = policy_named(trimmed(word));
    if (!policy)
      return fail("--policy '{}': no such policy{}; want some of {}", word, did_you_mean(word, policy_names()),
                  fmt::join(policy_names(), ", "));
    if (std::find(policies.begin(), policies.end(), *policy) == policies.end()) policies.push_back(*policy);
  }
  return policies;
}

Result<Inputs> load(const Options& options) {
  Inputs inputs;
  auto policies = parse_policies(options.policies);
  if (!policies) return unexpected(policies.error());
  inputs.policies = *std::move(policies);
  auto profile = load_profile(find_profile(options.profile));
  if (!profile) return unexpected(profile.error());
  inputs.profile = *std::move(profile);
  auto trace = options.flags.load(options.trace);
  if (!trace) return unexpected(trace.error());
  inputs.trace = *std::move(trace);
  std::erase_if(inputs.trace.series, [](const Series& series) { return series.changes.empty(); });
  if (inputs.trace.series.empty()) return fail("{}: prices only, want a trace of machines", options.trace);
  inputs.series = inputs.trace.series.size() == 1 ? inputs.trace.series[0] : merged(inputs.trace);
  ReplayOptions& replay = inputs.options;
  replay.interval = std::max(Seconds(60), inputs.trace.gap);
  if (!options.interval.empty()) {
    const auto interval = duration_flag("--interval", options.interval);
    if (!interval) return unexpected(interval.error());
    replay.interval = *interval;
  }
  if (!options.deadline.empty()) {
    const auto deadline = duration_flag("--deadline", options.deadline);
    if (!deadline) return unexpected(deadline.error());
    replay.promise.deadline = *deadline;
  }
  if (!options.checkpoint_every.empty()) {
    const auto every = duration_flag("--checkpoint-every", options.checkpoint_every);
    if (!every) return unexpected(every.error());
    replay.figures.checkpoint_every = *every;
  }
  if (options.samples && !std::isfinite(*options.samples)) return fail("--samples {}: want a number", *options.samples);
  if (options.budget && !std::isfinite(*options.budget)) return fail("--budget {}: want a number", *options.budget);
  replay.promise.samples = options.samples;
  if (options.budget) replay.promise.budget = Usd{*options.budget};
  replay.lookahead = options.lookahead;
  replay.sight = options.blind ? Sight::blind : Sight::informed;
  replay.seed = options.seed;
  replay.journal = !options.journal.empty();
  return inputs;
}

/// Whether the question is answered interval by interval instead of by the controller.
bool by_interval(const Options& options, PolicyName policy) {
  if (policy == PolicyName::persist) return options.blind || options.compat == "parcae";
  return policy == PolicyName::liveput && (options.blind || options.oracle || options.compat == "parcae");
}

Json trace_json(const Inputs& inputs) {
  const TraceStats stats = trace_stats(inputs.series, inputs.trace.duration, inputs.trace.start_unix);
  return {{"name", inputs.trace.name},
          {"type", inputs.series.type},
          {"zones", inputs.trace.series.size()},
          {"observation", name(inputs.trace.observation)},
          {"duration_s", inputs.trace.duration.count()},
          {"mean_available", stats.mean_available.value_or(0)},
          {"max_available", stats.max_available},
          {"preemption_events", stats.preemption_events}};
}

/// One entry for each interval, as the published files have them.
std::vector<Moment> on_grid(const std::vector<Moment>& moments, Seconds interval, Seconds duration) {
  std::vector<Moment> grid;
  std::size_t at = 0;
  for (Seconds time{0}; time < duration; time = interval * static_cast<double>(grid.size())) {
    while (at + 1 < moments.size() && moments[at + 1].time <= time) ++at;
    grid.push_back(at < moments.size() && moments[at].time <= time ? moments[at] : Moment{});
    grid.back().time = time;
  }
  return grid;
}

Json row_json(const Row& row, double ideal) {
  const MachineTime& time = row.replay.machine_time;
  const double total = std::max(time.total(), 1e-300);
  Json json{{"policy", row.policy},
            {"samples", row.replay.samples},
            {"samples_per_s", row.replay.samples / std::max(row.replay.time.count(), 1e-300)},
            {"cost_usd", row.replay.cost.value},
            {"time_s", row.replay.time.count()},
            {"share",
             {{"useful", time.useful / total},
              {"redundant", time.redundant / total},
              {"reconfigure", time.reconfigure / total},
              {"lost", time.lost / total},
              {"idle", time.idle / total}}},
            {"machine_hours", time.total() / 3600},
            {"changes", row.replay.changes},
            {"preemptions", row.replay.preemptions}};
  if (ideal > 0) json["share_of_ideal"] = row.replay.samples / ideal;
  if (row.replay.finished) json["finished"] = name(*row.replay.finished);
  Json moments = Json::array();
  for (const Moment& moment : row.replay.moments) {
    moments.push_back({{"t_s", moment.time.count()},
                       {"available", moment.available},
                       {"data_parallel", moment.shape.data_parallel},
                       {"stages", moment.shape.stages}});
    if (moment.shape.extra > 0) moments.back()["extra"] = moment.shape.extra;
  }
  json["intervals"] = std::move(moments);
  return json;
}

void print_rows(const Inputs& inputs, const Job& job, const std::vector<Row>& rows, double ideal) {
  const TraceStats stats = trace_stats(inputs.series, inputs.trace.duration, inputs.trace.start_unix);
  const std::string spot = inputs.series.prices.empty() ? fmt::format("{:.3f}", job.spot.value) : "as the trace has it";
  fmt::print(
      "{} on {}: {}, {:.1f} machines on average ({} at most), {} preemptions; USD/h: spot {}, on demand {:.3f}\n",
      inputs.profile.name, inputs.trace.name, format_duration(inputs.trace.duration), stats.mean_available.value_or(0),
      stats.max_available, stats.instances_preempted, spot, job.on_demand.value);
  Table table({"POLICY", ">SAMPLES", ">SAMPLES/S", ">OF IDEAL", ">COST", ">USD/M", ">USEFUL", ">REDUND.", ">RECONF.",
               ">LOST", ">IDLE", ">CHANGES"});
  for (const Row& row : rows) {
    const MachineTime& time = row.replay.machine_time;
    const double total = std::max(time.total(), 1e-300);
    const auto percent = [&](double part) { return fmt::format("{:.1f}%", 100 * part / total); };
    table.add({row.policy, fmt::format("{:.0f}", row.replay.samples),
               fmt::format("{:.1f}", row.replay.samples / std::max(row.replay.time.count(), 1e-300)),
               ideal > 0 ? fmt::format("{:.2f}%", 100 * row.replay.samples / ideal) : "-",
               fmt::format("{:.2f}", row.replay.cost.value),
               row.replay.samples > 0 ? fmt::format("{:.2f}", row.replay.cost.value / row.replay.samples * 1e6) : "-",
               percent(time.useful), percent(time.redundant), percent(time.reconfigure), percent(time.lost),
               percent(time.idle), fmt::format("{}", row.replay.changes)});
  }
  fmt::print("{}", table.text());
  if (!inputs.options.promise.samples) return;
  for (const Row& row : rows) {
    const bool late = inputs.options.promise.deadline && row.replay.time > *inputs.options.promise.deadline;
    fmt::print("{}: {} after {}{}\n", row.policy,
               row.replay.reached    ? "target reached"
               : row.replay.finished ? "budget spent"
                                     : "target not reached",
               format_duration(row.replay.time), late ? ", late" : "");
  }
}

int replay_bamboo(const Inputs& inputs, const Options& options) {
  const auto run = bamboo_replay(inputs.profile, inputs.series);
  if (!run) return bad_input(run.error());
  if (options.json) {
    Json moments = Json::array();
    const int stages = inputs.profile.pipeline->redundancy->stages.value_or(inputs.profile.pipeline->min_stages);
    for (const BambooMoment& moment : run->moments) {
      moments.push_back({{"t_s", moment.time.count()},
                         {"available", moment.ready},
                         {"data_parallel", moment.data_parallel},
                         {"stages", stages}});
    }
    print_json({{"trace", trace_json(inputs)},
                {"compat", "bamboo"},
                {"policies",
                 {{{"policy", "redundant"},
                   {"steps", run->steps},
                   {"fatal_failures", run->fatal_failures},
                   {"preemptions", run->preemptions},
                   {"samples", run->speed.value * (run->last_step - run->first_step).count()},
                   {"samples_per_s", run->speed.value},
                   {"cost_usd", run->cost.value * Hours(run->last_step).count()},
                   {"usd_per_hour", run->cost.value},
                   {"value", run->value},
                   {"intervals", moments}}}},
                {"time_s", run->last_step.count()}});
    return kDone;
  }
  fmt::print(
      "{} as Bamboo's own simulator has it: {} steps, {} fatal failures, {:.3f} samples/s, {:.3f} USD/h, value "
      "{:.4f}\n",
      inputs.profile.name, run->steps, run->fatal_failures, run->speed.value, run->cost.value, run->value);
  return kDone;
}

/// The offline optimum of a longer trace is left out: it is a yardstick, not worth a wait.
constexpr double kMostStepsToOptimum = 50'000;
/// Beyond this an answer interval by interval takes minutes.
constexpr double kMostIntervals = 1e6;

Result<void> check(const Options& options, const Inputs& inputs) {
  const auto has = [&](PolicyName policy) {
    return std::find(inputs.policies.begin(), inputs.policies.end(), policy) != inputs.policies.end();
  };
  const double intervals = inputs.trace.duration / inputs.options.interval;
  const bool stepwise = std::any_of(inputs.policies.begin(), inputs.policies.end(),
                                    [&](PolicyName policy) { return by_interval(options, policy); });
  if ((stepwise || !options.compat.empty() || options.blind) && intervals > kMostIntervals)
    return fail("{}: {:.3g} intervals of {}, want at most {:g} with --blind, --oracle or --compat", options.trace,
                intervals, format_duration(inputs.options.interval), kMostIntervals);
  if (options.oracle && !has(PolicyName::liveput))
    return fail("--oracle tells the future to liveput: add it to --policy");
  if (has(PolicyName::deadline) && (!options.samples || options.deadline.empty()))
    return fail("--policy deadline needs --samples and --deadline");
  if (options.blind && (options.samples || options.budget))
    return fail("--blind replays whole traces: leave out --samples and --budget");
  if (!options.journal.empty() && inputs.policies.size() != 1)
    return fail("--journal holds one run: choose one policy, not {}", inputs.policies.size());
  if (!options.journal.empty() && by_interval(options, inputs.policies[0]))
    return fail("--journal is the controller's: leave out --blind, --oracle and --compat");
  return {};
}

int replay_trace(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  auto inputs = load(options);
  if (!inputs) return bad_input(inputs.error());
  if (const auto fine = check(options, *inputs); !fine) return bad_input(fine.error());
  if (options.compat == "bamboo") return replay_bamboo(*inputs, options);
  const auto catalog = load_catalog(find_catalog(options.catalog));
  if (!catalog) return bad_input(catalog.error());
  const TraceStats stats = trace_stats(inputs->series, inputs->trace.duration, inputs->trace.start_unix);
  JobRequest request{.type = inputs->profile.pipeline ? "" : options.flags.type,
                     .most_machines = stats.max_available,
                     .migration = {.spares = options.spares == "warm" ? Spares::warm : Spares::cold,
                                   .last_stage_only = options.costs == "released"}};
  const auto even = make_job(inputs->profile, *catalog, request);
  if (!even) return bad_input(even.error());
  request.uneven = options.pipelines == "uneven";
  const auto job = make_job(inputs->profile, *catalog, request);
  if (!job) return bad_input(job.error());
  if (inputs->trace.series.size() > 1)
    note(fmt::format("{} series pooled; --zone or --type chooses one", inputs->trace.series.size()));
  if (stats.max_available < job->shapes.least_machines())
    note(fmt::format("never more than {} machines, and the smallest shape needs {}: nothing trains",
                     stats.max_available, job->shapes.least_machines()));
  if (stats.max_available > job->shapes.most_machines())
    note(fmt::format("machines beyond {}, the largest shape of the profile, are not taken",
                     job->shapes.most_machines()));
  const Seconds duration = inputs->trace.duration;
  ReplayOptions whole = inputs->options;
  whole.policy = PolicyName::ideal;
  whole.promise = {};
  whole.journal = false;
  const double ideal = replay(inputs->series, duration, *even, whole).samples;
  std::vector<Row> rows;
  for (const PolicyName policy : inputs->policies) {
    ReplayOptions one = inputs->options;
    one.policy = policy;
    std::string label(name(policy));
    if (policy == PolicyName::liveput && options.oracle) one.foresight = Foresight::oracle;
    if (policy == PolicyName::liveput && !options.oracle && options.compat == "parcae")
      one.foresight = Foresight::parcae;
    rows.push_back({label, by_interval(options, policy) ? replay_by_interval(inputs->series, duration, *job, one)
                                                        : replay(inputs->series, duration, *job, one)});
  }
  if (options.blind || !options.compat.empty()) {
    for (Row& row : rows) row.replay.moments = on_grid(row.replay.moments, inputs->options.interval, duration);
  }
  if (!options.journal.empty()) {
    std::string text = fmt::format("{{\"format\":\"mayfly-journal/1\",\"policy\":\"{}\"}}\n", rows[0].policy);
    for (const std::string& line : rows[0].replay.journal) text += line + "\n";
    if (const auto saved = save_text(options.journal, text); !saved) return bad_input(saved.error());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!options.json) {
    print_rows(*inputs, *job, rows, options.samples ? 0 : ideal);
    return kDone;
  }
  Json policies = Json::array();
  for (const Row& row : rows) policies.push_back(row_json(row, options.samples ? 0 : ideal));
  Json json{{"trace", trace_json(*inputs)},
            {"profile", inputs->profile.name},
            {"sight", options.blind ? "blind" : "informed"},
            {"policies", std::move(policies)},
            {"time_s", took.count()}};
  if (!options.samples) {
    json["ideal_samples"] = ideal;
    if (duration / inputs->options.interval <= kMostStepsToOptimum)
      json["offline_optimum_samples"] = offline_optimum(inputs->series, duration, *job, inputs->options.interval);
  }
  if (job->costs.error().count() > 0) json["cost_error_s"] = job->costs.error().count();
  print_json(json);
  return kDone;
}

}  // namespace

void add_replay(CLI::App& program, int& code) {
  auto options = std::make_shared<Options>();
  auto* verb = program.add_subcommand("replay", "what would have happened on a trace, policy by policy");
  verb->add_option("--profile", options->profile, "profile: a file, or the name of a shipped one")->required();
  verb->add_option("--trace", options->trace, "trace: a file, or the name of a shipped one")->required();
  verb->add_option("--policy", options->policies, fmt::format("some of {}", fmt::join(policy_names(), ", ")))
      ->capture_default_str();
  verb->add_option("--lookahead", options->lookahead, "intervals the optimiser looks ahead")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  verb->add_flag("--oracle", options->oracle, "liveput knows the future");
  verb->add_flag("--blind", options->blind, "decide each interval before its event, from earlier ones only");
  verb->add_option("--compat", options->compat, "reproduce a published system: parcae or bamboo")
      ->check(CLI::IsMember({"parcae", "bamboo"}));
  verb->add_option("--catalog", options->catalog, "catalogue file or name, for prices");
  verb->add_option("--samples", options->samples, "stop when so many samples are trained")->check(CLI::PositiveNumber);
  verb->add_option("--deadline", options->deadline, "promised time: 6h");
  verb->add_option("--budget", options->budget, "USD; training stops when it is spent")->check(CLI::PositiveNumber);
  verb->add_option("--interval", options->interval, "time between decisions (default: 60s, or the trace's gap)");
  verb->add_option("--costs", options->costs,
                   "of a change: released (Parcae's table as published) or corrected (every stage's missing bytes)")
      ->capture_default_str()
      ->check(CLI::IsMember({"released", "corrected"}));
  verb->add_option("--spares", options->spares, "machines without work: cold, or warm members of the group")
      ->capture_default_str()
      ->check(CLI::IsMember({"cold", "warm"}));
  verb->add_option("--pipelines", options->pipelines, "even, or uneven: of two depths, so that no machine idles")
      ->capture_default_str()
      ->check(CLI::IsMember({"even", "uneven"}));
  verb->add_option("--checkpoint-every", options->checkpoint_every, "period of the checkpoint policy (default 10m)");
  verb->add_option("--journal", options->journal, "write the run's journal here (one policy)");
  verb->add_option("--seed", options->seed, "of which machines are lost, and of Parcae's draws")
      ->capture_default_str()
      ->check([](const std::string& seen) { return seen.starts_with('-') ? "want 0 or more" : ""; }, "");
  options->flags.add_to(*verb);
  verb->add_flag("--json", options->json, "print one JSON document");
  verb->callback([options, &code] { code = replay_trace(*options); });
}

}  // namespace mayfly::cli
