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
#include "report/replay_json.h"
#include "simulate/bamboo.h"
#include "trace/stats.h"

namespace mayfly::cli {
namespace {

struct ReplayFlags {
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
  std::string server{};
  int lookahead = 12;
  bool oracle = false;
  bool blind = false;
  bool json = false;
  std::optional<double> samples{};
  std::optional<double> budget{};
  std::uint64_t seed = 1;
  TraceFlags flags{};
};

struct ReplayInputs {
  Profile profile{};
  Trace trace{};
  ReplayQuestion question{};
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

Result<ReplayInputs> load_inputs(const ReplayFlags& options) {
  ReplayInputs inputs;
  auto policies = parse_policies(options.policies);
  if (!policies) return unexpected(policies.error());
  inputs.question.policies = *std::move(policies);
  auto profile = load_profile(find_profile(options.profile));
  if (!profile) return unexpected(profile.error());
  inputs.profile = *std::move(profile);
  auto trace = options.flags.load(options.trace);
  if (!trace) return unexpected(trace.error());
  inputs.trace = *std::move(trace);
  if (const auto series = pooled(inputs.trace); !series) return unexpected(series.error());
  ReplayOptions& replay = inputs.question.options;
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
  replay.promise.samples = options.samples;
  if (options.budget) replay.promise.budget = Usd{*options.budget};
  replay.lookahead = options.lookahead;
  replay.sight = options.blind ? Sight::blind : Sight::informed;
  replay.seed = options.seed;
  replay.journal = !options.journal.empty();
  replay.milestones = options.json;
  inputs.question.oracle = options.oracle;
  inputs.question.parcae = options.compat == "parcae";
  inputs.question.uneven = options.pipelines == "uneven";
  inputs.question.migration = {.spares = options.spares == "warm" ? Spares::warm : Spares::cold,
                               .last_stage_only = options.costs == "released"};
  inputs.question.type = options.flags.type;
  inputs.question.optimum = options.json;
  if (options.server.empty()) return inputs;
  const auto servers = parse_machines(options.server);
  if (!servers) return fail("--server: {}", servers.error().message);
  if (servers->size() != 1 || servers->front().count < 1) return fail("--server {}: want TYPE=N", options.server);
  if (inputs.profile.pipeline || inputs.profile.exchange != Exchange::server)
    return fail("--server {}: profile {} trains without servers", options.server, inputs.profile.name);
  inputs.question.servers = servers->front();
  return inputs;
}

void print_rows(const ReplayInputs& inputs, const ReplayAnswer& answer) {
  const Promise& promise = inputs.question.options.promise;
  const double ideal = promise.samples ? 0 : answer.ideal;
  const TraceStats& stats = answer.stats;
  const Job& job = answer.job;
  const std::string spot = answer.series.prices.empty() ? fmt::format("{:.3f}", job.spot.value) : "as the trace has it";
  const std::string servers =
      job.standing.value > 0 ? fmt::format(", servers {:.3f}", job.standing.value) : std::string();
  fmt::print(
      "{} on {}: {}, {:.1f} machines on average ({} at most), {} preemptions; USD/h: spot {}, on demand {:.3f}{}\n",
      inputs.profile.name, inputs.trace.name, format_duration(inputs.trace.duration), stats.mean_available.value_or(0),
      stats.max_available, stats.instances_preempted, spot, job.on_demand->value, servers);
  Table table({"POLICY", ">SAMPLES", ">SAMPLES/S", ">OF IDEAL", ">COST", ">USD/M", ">USEFUL", ">REDUND.", ">RECONF.",
               ">LOST", ">IDLE", ">CHANGES"});
  for (const PolicyReplay& row : answer.rows) {
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
  if (!promise.samples) return;
  for (const PolicyReplay& row : answer.rows) {
    const bool late = promise.deadline && row.replay.time > *promise.deadline;
    fmt::print("{}: {} after {}{}\n", row.policy,
               row.replay.reached    ? "target reached"
               : row.replay.finished ? "budget spent"
                                     : "target not reached",
               format_duration(row.replay.time), late ? ", late" : "");
  }
}

int replay_bamboo(const ReplayInputs& inputs, const ReplayFlags& options) {
  const auto series = pooled(inputs.trace);
  if (!series) return bad_input(series.error());
  const auto run = bamboo_replay(inputs.profile, *series);
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
    const TraceStats stats = trace_stats(*series, inputs.trace.duration, inputs.trace.start_unix);
    print_json({{"trace", replayed_trace_json(inputs.trace, *series, stats, inputs.trace.series.size())},
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

/// Beyond this an answer interval by interval takes minutes.
constexpr double kMostDecisions = 1e6;

Result<void> check(const ReplayFlags& options, const ReplayInputs& inputs) {
  const auto& policies = inputs.question.policies;
  const auto has = [&](PolicyName policy) {
    return std::find(policies.begin(), policies.end(), policy) != policies.end();
  };
  const double intervals = inputs.trace.duration / inputs.question.options.interval;
  const bool stepwise = std::any_of(policies.begin(), policies.end(),
                                    [&](PolicyName policy) { return by_interval(inputs.question, policy); });
  if ((stepwise || !options.compat.empty() || options.blind) && intervals > kMostDecisions)
    return fail("{}: {:.3g} intervals of {}, want at most {:g} with --blind, --oracle or --compat", options.trace,
                intervals, format_duration(inputs.question.options.interval), kMostDecisions);
  if (options.oracle && !has(PolicyName::liveput))
    return fail("--oracle tells the future to liveput: add it to --policy");
  if (has(PolicyName::deadline) && (!options.samples || options.deadline.empty()))
    return fail("--policy deadline needs --samples and --deadline");
  if ((options.blind || stepwise) && (options.samples || options.budget))
    return fail("--blind, --oracle and --compat replay whole traces: leave out --samples and --budget");
  if (!options.journal.empty() && policies.size() != 1)
    return fail("--journal holds one run: choose one policy, not {}", policies.size());
  if (!options.journal.empty() && by_interval(inputs.question, policies[0]))
    return fail("--journal is the controller's: leave out --blind, --oracle and --compat");
  return {};
}

int replay_trace(const ReplayFlags& options) {
  const auto begin = std::chrono::steady_clock::now();
  auto inputs = load_inputs(options);
  if (!inputs) return bad_input(inputs.error());
  if (const auto fine = check(options, *inputs); !fine) return bad_input(fine.error());
  if (options.compat == "bamboo") return replay_bamboo(*inputs, options);
  const auto catalog = read_catalogs(options.catalog);
  if (!catalog) return bad_input(catalog.error());
  const auto answer = replay_answer(inputs->profile, *catalog, inputs->trace, inputs->question);
  if (!answer) return bad_input(answer.error());
  for (const std::string& text : answer->notes) note(text);
  if (!options.journal.empty()) {
    Json head{{"format", "mayfly-journal/1"}, {"policy", answer->rows[0].policy}};
    if (answer->job.standing.value > 0) head["standing_usd_per_hour"] = answer->job.standing.value;
    std::string text = head.dump() + "\n";
    for (const std::string& line : answer->rows[0].replay.journal) text += line + "\n";
    if (const auto saved = save_text(options.journal, text); !saved) return bad_input(saved.error());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (options.json) {
    print_json(replay_json(inputs->profile, inputs->trace, inputs->question, *answer, took));
  } else {
    print_rows(*inputs, *answer);
  }
  return kDone;
}

}  // namespace

void add_replay(CLI::App& program, int& code) {
  auto options = std::make_shared<ReplayFlags>();
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
  verb->add_option("--catalog", options->catalog, "catalogue files or names, separated by commas, for prices");
  verb->add_option(
      "--server", options->server,
      "parameter servers that are paid for, standbys included: m5.xlarge=2 (default: one of the profile's)");
  verb->add_option("--samples", options->samples, "stop when so many samples are trained")->check(above_zero());
  verb->add_option("--deadline", options->deadline, "promised time: 6h");
  verb->add_option("--budget", options->budget, "USD; training stops when it is spent")->check(above_zero());
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
