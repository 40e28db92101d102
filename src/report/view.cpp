#include "report/view.h"

#include <algorithm>

#include "base/fields.h"
#include "base/file.h"
#include "base/untrusted.h"
#include "job/job_spec.h"

namespace mayfly {
namespace {

Json null_if_empty(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json document_in(const std::filesystem::path& path) {
  const auto text = load_own_text(path);
  if (!text) return {};
  Json json = parsed_json(*text);
  return json.is_object() ? json : Json();
}

Json machine_json(const Tenancy& machine) {
  return {{"name", machine.name},
          {"type", machine.type},
          {"market", machine.market},
          {"usd_per_hour", machine.price.value},
          {"from_s", machine.from.count()},
          {"to_s", or_null(machine.to)},
          {"end", null_if_empty(machine.end)},
          {"notice_s", or_null(machine.notice)}};
}

Json machines_json(const Chronicle& chronicle) {
  Json list = Json::array();
  for (const Tenancy& machine : chronicle.gone()) list.push_back(machine_json(machine));
  for (const auto& [name, machine] : chronicle.present()) list.push_back(machine_json(machine));
  return list;
}

Json counts_json(const Chronicle& chronicle) {
  const Stairs& counts = chronicle.counts();
  Json series = Json::array();
  for (std::size_t kind = 0; kind < chronicle.kinds().size(); ++kind) {
    Json n = Json::array();
    for (std::size_t row = 0; row < counts.times().size(); ++row) n.push_back(counts.at(row, kind + 1));
    series.push_back(
        {{"type", chronicle.kinds()[kind].type}, {"market", chronicle.kinds()[kind].market}, {"n", std::move(n)}});
  }
  Json used = Json::array();
  for (std::size_t row = 0; row < counts.times().size(); ++row) used.push_back(counts.at(row, 0));
  return {{"t_s", counts.times()}, {"series", std::move(series)}, {"used", std::move(used)}};
}

Json shapes_json(const Stairs& shapes) {
  Json list = Json::array();
  for (std::size_t i = 0; i < shapes.times().size(); ++i)
    list.push_back({{"t_s", shapes.times()[i]},
                    {"data_parallel", shapes.at(i, 0)},
                    {"stages", shapes.at(i, 1)},
                    {"extra", shapes.at(i, 2)}});
  return list;
}

Json money_json(const Chronicle& chronicle) {
  const Stairs& rates = chronicle.rates();
  Json held = Json::array();
  std::size_t at = 0;
  for (const double time : chronicle.spent().times()) {
    while (at + 1 < rates.times().size() && rates.times()[at + 1] <= time) ++at;
    held.push_back(rates.times().empty() ? 0 : rates.at(at, 0));
  }
  return {{"t_s", chronicle.spent().times()}, {"usd", chronicle.spent().values()}, {"usd_per_hour", std::move(held)}};
}

Json validation_json(const Chronicle& chronicle) {
  Json times = Json::array(), losses = Json::array(), accuracies = Json::array();
  for (const auto& point : chronicle.validations()) {
    times.push_back(point.time.count());
    losses.push_back(point.loss);
    accuracies.push_back(or_null(point.accuracy));
  }
  return {{"t_s", std::move(times)}, {"loss", std::move(losses)}, {"accuracy", std::move(accuracies)}};
}

Json share_json(const Usage& usage) {
  const double total = usage.total();
  if (total <= 0) return {};
  return {{"useful", usage.useful / total},
          {"redundant", 0},
          {"reconfigure", usage.reconfigure / total},
          {"lost", usage.lost / total},
          {"idle", usage.idle / total}};
}

Json happenings_json(const Chronicle& chronicle) {
  Json list = Json::array();
  for (const Happening& happening : chronicle.happenings())
    list.push_back({{"id", happening.id},
                    {"t_s", happening.time.count()},
                    {"kind", happening.kind},
                    {"text", happening.text},
                    {"why", null_if_empty(happening.why)},
                    {"worker", null_if_empty(happening.worker)},
                    {"stall_s", or_null(happening.stall)},
                    {"cost_usd", or_null(happening.cost)}});
  return list;
}

/// All figures that a run's files, its journal and its plan give one by one, the best known of each.
struct Figures {
  std::optional<Seconds> time{};
  std::optional<double> samples{}, target_samples{}, epochs{}, loss{}, target_loss{};
  std::optional<Seconds> deadline{}, predicted_time{};
  std::optional<Usd> cost{}, budget{}, predicted_cost{};
  int preemptions = 0;
  double redone = 0;
};

Figures figures_of(const Chronicle& chronicle, const ViewContext& context) {
  const Fields summary(context.summary), plan(context.plan);
  Figures figures{.time = chronicle.time(),
                  .samples = chronicle.samples(),
                  .target_samples = chronicle.target(),
                  .target_loss = plan.object("target").real("loss"),
                  .deadline = plan.time("deadline_s"),
                  .predicted_time = plan.time("time_s"),
                  .budget = plan.money("budget_usd"),
                  .predicted_cost = plan.money("cost_usd"),
                  .preemptions = chronicle.preemptions(),
                  .redone = chronicle.redone()};
  if (chronicle.priced()) figures.cost = chronicle.cost();
  if (const auto& status = context.status) {
    // Between two of its lines the journal stands still.
    figures.time = std::max(status->time, chronicle.time());
    figures.samples = std::max(static_cast<double>(status->samples), chronicle.samples());
    if (status->target) figures.target_samples = static_cast<double>(*status->target);
    figures.epochs = status->epochs;
    figures.loss = status->loss;
    if (status->target_loss) figures.target_loss = status->target_loss;
    if (status->deadline) figures.deadline = status->deadline;
    if (status->cost) figures.cost = status->cost;
    if (status->budget) figures.budget = status->budget;
    if (status->predicted_time) figures.predicted_time = status->predicted_time;
    if (status->predicted_cost) figures.predicted_cost = status->predicted_cost;
    // Servers that are lost stand in no event.
    figures.preemptions = std::max(figures.preemptions, status->preemptions);
    figures.redone = std::max(figures.redone, static_cast<double>(status->samples_redone));
  }
  if (!figures.loss && !chronicle.losses().empty()) figures.loss = chronicle.losses().values().back();
  if (!context.summary.is_object()) return figures;
  if (const auto time = summary.time("time_s")) figures.time = time;
  if (const auto samples = summary.real("samples")) figures.samples = samples;
  if (const auto epochs = summary.real("epochs")) figures.epochs = epochs;
  if (const auto loss = summary.real("loss")) figures.loss = loss;
  if (const auto cost = summary.money("cost_usd")) figures.cost = cost;
  if (const auto time = summary.time("predicted_time_s")) figures.predicted_time = time;
  if (const auto cost = summary.money("predicted_cost_usd")) figures.predicted_cost = cost;
  if (const auto preemptions = summary.whole("preemptions")) figures.preemptions = static_cast<int>(*preemptions);
  return figures;
}

/// What machines of the spot market cost on demand against there, by the plan's own prices.
std::optional<double> planned_ratio(const Fields& plan) {
  const auto dear = plan.object("saving").money("on_demand_cost_usd");
  const auto planned = plan.money("cost_usd");
  const auto time = plan.time("time_s");
  if (!dear || !planned || !(planned->value > 0)) return std::nullopt;
  Usd spot{};
  for (const Json& line : plan.list("cluster")) {
    const Fields fields(line);
    if (fields.text("market") == "spot" && time)
      spot += UsdPerHour{fields.real("usd_per_hour").value_or(0) * fields.real("n").value_or(0)} * *time;
  }
  // Of plans that do not say their machines, all is taken for spot.
  if (!(spot.value > 0)) return *dear / *planned;
  return (*dear - (*planned - spot)) / spot;
}

std::optional<Price> on_demand_price(const InstanceType& type, const std::string& zone) {
  const auto own =
      std::find_if(type.zones.begin(), type.zones.end(), [&](const ZonePrice& one) { return one.zone == zone; });
  return own != type.zones.end() && own->on_demand ? own->on_demand : type.on_demand;
}

/// The same machine-seconds on demand. What was rented on demand costs what it did; only what was spot costs more.
std::optional<Usd> on_demand_cost(const Chronicle& chronicle, const ViewContext& context, const Figures& figures) {
  if (!figures.cost) return std::nullopt;
  Usd paid{}, dear{};
  const auto ratio = planned_ratio(Fields(context.plan));
  // Prices of an emulated run are stretched, the catalogue's are not.
  const bool emulated = context.summary.contains("emulated") && context.summary["emulated"].is_object();
  for (const auto& [kind, spot] : chronicle.spot_use()) {
    paid += spot.paid;
    const InstanceType* type = context.catalog == nullptr || emulated ? nullptr : context.catalog->find(kind.first);
    const auto price = type == nullptr ? std::nullopt : on_demand_price(*type, kind.second);
    if (price) {
      dear += price->rate * Seconds(spot.seconds);
    } else if (ratio) {
      dear += spot.paid * *ratio;
    } else {
      return std::nullopt;
    }
  }
  return *figures.cost - paid + dear;
}

Json predicted_json(const ViewContext& context, const Figures& figures) {
  if (!figures.predicted_time) return {};
  const Fields plan(context.plan);
  const auto planned = plan.time("time_s");
  // A run on emulated machines is stretched; its plan may be that of the real ones.
  const double stretch = planned && planned->count() > 0 ? *figures.predicted_time / *planned : 1;
  const auto stretched = [&](const char* key) {
    const auto value = plan.real(key);
    return value ? Json(*value * stretch) : Json();
  };
  Json times = Json::array(), losses = Json::array();
  for (const Json& point : plan.list("course")) {
    const Fields fields(point);
    const auto time = fields.real("time_s"), loss = fields.real("loss");
    if (!time || !loss) continue;
    times.push_back(*time * stretch);
    losses.push_back(*loss);
  }
  return {{"time_s", figures.predicted_time->count()},
          {"time_s_p10", stretched("time_s_p10")},
          {"time_s_p90", stretched("time_s_p90")},
          {"cost_usd", or_null(figures.predicted_cost)},
          {"cost_usd_p10", or_null(plan.real("cost_usd_p10"))},
          {"cost_usd_p90", or_null(plan.real("cost_usd_p90"))},
          {"target_samples", or_null(figures.target_samples)},
          {"loss", {{"t_s", std::move(times)}, {"loss", std::move(losses)}}}};
}

Json scorecard_json(const ViewContext& context, const Figures& figures) {
  const Fields summary(context.summary);
  const std::string end = summary.text("end");
  const bool over = end == "trained" || end == "budget";
  const Json& missed = summary.list("missed");
  Json rows = Json::array();
  const auto add = [&](const char* what, const char* promise, const char* unit, const Json& promised,
                       const Json& predicted, const Json& delivered) {
    if (promised.is_null() && predicted.is_null()) return;
    const bool broken = std::find(missed.begin(), missed.end(), Json(promise)) != missed.end();
    rows.push_back({{"what", what},
                    {"promised", promised},
                    {"predicted", predicted},
                    {"delivered", delivered},
                    {"unit", unit},
                    {"kept", over && !promised.is_null() ? Json(!broken) : Json()}});
  };
  add("time", "deadline", "s", or_null(figures.deadline), or_null(figures.predicted_time), or_null(figures.time));
  const auto validated = summary.real("validation_loss");
  add("loss", "loss", "", or_null(figures.target_loss), Json(), or_null(validated ? validated : figures.loss));
  add("epochs", "epochs", "", or_null(context.epochs), Json(), or_null(figures.epochs));
  const auto step = context.status ? std::optional(static_cast<double>(context.status->step)) : std::nullopt;
  add("steps", "steps", "", or_null(context.steps), Json(), or_null(step));
  add("cost", "budget", "usd", or_null(figures.budget), or_null(figures.predicted_cost), or_null(figures.cost));
  return rows;
}

}  // namespace

ViewContext load_view_context(const std::filesystem::path& directory) {
  RunView run = view_run(directory);
  ViewContext context{.name = run_name(directory),
                      .life = run.life,
                      .status = std::move(run.status),
                      .plan = document_in(directory / "plan.json"),
                      .summary = document_in(directory / "summary.json")};
  if (const auto text = load_own_text(directory / "job.yaml")) {
    const auto job = parse_job(*text, "job.yaml");
    if (job) context.epochs = job->epochs;
    if (job) context.steps = job->steps;
  }
  return context;
}

Json view_json(const Chronicle& chronicle, const ViewContext& context) {
  const Figures figures = figures_of(chronicle, context);
  const Fields summary(context.summary);
  const auto& status = context.status;
  const auto validation = chronicle.validations().empty() ? summary.real("validation_loss")
                                                          : std::optional(chronicle.validations().back().loss);
  std::string end = status ? status->end : summary.text("end");
  if (end.empty()) end = chronicle.finish();
  if (end.empty() && context.life == RunLife::none) end = "journal";  // nothing follows
  return {{"format", "mayfly-view/1"},
          {"name", context.name},
          {"policy", null_if_empty(chronicle.policy())},
          {"simulated", !chronicle.policy().empty()},
          {"state", context.life == RunLife::none ? Json() : Json(name(context.life))},
          {"phase", status ? Json(status->phase) : Json()},
          {"end", null_if_empty(end)},
          {"failure", status ? null_if_empty(status->failure) : Json()},
          {"time_s", or_null(figures.time)},
          {"step", status ? Json(status->step) : Json()},
          {"samples", or_null(figures.samples)},
          {"target_samples", or_null(figures.target_samples)},
          {"epochs", or_null(figures.epochs)},
          {"loss", or_null(figures.loss)},
          {"target_loss", or_null(figures.target_loss)},
          {"validation_loss", or_null(validation)},
          {"accuracy", chronicle.validations().empty() ? or_null(summary.real("accuracy"))
                                                       : or_null(chronicle.validations().back().accuracy)},
          {"samples_per_s", status ? or_null(status->samples_per_s) : Json()},
          {"left_s", status ? or_null(status->left) : Json()},
          {"deadline_s", or_null(figures.deadline)},
          {"deadline_met", status ? or_null(status->deadline_met) : Json()},
          {"budget_usd", or_null(figures.budget)},
          {"cost_usd", or_null(figures.cost)},
          {"usd_per_hour", chronicle.priced() ? Json(chronicle.rate().value) : Json()},
          {"on_demand_cost_usd", or_null(on_demand_cost(chronicle, context, figures))},
          {"preemptions", figures.preemptions},
          {"samples_redone", figures.redone},
          {"samples_repeated", or_null(summary.real("samples_repeated"))},
          {"samples_skipped", or_null(summary.real("samples_skipped"))},
          {"machines", machines_json(chronicle)},
          {"machines_total", chronicle.machines_total()},
          {"counts", counts_json(chronicle)},
          {"shapes", shapes_json(chronicle.shapes())},
          {"progress", {{"t_s", chronicle.progress().times()}, {"samples", chronicle.progress().values()}}},
          {"losses", {{"t_s", chronicle.losses().times()}, {"loss", chronicle.losses().values()}}},
          {"validation", validation_json(chronicle)},
          {"money", money_json(chronicle)},
          {"share", share_json(chronicle.usage())},
          {"happenings", happenings_json(chronicle)},
          {"happenings_total", chronicle.happenings_total()},
          {"predicted", predicted_json(context, figures)},
          {"scorecard", scorecard_json(context, figures)}};
}

}  // namespace mayfly
