#include <fmt/core.h>

#include <memory>

#include "base/file.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "profile/log_fit.h"

namespace mayfly::cli {
namespace {

struct Options {
  FromLog asked{};
  std::string job{};
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
  text += fmt::format("from {} interval{}; left out: {} of warm-up, {} stalls; restarts seen: {}\n", step.intervals,
                      step.intervals == 1 ? "" : "s", step.warm_up, step.stalls, step.restarts);
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

Result<LogProfile> read(Options& options) {
  if (!options.job.empty())
    return fail("{}: a job cannot be measured yet: give the log of a training with --from LOG", options.job);
  FromLog& asked = options.asked;
  if (asked.file.empty()) return fail("profile: want --from LOG");
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

int profile(Options options) {
  const auto found = read(options);
  if (!found) return bad_input(found.error());
  if (!options.out.empty()) {
    const std::string text = found->profile.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    // What is written must be what predict and plan can read.
    if (const auto parsed = parse_profile(text, options.out); !parsed) return bad_input(parsed.error());
    if (const auto saved = save_text(options.out, text); !saved) return bad_input(saved.error());
  }
  if (options.json) {
    print_json(json_of(*found));
    return kDone;
  }
  fmt::print("{}", text_of(*found));
  for (const std::string& text : found->notes) note(text);
  if (!options.out.empty()) fmt::print("profile: {}\n", options.out);
  return kDone;
}

}  // namespace

void add_profile(CLI::App& program, int& code) {
  auto options = std::make_shared<Options>();
  auto* verb = program.add_subcommand("profile", "learn a job's speed and loss from the log of a training");
  verb->add_option("job", options->job, "a job to measure: not possible yet, only --from works so far");
  verb->add_option("--from", options->asked.file,
                   "CSV with a heading (TensorBoard, Lightning, wandb), trainer_state.json, JSON lines, or lines with "
                   "step, loss and time");
  verb->add_option("--batch", options->asked.batch,
                   "samples per step of the whole machine, where the log does not tell")
      ->check(CLI::PositiveNumber);
  verb->add_option("--type", options->asked.type, "instance type that it ran on")->capture_default_str();
  verb->add_option("--samples", options->asked.samples, "samples of one epoch, where the log does not tell")
      ->check(CLI::PositiveNumber);
  verb->add_option("--parameters", options->parameters, "of the model: 25.6M, 1.3B; 4 bytes each");
  verb->add_option("--name", options->asked.name, "of the profile (default: the log's)");
  verb->add_flag("--no-loss", options->no_loss, "leave the loss curve out");
  verb->add_option("-o,--output", options->out, "write the profile for predict and plan");
  verb->add_flag("--json", options->json, "print one JSON document");
  verb->footer(
      "The log is taken for that of one machine of the type. The first tenth of its intervals (at most 20) is left "
      "out, "
      "as are those over five times the median; steps or times that go back are restarts.\nExample: mayfly profile "
      "--from metrics.csv --batch 128 --type g4dn.xlarge --parameters 25.6M -o profile.json");
  verb->callback([options, &code] { code = profile(*options); });
}

}  // namespace mayfly::cli
