#include "status/summary.h"

#include <algorithm>
#include <array>

#include "base/fields.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

constexpr std::string_view kSummaryFormat = "mayfly-summary/1";

Json emulated_json(const Emulation& emulation) {
  Json types = Json::array();
  for (const EmulatedType& type : emulation.types)
    types.push_back({{"type", type.type},
                     {"cpu_share", type.cpu_share},
                     {"network_mb_per_s", type.network ? Json(in_megabytes(*type.network)) : Json(nullptr)}});
  return {{"slowdown", or_null(emulation.slowdown)}, {"types", types}};
}

Json loader_json(const Fed& fed) {
  return {{"hits", fed.hits},
          {"from_peers", fed.from_peers},
          {"from_storage", fed.from_storage},
          {"peers_failed", fed.peers_failed},
          {"prepared", fed.prepared},
          {"received", fed.received},
          {"fetch_s", fed.fetch_s},
          {"prep_s", fed.prep_s},
          {"wait_s", fed.wait_s}};
}

}  // namespace

std::string_view name(RunEnd end) {
  switch (end) {
    case RunEnd::trained:
      return "trained";
    case RunEnd::budget:
      return "budget";
    case RunEnd::stopped:
      return "stopped";
    case RunEnd::unable:
      return "unable";
  }
  return "";
}

Json summary_json(const RunSummary& summary) {
  return {{"format", kSummaryFormat},
          {"end", name(summary.end)},
          {"loss", or_null(summary.loss)},
          {"validation_loss", or_null(summary.validation_loss)},
          {"accuracy", or_null(summary.accuracy)},
          {"samples", summary.samples},
          {"epochs", summary.epochs},
          {"samples_repeated", summary.samples_repeated},
          {"samples_skipped", summary.samples_skipped},
          {"samples_redone", summary.samples_redone},
          {"preemptions", summary.preemptions},
          {"time_s", summary.time.count()},
          {"predicted_time_s", or_null(summary.forecast.time)},
          {"cost_usd", or_null(summary.cost)},
          {"predicted_cost_usd", or_null(summary.forecast.cost)},
          {"recovery_s", {{"p50", or_null(summary.recovery_p50)}, {"max", or_null(summary.recovery_max)}}},
          {"staleness", {{"mean", or_null(summary.staleness_mean)}, {"max", or_null(summary.staleness_max)}}},
          {"strangers", summary.strangers},
          {"missed", summary.missed},
          {"emulated", summary.emulated ? emulated_json(*summary.emulated) : Json()},
          {"loader", summary.loader ? loader_json(*summary.loader) : Json()},
          {"checkpoint", summary.checkpoint}};
}

Result<RunSummary> load_summary(const std::filesystem::path& directory) {
  const auto path = directory / "summary.json";
  const auto text = load_own_text(path);
  if (!text) return unexpected(text.error());
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || Fields(json).text("format") != kSummaryFormat)
    return fail("{}: want the summary of a run, format {}", path.string(), kSummaryFormat);
  const Fields fields(json);
  const std::array ends{RunEnd::trained, RunEnd::budget, RunEnd::stopped, RunEnd::unable};
  const auto end = std::find_if(ends.begin(), ends.end(), [&](RunEnd e) { return name(e) == fields.text("end"); });
  if (end == ends.end())
    return fail("{}: end '{}', want trained, budget or stopped", path.string(), fields.text("end"));
  RunSummary summary{.end = *end,
                     .loss = fields.real("loss"),
                     .validation_loss = fields.real("validation_loss"),
                     .accuracy = fields.real("accuracy"),
                     .samples = fields.integer("samples"),
                     .epochs = fields.real("epochs").value_or(0),
                     .samples_repeated = fields.integer("samples_repeated"),
                     .samples_skipped = fields.integer("samples_skipped"),
                     .samples_redone = fields.integer("samples_redone"),
                     .preemptions = static_cast<int>(fields.integer("preemptions")),
                     .time = Seconds(fields.real("time_s").value_or(0)),
                     .cost = fields.money("cost_usd"),
                     .forecast = {.time = fields.time("predicted_time_s"), .cost = fields.money("predicted_cost_usd")},
                     .recovery_p50 = fields.object("recovery_s").time("p50"),
                     .recovery_max = fields.object("recovery_s").time("max"),
                     .staleness_mean = fields.object("staleness").real("mean"),
                     .staleness_max = fields.object("staleness").real("max"),
                     .strangers = fields.integer("strangers"),
                     .checkpoint = fields.text("checkpoint")};
  for (const Json& promise : fields.list("missed")) {
    if (promise.is_string()) summary.missed.push_back(promise.get<std::string>());
  }
  return summary;
}

}  // namespace mayfly
