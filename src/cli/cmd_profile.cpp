#include <fmt/core.h>

#include <memory>

#include "base/file.h"
#include "base/how_many.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/measured.h"
#include "cli/stall_text.h"
#include "profile/log_fit.h"
#include "profile/merge.h"

namespace mayfly::cli {
namespace {

struct ProfileFlags {
  FromLog asked{};
  MeasureFlags job{};
  StallFlags stalls{};
  std::vector<std::string> merge{};
  std::string parameters{};
  std::string out{};
  bool no_loss = false;
  bool json = false;
};

/// "25.6M", "1.3B" or a bare number.
Result<double> parse_count(const std::string& text) {
  double factor = 1;
  std::string_view digits = text;
  const std::string_view units = "kKmMbBgG";
  if (!text.empty() && units.find(text.back()) != std::string_view::npos) {
    digits.remove_suffix(1);
    factor = text.back() == 'k' || text.back() == 'K' ? 1e3 : text.back() == 'm' || text.back() == 'M' ? 1e6 : 1e9;
  }
  const auto number = parse_number(digits);
  if (!number || *number <= 0 || *number * factor > 1e15)
    return fail("--parameters '{}': want how many, for example 25.6M", text);
  return *number * factor;
}

std::string text_of(const LogProfile& found) {
  const StepTime& step = found.step;
  Table table({"", ">measured", ">p10", ">p90"});
  const auto rate = [](const std::optional<Seconds>& time, double of) {
    return time ? fmt::format("{:.4g}", of / time->count()) : "-";
  };
  table.add({"step, s", fmt::format("{:.4g}", step.mean.count()),
             step.p10 ? fmt::format("{:.4g}", step.p10->count()) : "-",
             step.p90 ? fmt::format("{:.4g}", step.p90->count()) : "-"});
  table.add({"steps/s", rate(step.mean, 1), rate(step.p90, 1), rate(step.p10, 1)});
  table.add({"samples/s", rate(step.mean, found.batch), rate(step.p90, found.batch), rate(step.p10, found.batch)});
  std::string text = table.text();
  text += fmt::format("from {}; left out: {} of warm-up, {} stalls; restarts seen: {}\n",
                      how_many(step.intervals, "interval"), step.warm_up, step.stalls, step.restarts);
  if (found.fit)
    text += fmt::format(
        "loss: {:.4g} at first, falls towards {:.4g}; from {} points, {:.2g} off each, steps to a loss "
        "+-{:.0f} %\n",
        found.fit->curve.initial, found.fit->curve.floor, found.losses, found.fit->residual_sd,
        100 * found.fit->curve.relative_sd);
  return text;
}

Json json_of(const LogProfile& found) {
  const StepTime& step = found.step;
  Json json{{"step_s", step.mean.count()}};
  if (step.p10) json["step_s_p10"] = step.p10->count();
  if (step.p90) json["step_s_p90"] = step.p90->count();
  json["basis"] = "measured";
  json["samples_per_s"] = found.batch / step.mean.count();
  json["intervals"] = step.intervals;
  json["warm_up"] = step.warm_up;
  json["stalls"] = step.stalls;
  json["restarts"] = step.restarts;
  json["losses"] = found.losses;
  json["loss_residual_sd"] = found.fit ? Json(found.fit->residual_sd) : Json();
  json["notes"] = found.notes;
  json["profile"] = found.profile;
  return json;
}

Result<LogProfile> read(ProfileFlags& options) {
  FromLog& asked = options.asked;
  if (!options.parameters.empty()) {
    const auto count = parse_count(options.parameters);
    if (!count) return unexpected(count.error());
    asked.parameters = *count;
  }
  asked.loss = !options.no_loss;
  if (asked.name.empty()) asked.name = std::filesystem::path(asked.file).stem().string();
  const auto text = load_text(asked.file);
  if (!text) return unexpected(text.error());
  auto log = parse_training_log(*text, asked.file);
  if (!log) return unexpected(log.error());
  return profile_from_log(*std::move(log), asked);
}

/// A profile as it stands in a file, once it is known to be one.
Result<Json> load_json(const std::string& path) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  if (const auto parsed = parse_profile(*text, path); !parsed) return unexpected(parsed.error());
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return fail("{}: want JSON, as 'mayfly profile -o' writes it", path);
  return json;
}

/// Together with an older profile, and into a file, where that is wanted.
Result<Json> keep(Json profile, const ProfileFlags& options, const std::string& older) {
  if (!older.empty()) {
    const auto before = load_json(older);
    if (!before) return unexpected(before.error());
    auto merged = merged_profiles(*before, profile);
    if (!merged) return unexpected(merged.error());
    profile = *std::move(merged);
  }
  if (options.out.empty()) return profile;
  if (const auto saved = save_profile(options.out, profile); !saved) return unexpected(saved.error());
  return profile;
}

int from_log(ProfileFlags options) {
  auto found = read(options);
  if (!found) return bad_input(found.error());
  auto kept = keep(found->profile, options, options.merge.empty() ? "" : options.merge[0]);
  if (!kept) return bad_input(kept.error());
  found->profile = *std::move(kept);
  if (options.json) {
    print_json(json_of(*found));
    return kDone;
  }
  fmt::print("{}", text_of(*found));
  for (const std::string& text : found->notes) note(text);
  if (!options.out.empty()) fmt::print("profile: {}\n", options.out);
  return kDone;
}

/// What was asked beside the profile.
struct StallAnswer {
  StallReport report{};
  std::vector<WhatIf> what_ifs{};
  Advice advice{};
  std::string text{};
};

/// What cannot be understood is said before a minute of measuring.
Result<void> check(const StallFlags& flags) {
  if (!flags.wanted && (!flags.what_if.empty() || !flags.network.empty()))
    return fail("profile: --what-if and --network are of no use without --stalls");
  if (const auto market = parse_market(flags.market); !market) return fail("--market: {}", market.error().message);
  const auto rate = flags.network.empty() ? std::optional(1.0) : parse_number(flags.network);
  if (!rate || *rate <= 0) return fail("--network '{}': want MB/s, for example 625", flags.network);
  for (const std::string& question : flags.what_if) {
    if (const auto parsed = parse_what_if(question, {.device = 1}); !parsed) return unexpected(parsed.error());
  }
  return {};
}

Result<StallAnswer> stall_answer(const ProfileFlags& options) {
  auto report = measured_stalls(options.job, options.stalls);
  if (!report) return unexpected(report.error());
  StallAnswer answer{.report = *std::move(report)};
  if (answer.report.rounds == 0) return answer;
  answer.what_ifs = usual_what_ifs(answer.report.path);
  for (const std::string& question : options.stalls.what_if)
    answer.what_ifs.push_back(*parse_what_if(question, answer.report.path));
  const auto catalog = read_catalogs(options.job.catalog);
  if (!catalog) return unexpected(catalog.error());
  answer.advice =
      advice(answer.report.path, *catalog, catalog->find(options.job.type), *parse_market(options.stalls.market));
  answer.text = advice_text(answer.advice, options.job.type);
  return answer;
}

void print_stalls(const StallAnswer& answer) {
  fmt::print("\n{}\n{}\n{}\n", stall_text(answer.report), what_if_text(answer.what_ifs), answer.text);
  constexpr int kCertain = 6;
  if (answer.report.rounds < kCertain)
    note(fmt::format("{} rounds are too few for an interval of 95 %: more time (--for) gives more",
                     answer.report.rounds));
}

int from_job(ProfileFlags options) {
  if (const auto sound = check(options.stalls); !sound) return bad_input(sound.error());
  if (!options.merge.empty()) {
    if (const auto older = load_json(options.merge[0]); !older) return bad_input(older.error());
  }
  if (options.stalls.wanted) {
    const auto time = parse_duration(options.job.time);  // half for each
    if (time) options.job.time = fmt::format("{}s", time->count() / 2);
  }
  auto found = measured(options.job);
  if (!found) return bad_input(found.error());
  std::optional<StallAnswer> stalls;
  if (options.stalls.wanted && !found->interrupted) {
    auto answer = stall_answer(options);
    if (!answer) return bad_input(answer.error());
    found->interrupted = answer->report.interrupted;
    if (answer->report.rounds > 0) {
      stalls = *std::move(answer);
      found->profile["stalls"] = stalls_json(stalls->report);
    }
  }
  auto kept = keep(found->profile, options, options.merge.empty() ? "" : options.merge[0]);
  if (!kept) return bad_input(kept.error());
  const auto fits = fitting_batch(found->profile, options.job);
  if (options.json) {
    Json json{{"profile", *kept}, {"notes", found->notes}, {"interrupted", found->interrupted}};
    if (fits) json["largest_batch"] = fits->batch;
    if (stalls) {
      json["stalls"] = stalls_json(stalls->report);
      json["path"] = path_json(stalls->report);
      json["what_if"] = what_if_json(stalls->what_ifs);
      json["advice"] = advice_json(stalls->advice, stalls->text);
    }
    print_json(json);
    return kDone;
  }
  fmt::print("{}", measurement_text(*found, options.job.type));
  if (fits)
    fmt::print("batches of up to {:g} samples fit the {:.4g} GB of {}, by what they take here\n", fits->batch,
               fits->memory_mb / 1000, fits->device);
  if (stalls) print_stalls(*stalls);
  for (const std::string& text : found->notes) note(text);
  if (found->interrupted) note("interrupted: the profile holds what was measured so far");
  if (!options.out.empty()) fmt::print("profile: {}\n", options.out);
  return kDone;
}

int merge_files(const ProfileFlags& options) {
  if (options.merge.size() != 2) return bad_input({"profile --merge: want two profiles, or a job and one profile"});
  if (options.out.empty()) return bad_input({"profile --merge: want -o FILE for what comes out"});
  auto newer = load_json(options.merge[1]);
  if (!newer) return bad_input(newer.error());
  const auto kept = keep(*std::move(newer), options, options.merge[0]);
  if (!kept) return bad_input(kept.error());
  if (options.json) {
    print_json({{"profile", *kept}});
  } else {
    fmt::print("profile: {}\n", options.out);
  }
  return kDone;
}

int profile(const ProfileFlags& options) {
  const bool job = !options.job.job.empty();
  const bool log = !options.asked.file.empty();
  if (job && log) return bad_input({"profile: a job or --from LOG, not both"});
  if ((job || log) && options.merge.size() > 1) return bad_input({"profile --merge: one profile is enough here"});
  if (job) return from_job(options);
  if (log) return from_log(options);
  if (!options.merge.empty()) return merge_files(options);
  return bad_input({"profile: want JOB.yaml, --from LOG or --merge A B"});
}

}  // namespace

