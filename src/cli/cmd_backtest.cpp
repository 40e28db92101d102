#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "backtest/backtest_page.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/backtest_text.h"
#include "cli/command.h"
#include "cli/measured.h"
#include "cli/question.h"
#include "cli/server_setup.h"
#include "cli/step_flags.h"
#include "cli/trace_flags.h"
#include "report/plan_weather.h"
#include "report/purse.h"
#include "simulate/usual_weather.h"

namespace mayfly::cli {
namespace {

struct BacktestFlags {
  std::string job{};
  std::string profile{};
  std::vector<std::string> traces{};
  std::string since{};
  std::string deadline{};
  TargetOptions target{};
  std::string quota{};
  std::string market{};
  std::string predictor = "queue";
  std::string catalog{};
  std::string policy = "liveput";
  std::string restart{};
  std::string checkpoint_every{};
  std::string output{};
  double confidence = 0.9;
  int starts = 1000;
  std::uint64_t seed = 1;
  bool json = false;
  StepFlags step{};
  TraceFlags flags{};
};

struct BacktestInputs {
  Question question{};
  Profile profile{};
  Catalog catalog{};
  std::vector<Trace> traces{};
  BacktestOptions options{};
};

Result<Seconds> time_of(const char* flag, const std::string& text) {
  const auto time = parse_duration(text);
  if (!time) return fail("{}: {}", flag, time.error().message);
  if (time->count() <= 0) return fail("{} {}: want more than 0", flag, text);
  return *time;
}

/// The job file first, then what the command line overrides.
Result<Question> question_of(const BacktestFlags& flags) {
  Question question;
  constexpr double kUnset = -1;
  PlanRequest& request = question.request;
  request.target = ForSteps{kUnset};
  if (!flags.job.empty()) {
    const auto text = load_text(flags.job);
    const auto job = text ? parse_job(*text, flags.job) : unexpected(text.error());
    if (!job) return unexpected(job.error());
    apply_job(*job, flags.job, question);
    if (flags.profile.empty() && question.profile.empty() && job->train) {
      auto fresh = profile_for(flags.job, "", question.notes);
      if (!fresh) return unexpected(fresh.error());
      question.profile = *std::move(fresh);
    }
  }
  const std::string subject = flags.job.empty() ? "backtest" : flags.job;
  if (!flags.profile.empty()) question.profile = find_profile(flags.profile).string();
  if (question.profile.empty()) return fail("{}: no profile: want --profile or 'profile:' in the job file", subject);
  if (!flags.deadline.empty()) {
    const auto deadline = time_of("--deadline", flags.deadline);
    if (!deadline) return unexpected(deadline.error());
    request.deadline = *deadline;
  }
  if (!request.deadline) return fail("{}: no deadline: a promise is kept or not by one; want --deadline 6h", subject);
  const auto target = flags.target.target();
  if (!target) return unexpected(target.error());
  if (*target) request.target = **target;
  if (request.target == Target(ForSteps{kUnset}))
    return fail("{}: no target: want one of --loss, --epochs and --steps", subject);
  if (request.budget) question.notes.push_back("the job's budget is no part of the promise that is tried here");
  request.budget.reset();
  return question;
}

Result<void> limit(const BacktestFlags& flags, Question& question) {
  PlanRequest& request = question.request;
  const std::string& quota = flags.quota.empty() ? question.quota : flags.quota;
  if (!quota.empty()) {
    auto quotas = parse_quotas(quota);
    if (!quotas && flags.quota.empty()) return fail("{}: objective.quota: {}", flags.job, quotas.error().message);
    if (!quotas) return fail("--quota: {}", quotas.error().message);
    request.quota = std::move(quotas->types);
    request.families = std::move(quotas->families);
  }
  if (!flags.market.empty()) {
    request.markets.clear();
    for (const auto word : split(flags.market, ',')) {
      const auto market = parse_market(trimmed(word));
      if (!market) return fail("--market: {}", market.error().message);
      request.markets.insert(*market);
    }
  }
  const auto predictor = parse_predictor(flags.predictor);
  if (!predictor) return unexpected(predictor.error());
  request.predictor = *predictor;
  return {};
}

/// Spot machines are rented of types that every trace tells of.
void keep_to_types(const std::vector<Trace>& traces, PlanRequest& request) {
  std::optional<std::set<std::string>> types;
  for (const Trace& trace : traces) {
    std::set<std::string> of_this;
    for (const Series& series : trace.series) {
      if (series.changes.empty()) continue;
      if (series.type.empty()) return;  // stands for every type
      of_this.insert(series.type);
    }
    if (!types) {
      types = of_this;
    } else {
      std::erase_if(*types, [&](const std::string& type) { return !of_this.contains(type); });
    }
  }
  request.spot_types = types;
  // Types that clouds have retired since were to be had then.
  if (types) request.named.insert(types->begin(), types->end());
}

Result<BacktestOptions> options_of(const BacktestFlags& flags) {
  if (!(flags.confidence > 0 && flags.confidence < 1))
    return fail("--confidence {}: want a number between 0 and 1, for example 0.95", flags.confidence);
  BacktestOptions options{.confidence = flags.confidence, .starts = flags.starts, .seed = flags.seed};
  const auto policy = policy_named(flags.policy);
  const std::initializer_list<PolicyName> lossless{PolicyName::liveput, PolicyName::reactive, PolicyName::persist,
                                                   PolicyName::ideal};
  if (!policy || std::find(lossless.begin(), lossless.end(), *policy) == lossless.end())
    return fail("--policy '{}': want liveput, reactive, persist or ideal", flags.policy);
  options.policy = *policy;
  for (const auto& [flag, text, into] :
       {std::tuple("--restart", &flags.restart, &options.figures.restart),
        std::tuple("--checkpoint-every", &flags.checkpoint_every, &options.figures.checkpoint_every)}) {
    if (text->empty()) continue;
    const auto time = time_of(flag, *text);
    if (!time) return unexpected(time.error());
    *into = *time;
  }
  if (!flags.since.empty()) {
    options.since_unix = parse_time(flags.since.size() == 10 ? flags.since + "T00:00:00Z" : flags.since);
    if (!options.since_unix)
      return fail("--since '{}': want a date, 2023-02-20, or a time, 2023-02-20T06:00:00Z", flags.since);
  }
  return options;
}

Result<BacktestInputs> inputs_of(const BacktestFlags& flags) {
  BacktestInputs inputs;
  auto options = options_of(flags);
  if (!options) return unexpected(options.error());
  inputs.options = *std::move(options);
  auto question = question_of(flags);
  if (!question) return unexpected(question.error());
  inputs.question = *std::move(question);
  if (const auto ok = limit(flags, inputs.question); !ok) return unexpected(ok.error());
  auto catalog = read_catalogs(flags.catalog);
  if (!catalog) return unexpected(catalog.error());
  inputs.catalog = *std::move(catalog);
  auto profile = load_profile(inputs.question.profile);
  if (!profile) return unexpected(profile.error());
  inputs.profile = *std::move(profile);
  if (inputs.question.train)
    fit_to_job(*inputs.question.train, inputs.catalog, inputs.profile, inputs.question.request);
  if (const auto applied = flags.step.apply(inputs.profile); !applied) return unexpected(applied.error());
  if (const auto known = known_resources(inputs.question.resources, inputs.catalog); !known)
    return unexpected(known.error());
  for (const std::string& path : flags.traces) {
    auto trace = flags.flags.load(path);
    if (!trace) return unexpected(trace.error());
    inputs.traces.push_back(*std::move(trace));
  }
  for (const Trace& trace : inputs.traces) {
    const bool nameless = std::any_of(trace.series.begin(), trace.series.end(), [](const Series& series) {
      return series.type.empty() && !series.prices.empty();
    });
    if (nameless)
      inputs.question.notes.push_back(fmt::format(
          "trace {} has prices, but not of which type: the catalogue's are paid; --type names it", trace.name));
  }
  return inputs;
}

/// As a plan promises on a trace, and pays. The inputs stay where they are.
Result<std::optional<Purse>> promise(BacktestInputs& inputs) {
  PlanRequest& request = inputs.question.request;
  auto usual = shipped_weather();
  if (!usual) return unexpected(usual.error());
  PlanWeather weather{.usual = *std::move(usual)};
  promise_in(weather, inputs.options.confidence, inputs.catalog, inputs.profile, request);
  request.risk = {};  // each trace has its own
  keep_to_types(inputs.traces, request);
  std::vector<std::string>& notes = inputs.question.notes;
  for (const Trace& trace : inputs.traces) {
    weather.trace = trace;
    for (const auto& text : weather.notes(inputs.profile, request)) {
      if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
    }
  }
  if (as_published(request)) return std::nullopt;
  auto tariffs = shipped_tariffs();
  if (!tariffs) return unexpected(tariffs.error());
  return Purse(inputs.profile, inputs.question.job, inputs.catalog, *std::move(tariffs), weather.usual.start);
}

/// Of a run that has ended, in its own weather.
int backtest_of_run(const BacktestFlags& flags) {
  const auto options = options_of(flags);
  if (!options) return bad_input(options.error());
  if (!flags.traces.empty())
    return bad_input({fmt::format("{}: a run has its own weather: --trace is for jobs", flags.job)});
  if (!flags.output.empty())
    return bad_input({fmt::format("{}: -o is for jobs; 'mayfly report' shows a run", flags.job)});
  const auto catalog = read_catalogs(flags.catalog);
  if (!catalog) return bad_input(catalog.error());
  const auto test = load_run_backtest(flags.job, *catalog, options->figures);
  if (!test) return bad_input(test.error());
  if (flags.json) {
    print_json(run_backtest_json(*test));
  } else {
    fmt::print("{}", run_backtest_text(*test));
  }
  return kDone;
}

/// `--trace A B` takes all that follows, the job too where it stands last.
void find_job_among_traces(BacktestFlags& flags) {
  if (!flags.job.empty() || !flags.profile.empty() || flags.traces.size() < 2) return;
  const auto extension = std::filesystem::path(flags.traces.back()).extension();
  if (extension != ".yaml" && extension != ".yml") return;
  flags.job = flags.traces.back();
  flags.traces.pop_back();
}

int backtest(BacktestFlags flags) {
  find_job_among_traces(flags);
  std::error_code error;
  if (!flags.job.empty() && std::filesystem::is_directory(flags.job, error)) return backtest_of_run(flags);
  if (flags.traces.empty())
    return bad_input({"--trace: want the past to start in: a file, or the name of a shipped trace"});
  auto inputs = inputs_of(flags);
  if (!inputs) return bad_input(inputs.error());
  const auto purse = promise(*inputs);
  if (!purse) return bad_input(purse.error());
  PlanRequest& request = inputs->question.request;
  if (*purse) (*purse)->charge(request);
  const auto start = std::chrono::steady_clock::now();
  const auto test = mayfly::backtest(inputs->profile, inputs->catalog, request, inputs->traces, inputs->options);
  if (!test) return bad_input(test.error());
  const Summary summary = summary_of(*test);
  const BacktestContext context{.job = inputs->profile.name,
                                .target = words(request.target),
                                .test = *test,
                                .summary = summary,
                                .options = inputs->options,
                                .took = std::chrono::steady_clock::now() - start};
  if (!flags.output.empty()) {
    if (const auto saved = save_text(flags.output, backtest_html(context)); !saved) return bad_input(saved.error());
  }
  if (flags.json) {
    Json document = backtest_json(context);
    document["notes"] = inputs->question.notes;
    print_json(document);
  } else {
    fmt::print("{}", backtest_text(context));
  }
  for (const std::string& text : inputs->question.notes) note(text);
  return summary.planned > 0 ? kDone : kNo;
}

}  // namespace

void add_backtest(CLI::App& program, int& code) {
  auto flags = std::make_shared<BacktestFlags>();
  auto* verb =
      program.add_subcommand("backtest", "promised against kept, and the money, at every start in a recorded past");
  verb->add_option("job", flags->job, "job.yaml (or give --profile), or the folder of a run that has ended");
  verb->add_option("--profile", flags->profile, "profile.json, or the name of a shipped profile");
  verb->add_option("--trace", flags->traces,
                   "traces to start in, each a past of its own: files, or names of shipped ones");
  verb->add_option("--since", flags->since, "no start before this date, of dated traces: 2023-02-20");
  verb->add_option("--deadline", flags->deadline, "90s, 15m, 6h, 2d, 1h30m");
  flags->target.add_to(*verb);
  verb->add_option("--confidence", flags->confidence, "wanted chance of keeping the deadline, between 0 and 1")
      ->capture_default_str();
  verb->add_option("--starts", flags->starts, "starts, evenly over all traces together")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  verb->add_option("--quota", flags->quota, "most machines of a type: p3.2xlarge=1; '*=8' for all not named");
  verb->add_option("--market", flags->market, "any of spot,on-demand,serverless (default: all)");
  verb->add_option("--predictor", flags->predictor, "queue, spotdnn, cynthia, lambda or additive")
      ->capture_default_str();
  verb->add_option("--catalog", flags->catalog,
                   "catalogue files or names, separated by commas (default: the shipped one)");
  verb->add_option("--policy", flags->policy, "of the brain: liveput, reactive, persist or ideal")
      ->capture_default_str();
  verb->add_option("--restart", flags->restart,
                   "of the rules compared with: from renting a cluster anew to its first step (default 2m)");
  verb->add_option("--checkpoint-every", flags->checkpoint_every,
                   "of the same, of training time; what came after it is lost with the machines (default 10m)");
  verb->add_option("--seed", flags->seed, "of the prediction's error at each start")
      ->capture_default_str()
      ->check([](const std::string& seen) { return seen.starts_with('-') ? "want 0 or more" : ""; }, "");
  flags->step.add_to(*verb);
  flags->flags.add_to(*verb);
  verb->add_option("-o,--output", flags->output, "write one self-contained HTML page");
  verb->add_flag("--json", flags->json, "print one JSON document");
  verb->footer(
      "Example: mayfly backtest --profile spotdnn-resnet110 --deadline 45m --loss 0.8 --trace drought --type "
      "p3.2xlarge -o backtest.html\n         mayfly backtest mayfly-runs/NAME\nAt each start only what the trace had "
      "told until then is known. Exit code 3: no "
      "start has a plan with the wanted chance.");
  verb->callback([flags, &code] { code = backtest(*flags); });
}

}  // namespace mayfly::cli
