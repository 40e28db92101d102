#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "base/file.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/measured.h"
#include "cli/plan_text.h"
#include "cli/question.h"
#include "cli/risk_flags.h"
#include "cli/server_setup.h"
#include "cli/step_flags.h"
#include "report/bill_json.h"
#include "report/purse.h"
#include "simulate/usual_weather.h"

namespace mayfly::cli {
namespace {

struct PlanFlags {
  std::string job{};
  std::string profile{};
  std::string deadline{};
  TargetOptions target{};
  std::optional<double> budget{};
  std::string quota{};
  bool retired = false;
  std::string market{};
  std::string predictor = "queue";
  std::string search = "exact";
  std::string catalog{};
  std::string server{};
  int most_servers = 4;
  std::string existing{};
  std::string progress{};
  std::string exchange{};
  StepFlags step{};
  std::string output{};
  bool json = false;
  bool no_profile = false;
  std::string profile_time = MeasureFlags{}.time;
  RiskFlags risk{};
};

/// "loss=0.9,elapsed=1790s"
Result<Progress> parse_progress(const std::string& text) {
  Progress progress;
  bool reached = false;
  for (const auto part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto key = trimmed(part.substr(0, equals));
    const auto value = equals == std::string_view::npos ? std::string_view() : trimmed(part.substr(equals + 1));
    if (key == "elapsed") {
      const auto elapsed = parse_duration(value);
      if (!elapsed) return unexpected(elapsed.error());
      progress.elapsed = *elapsed;
      continue;
    }
    const auto number = parse_number(value);
    const bool known = key == "loss" || key == "epochs" || key == "steps";
    if (!known || !number || (key != "loss" && *number < 0)) {
      return fail("--progress '{}': want loss=, epochs= or steps=, and elapsed=, for example loss=0.9,elapsed=1790s",
                  text);
    }
    if (key == "loss") progress.reached = ToLoss{*number};
    if (key == "epochs") progress.reached = ForEpochs{*number};
    if (key == "steps") progress.reached = ForSteps{*number};
    reached = true;
  }
  if (!reached) return fail("--progress '{}': want what was reached, for example loss=0.9", text);
  return progress;
}

/// The job file first, then what the command line overrides.
Result<void> apply_options(const PlanFlags& options, Question& question) {
  PlanRequest& request = question.request;
  if (!options.profile.empty()) question.profile = find_profile(options.profile).string();
  if (!options.deadline.empty()) {
    const auto deadline = parse_duration(options.deadline);
    if (!deadline) return fail("--deadline: {}", deadline.error().message);
    request.deadline = *deadline;
  }
  const auto target = options.target.target();
  if (!target) return unexpected(target.error());
  if (*target) request.target = **target;
  if (options.budget && !std::isfinite(*options.budget))
    return fail("--budget: '{}', want a finite number of USD", *options.budget);
  if (options.budget) request.budget = Usd{*options.budget};
  const auto machines = [](const std::string& text, const char* flag, std::vector<MachineCount>& out) -> Result<void> {
    if (text.empty()) return {};
    const auto parsed = parse_machines(text);
    if (!parsed) return fail("{}: {}", flag, parsed.error().message);
    out = *parsed;
    return {};
  };
  if (!options.quota.empty()) question.quota = options.quota;
  if (!question.quota.empty()) {
    auto quotas = parse_quotas(question.quota);
    if (!quotas && options.quota.empty()) return fail("{}: objective.quota: {}", options.job, quotas.error().message);
    if (!quotas) return fail("--quota: {}", quotas.error().message);
    request.quota = std::move(quotas->types);
    request.families = std::move(quotas->families);
  }
  if (const auto ok = machines(options.existing, "--existing", request.existing); !ok) return ok;
  if (!options.server.empty()) {
    // m5.xlarge=2 or 2xm5.xlarge name a number, m5.xlarge alone does not.
    const auto digits = options.server.find_first_not_of("0123456789");
    const bool counted = options.server.find('=') != std::string::npos ||
                         (digits > 0 && digits != std::string::npos && options.server[digits] == 'x');
    if (counted) {
      if (const auto ok = machines(options.server, "--server", request.servers); !ok) return ok;
    } else {
      for (const auto type : split(options.server, ',')) request.servers.push_back({std::string(trimmed(type)), 0});
    }
  }
  if (!options.market.empty()) {
    request.markets.clear();
    for (const auto word : split(options.market, ',')) {
      const auto market = parse_market(trimmed(word));
      if (!market) return fail("--market: {}", market.error().message);
      request.markets.insert(*market);
    }
  }
  if (!options.progress.empty()) {
    const auto progress = parse_progress(options.progress);
    if (!progress) return unexpected(progress.error());
    request.progress = *progress;
  }
  const auto predictor = parse_predictor(options.predictor);
  if (!predictor) return unexpected(predictor.error());
  request.predictor = *predictor;
  const auto search = parse_search(options.search);
  if (!search) return unexpected(search.error());
  request.search = *search;
  request.most_servers = options.most_servers;
  request.retired = options.retired;
  if (!options.exchange.empty()) {
    request.exchanges.clear();
    for (const auto word : split(options.exchange, ',')) {
      const auto meeting = parse_meeting(trimmed(word));
      if (!meeting) return fail("--exchange: {}", meeting.error().message);
      request.exchanges.insert(*meeting);
    }
  }
  return {};
}

Result<Question> question_of(const PlanFlags& options) {
  Question question;
  bool measurable = false;
  constexpr double kUnset = -1;
  question.request.target = ForSteps{kUnset};
  if (!options.job.empty()) {
    const auto text = load_text(options.job);
    const auto job = text ? parse_job(*text, options.job) : unexpected(text.error());
    if (!job) return unexpected(job.error());
    apply_job(*job, options.job, question);
    measurable = job->train && !job->train->model.is_script();
  }
  if (const auto ok = apply_options(options, question); !ok) return unexpected(ok.error());
  if (question.profile.empty() && !measurable) {
    return fail(
        "{}: no profile: name one with --profile or 'profile:' in the job file; a job with a built-in model under "
        "'train:' would be measured",
        options.job.empty() ? "plan" : options.job);
  }
  if (question.request.target == Target(ForSteps{kUnset}))
    return fail("{}: no target: want one of --loss, --epochs and --steps (or 'objective:' in the job file)",
                options.job.empty() ? "plan" : options.job);
  if (question.profile.empty()) {
    auto taken = profile_for(options.job, options.no_profile ? "" : options.profile_time, question.notes);
    if (!taken) return unexpected(taken.error());
    question.profile = *std::move(taken);
  }
  return question;
}

int plan(const PlanFlags& options) {
  auto question = question_of(options);
  if (!question) return bad_input(question.error());
  const auto catalog = read_catalogs(options.catalog);
  if (!catalog) return bad_input(catalog.error());
  auto profile = load_profile(question->profile);
  if (!profile) {
    const bool of_job = !options.job.empty() && options.profile.empty();
    return bad_input(
        {of_job ? fmt::format("{}: profile: {}", options.job, profile.error().message) : profile.error().message});
  }
  if (question->train) fit_to_job(*question->train, *catalog, *profile, question->request);
  if (const auto applied = options.step.apply(*profile); !applied) return bad_input(applied.error());
  if (const auto known = known_resources(question->resources, *catalog); !known)
    return bad_input({fmt::format("{}: {}", options.job, known.error().message)});
  const auto weather = options.risk.load(question->request);
  if (!weather) return bad_input(weather.error());
  if (*weather) {
    promise_in(**weather, options.risk.confidence, *catalog, *profile, question->request);
    for (const auto& text : (*weather)->notes(*profile, question->request)) question->notes.push_back(text);
  }
  std::optional<Purse> purse;
  if (*weather && !as_published(question->request)) {
    auto tariffs = shipped_tariffs();
    if (!tariffs) return bad_input(tariffs.error());
    purse.emplace(*profile, question->job, *catalog, *std::move(tariffs), (*weather)->usual.start);
    purse->charge(question->request);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto answer = make_plan(*profile, *catalog, question->request);
  if (!answer) return bad_input(answer.error());
  const Seconds took = std::chrono::steady_clock::now() - start;
  const PlanContext context{.profile = *profile,
                            .catalog = *catalog,
                            .request = question->request,
                            .took = took,
                            .weather = *weather ? &**weather : nullptr};
  Json document = std::visit([&](const auto& result) { return plan_json(context, result); }, *answer);
  for (const auto& text : question->notes) document["notes"].push_back(text);
  std::optional<Bill> bill;
  if (const auto* made = std::get_if<Plan>(&*answer)) {
    if (purse) bill = purse->bill(context, *made);
    if (bill) put_bill(document, *bill);
  }
  if (!options.output.empty()) {
    if (const auto saved = save_text(options.output, document.dump(2) + "\n"); !saved) return bad_input(saved.error());
  }
  if (options.json) {
    print_json(document);
  } else {
    const bool colour = ::isatty(STDOUT_FILENO) != 0;
    std::visit([&](const auto& result) { fmt::print("{}", plan_text(context, result, colour)); }, *answer);
    if (bill && question->job.costs) fmt::print("\nBeside machine-hours:\n{}", bill_text(*bill));
  }
  for (const auto& text : question->notes) note(text);
  if (const auto* made = std::get_if<Plan>(&*answer)) {
    for (const auto& text : made->notes) note(text);
    for (const Market market : {Market::spot, Market::on_demand}) {
      std::vector<std::string> types;
      for (const auto& line : made->chosen.cluster) {
        if (line.market == market) types.push_back(line.type);
      }
      if (const auto warning = old_prices(*catalog, types, market)) note(*warning);
    }
    return kDone;
  }
  for (const auto& text : std::get<Infeasible>(*answer).notes) note(text);
  return kNo;
}

}  // namespace

void add_plan(CLI::App& program, int& code) {
  auto options = std::make_shared<PlanFlags>();
  auto* verb = program.add_subcommand("plan", "the cheapest cluster that keeps a promise, proven, with the runners-up");
  verb->add_option("job", options->job, "job.yaml (or give --profile)");
  verb->add_option("--profile", options->profile, "profile.json, or the name of a shipped profile");
  verb->add_option("--profile-for", options->profile_time, "how long such a job is measured")->capture_default_str();
  verb->add_flag("--no-profile", options->no_profile,
                 "do not measure a job that names no profile and has no fresh one (JOB.profile.json) beside it");
  verb->add_option("--deadline", options->deadline, "90s, 15m, 6h, 2d, 1h30m");
  options->target.add_to(*verb);
  verb->add_option("--budget", options->budget, "USD")->check(above_zero());
  verb->add_option("--quota", options->quota,
                   "most machines of a type: g3.8xlarge=5,p3.2xlarge=0; '*=8' for all not named (default: the "
                   "catalogue's, else 16); and as clouds have them, sums over a family: "
                   "vcpus:p=96,spot-vcpus:p=192,gpus:A100=8,spot-gpus:H100=8");
  verb->add_flag("--retired", options->retired, "take types, too, that clouds offer no longer to new customers");
  verb->add_option("--market", options->market, "any of spot,on-demand,serverless (default: all)");
  verb->add_option("--predictor", options->predictor, "queue, spotdnn, cynthia, lambda or additive")
      ->capture_default_str();
  verb->add_option("--search", options->search, "exact, window (the published systems' own) or exhaustive")
      ->capture_default_str();
  verb->add_option("--catalog", options->catalog,
                   "catalogue files or names, separated by commas (default: the shipped one)");
  verb->add_option(
      "--server", options->server,
      "server types to consider: m5.xlarge,c5n.4xlarge, or exactly m5.xlarge=2 (default: all without a GPU)");
  verb->add_option("--max-servers", options->most_servers, "most servers of one type")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  verb->add_option("--existing", options->existing, "machines already running, servers too: g3.16xlarge=3,m5.xlarge=1");
  verb->add_option("--progress", options->progress, "what they have reached: loss=0.9,elapsed=1790s");
  verb->add_option("--exchange", options->exchange,
                   "ways for gradients to meet that compete: any of none,ring,servers,pipeline (default: all that the "
                   "job can be planned with)");
  options->step.add_to(*verb);
  options->risk.add_to(*verb);
  verb->add_option("-o,--output", options->output, "write plan.json");
  verb->add_flag("--json", options->json, "print one JSON document");
  verb->footer(
      "Example: mayfly plan --profile spotdnn-resnet110 --deadline 45m --loss 0.8\nExit code 3: no plan keeps the "
      "promise; the constraint that binds is named.");
  verb->callback([options, &code] { code = plan(*options); });
}

}  // namespace mayfly::cli