void add_profile(CLI::App& program, int& code) {
  auto options = std::make_shared<ProfileFlags>();
  auto* verb = program.add_subcommand("profile", "measure a job on this machine, or learn from the log of a training");
  verb->add_option("job", options->job.job, "job.yaml: real workers are started and train for a while");
  verb->add_option("--for", options->job.time, "how long they train; starting them comes on top")
      ->capture_default_str();
  verb->add_option("--workers", options->job.workers,
                   "workers for what happens between them; this machine's cores are dealt out among them (default: 2, "
                   "or 1 on one core)")
      ->check(CLI::Range(1, 64));
  verb->add_option("--merge", options->merge,
                   "an older profile of the same job, or two to put together: types of both, measured before scaled, "
                   "newer before older")
      ->expected(1, 2);
  verb->add_option("--memory", options->job.memory_gb,
                   "GB of a device that batches must fit (default: the type's GPU, or this machine)")
      ->check(above_zero());
  verb->add_flag("--stalls", options->stalls.wanted,
                 "also find where time is lost (interconnect, prep, fetch) and what ends that for the least money; "
                 "takes half of the time");
  verb->add_option("--network", options->stalls.network,
                   "with --stalls: also how much slower it is with this rate, in MB/s, between the workers");
  verb->add_option(
      "--what-if", options->stalls.what_if,
      "with --stalls: what would be faster: cache=50%,threads=4,cores=8,storage=200,device=2x,machines=2; as often "
      "as you like");
  verb->add_option("--market", options->stalls.market, "of the money that --stalls speaks of")->capture_default_str();
  verb->add_option("--catalog", options->job.catalog, "catalogue that --type is of (default: the shipped one)");
  verb->add_option("--from", options->asked.file,
                   "CSV with a heading (TensorBoard, Lightning, wandb), trainer_state.json, JSON lines, or lines with "
                   "step, loss and time");
  verb->add_option("--batch", options->asked.batch,
                   "samples per step of the whole machine, where the log does not tell")
      ->check(above_zero());
  verb->add_option("--type", options->asked.type, "instance type that it ran on, or that this machine counts as")
      ->capture_default_str();
  verb->add_option("--samples", options->asked.samples, "samples of one epoch, where the log does not tell")
      ->check(above_zero());
  verb->add_option("--parameters", options->parameters, "of the model: 25.6M, 1.3B; 4 bytes each");
  verb->add_option("--name", options->asked.name, "of the profile (default: the log's)");
  verb->add_flag("--no-loss", options->no_loss, "leave the loss curve out");
  verb->add_option("-o,--output", options->out, "write the profile for predict and plan");
  verb->add_flag("--json", options->json, "print one JSON document");
  verb->footer(
      "A job's steps are measured at five batch sizes until the mean is known to 2 % (95 % interval) or the time is "
      "up; "
      "warm-up and single outliers are left out. Ctrl-C ends it early and keeps what there is.\n"
      "The log is taken for that of one machine of the type. The first tenth of its intervals (at most 20) is left "
      "out, "
      "as are those over five times the median; steps or times that go back are restarts.\nExample: mayfly profile "
      "job.yaml --for 60s -o profile.json\nExample: mayfly profile --from metrics.csv --batch 128 --type g4dn.xlarge "
      "--parameters 25.6M -o profile.json");
  verb->callback([options, &code] {
    options->job.type = options->asked.type;
    code = profile(*options);
  });
}

}  // namespace mayfly::cli
