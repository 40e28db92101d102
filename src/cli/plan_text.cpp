#include "cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/how_many.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"

namespace mayfly::cli {
namespace {

std::string lines_text(const std::vector<PlanLine>& lines) {
  std::string text;
  for (const PlanLine& line : lines) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : " + ", line.count, line.type);
    if (!line.zone.empty()) text += fmt::format(" in {}", line.zone);
    const bool twice = std::any_of(lines.begin(), lines.end(), [&](const PlanLine& other) {
      return other.type == line.type && other.market != line.market;
    });
    if (twice) text += line.market == Market::spot ? " (spot)" : " (on demand)";
  }
  return text;
}

std::string markets_text(const PlanOption& option) {
  if (option.fleet) return "serverless";
  std::string text;
  for (const PlanLine& line : option.cluster) {
    const auto word = std::string(name(line.market));
    if (text.find(word) == std::string::npos) text += (text.empty() ? "" : "+") + word;
  }
  return text;
}

std::string machines_text(const PlanOption& option) {
  if (option.fleet)
    return fmt::format("{} x {} of {} MiB", option.fleet->functions, option.platform, option.fleet->memory_mib);
  return lines_text(option.cluster);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string time_text(const PlanOption& option) {
  const double time = expected_time(option);
  return std::isfinite(time) ? format_duration(Seconds(time)) : "never";
}

std::string cost_text(const PlanOption& option) {
  const double cost = expected_cost(option);
  return std::isfinite(cost) ? fmt::format("{:.4f}", cost) : "-";
}

bool late(const PlanContext& context, const PlanOption& option) {
  if (!context.request.deadline) return false;
  const Seconds elapsed = context.request.progress ? context.request.progress->elapsed : Seconds{0};
  return Seconds(expected_time(option)) > *context.request.deadline - elapsed;
}

/// How likely the promise is kept, or how much time is left over where that was not looked at.
std::string margin(const PlanContext& context, const PlanOption& option) {
  if (const auto chance = chance_kept(option)) return percent(*chance);
  if (!context.request.deadline) return "";
  const Seconds elapsed = context.request.progress ? context.request.progress->elapsed : Seconds{0};
  const Seconds slack = *context.request.deadline - elapsed - Seconds(option.time);
  return slack.count() >= 0 ? format_duration(slack) : "late";
}

Table options_table(const PlanContext& context, const std::vector<PlanOption>& options, const PlanOption& chosen,
                    std::size_t most) {
  Table table(
      {"MACHINES", "MARKET", "SERVERS", ">USD/h", ">TIME", chosen.risk ? ">KEPT" : ">SLACK", ">COST USD", "CHOSEN"});
  std::size_t shown = 0;
  for (const PlanOption& option : options) {
    if (shown++ == most) break;
    const bool is_chosen =
        option.cluster == chosen.cluster && option.servers == chosen.servers && option.fleet == chosen.fleet;
    table.add({machines_text(option), markets_text(option), option.servers.empty() ? "-" : lines_text(option.servers),
               fmt::format("{:.3f}", option.hourly), time_text(option), margin(context, option), cost_text(option),
               is_chosen ? "  <==" : ""});
  }
  return table;
}

/// How near what was seen is to what is rented.
std::string where_seen(const WeatherTable::Rule& rule, const InstanceType& type) {
  if (rule.cloud.empty()) return "nobody published this cloud's: the middle of all places seen";
  if (rule.gpu.empty()) return fmt::format("as {}GPUs of {}", type.gpu ? "other " : "", rule.cloud);
  return fmt::format("as seen of {} on {}{}{}", rule.gpu, rule.cloud, rule.region.empty() ? "" : " in ", rule.region);
}

/// "each lost every 1.8 h, another after 1h40m": what the table of weather says of a spot line.
std::string usual_text(const PlanContext& context, const PlanOption& option) {
  std::string out;
  std::set<std::string> told;
  for (const PlanLine& line : option.cluster) {
    const InstanceType* type = line.market == Market::spot ? context.catalog.find(line.type) : nullptr;
    if (type == nullptr || !told.insert(line.type).second) continue;
    const WeatherTable::Rule& rule = context.weather->usual.rule_of(*type);
    const SpotWeather& weather = rule.weather;
    out += fmt::format(
        "  weather     {}: each lost once in {} held (a factor of {:.1f} either way), another there after {}; {}\n",
        line.type, format_duration(Seconds(std::round(3600 / weather.losses_per_hour))), std::exp(weather.spread),
        format_duration(Seconds(std::round(weather.wait.count()))), where_seen(rule, *type));
  }
  return out;
}

/// "kept with 93.1 % (8 of 10 within 90.2 .. 95.3): 4,000 windows of p3" and what they cost.
std::string risk_text(const PlanContext& context, const PlanOption& option) {
  const Risk& risk = *option.risk;
  const PlanWeather& weather = *context.weather;
  const std::string where =
      weather.trace ? fmt::format("{} windows of {}{}", risk.windows, weather.trace->name,
                                  weather.options.now ? " that begin as it ends" : "")
                    : fmt::format("{} draws of the usual weather and of the prediction's error", risk.windows);
  const auto kept = [&](const char* what, const Estimate& share) {
    return fmt::format("  {:<11} kept with {} (8 of 10 within {:.1f} .. {:.1f}): {}\n", what, percent(share.middle),
                       100 * *share.p10, 100 * *share.p90, where);
  };
  std::string out;
  if (risk.in_time) out += kept("deadline", *risk.in_time);
  if (risk.in_budget) out += kept("budget", *risk.in_budget);
  if (!risk.time.p50) {
    out += "  there       most windows see no end of the job\n";
  } else {
    out += risk.time.p95 ? fmt::format("  there       95 % stay below {} and below {:.4f} USD\n",
                                       format_duration(Seconds(*risk.time.p95)), *risk.cost.p95)
                         : "  there       more than 5 % never end\n";
  }
  if (!weather.trace) out += usual_text(context, option);
  return out;
}

std::string promise(const PlanContext& context) {
  std::string text = words(context.request.target);
  if (context.request.deadline) text += " within " + format_duration(*context.request.deadline);
  if (context.request.budget) text += fmt::format(" for at most {:.2f} USD", context.request.budget->value);
  if (context.request.confidence) text += fmt::format(", with {:.4g} %", 100 * *context.request.confidence);
  return text;
}

}  // namespace

std::string memory_text(const MemoryFit& fit) {
  if (fit.need.impossible_peak)
    return fmt::format(
        "not known: {:.1f} of {:.1f} GB of a GPU by the recipe, which the measured peak of {:.1f} GB contradicts: the "
        "states alone took more",
        fit.need.peak, fit.have, *fit.need.impossible_peak);
  if (fit.need.basis == MemoryBasis::state_alone)
    return fmt::format("at least {:.1f} of {:.1f} GB of a GPU, activations not counted", fit.need.low, fit.have);
  if (fit.seen && fit.need.peak > fit.have)
    return fmt::format("fits: so many samples were trained on such GPUs; reckoned are {:.1f} of {:.1f} GB of a GPU",
                       fit.need.peak, fit.have);
  return fmt::format(
      "{:.1f} of {:.1f} GB of a GPU{}{}", fit.need.peak, fit.have,
      fit.need.high > fit.need.low * 1.01 ? fmt::format(" ({:.1f} .. {:.1f})", fit.need.low, fit.need.high) : "",
      fit.fits == Fits::no       ? "; does not fit"
      : fit.fits == Fits::unsure ? fmt::format("; fits with {:.0f} %", 100 * fit.chance)
                                 : "");
}

std::string plan_text(const PlanContext& context, const Plan& plan, bool colour) {
  const auto bold = [&](const std::string& text) { return colour ? "\033[1m" + text + "\033[0m" : text; };
  std::string out = fmt::format("{}: {}\n\n", context.profile.name, promise(context));
  constexpr std::size_t kShown = 10;
  constexpr double kWorthSaying = 0.95;
  out += "Considered: the best mix, and the best of each type alone\n";
  out += options_table(context, plan.considered, plan.chosen, kShown).text("  ");
  if (plan.considered.size() > kShown)
    out += fmt::format("  ... and {} dearer ones\n", plan.considered.size() - kShown);
  out +=
      fmt::format("\nPlan: {}{}{}\n", bold(machines_text(plan.chosen)),
                  plan.chosen.exchange == Meeting::ring ? " in a ring"
                  : plan.chosen.servers.empty()         ? ""
                                                : " with " + lines_text(plan.chosen.servers) + " as parameter server",
                  plan.basis == Basis::scaled ? "; not measured on these machines, but scaled from others" : "") +
      (plan.memory && plan.memory->chance < kWorthSaying && plan.memory->need.basis != MemoryBasis::state_alone
           ? fmt::format("      may not fit into their GPUs' memory: {:.0f} % that it does\n",
                         100 * plan.memory->chance)
           : "");
  if (!context.request.existing.empty()) {
    std::string added;
    for (const auto* machines : {&plan.addition, &plan.added_servers}) {
      for (const auto& [type, count] : *machines)
        added += fmt::format("{}{} x {}", added.empty() ? "" : " + ", count, type);
    }
    out += fmt::format("  add         {} for {:.4f} USD\n", added.empty() ? "nothing" : added, plan.chosen.added_cost);
  }
  const auto band = [](const Estimate& e, auto show) {
    return e.p10 && e.p90 ? fmt::format("  (8 of 10 within {} .. {})", show(*e.p10), show(*e.p90)) : std::string();
  };
  const auto as_time = [](double s) { return format_duration(Seconds(s)); };
  const auto as_cost = [](double usd) { return fmt::format("{:.{}f}", usd, usd < 0.1 ? 4 : 2); };
  const bool ends = std::isfinite(plan.time.middle);
  out += ends ? fmt::format("  time        {} = {:.2f} s{}\n", as_time(plan.time.middle), plan.time.middle,
                            band(plan.time, as_time))
              : "  time        no end in most windows\n";
  if (ends) out += fmt::format("  cost        {:.4f} USD{}\n", plan.cost.middle, band(plan.cost, as_cost));
  if (ends && plan.time.middle > 1.005 * plan.chosen.time)
    out += fmt::format("  undisturbed {} for {:.4f} USD\n", as_time(plan.chosen.time), plan.chosen.cost);
  if (plan.chosen.risk) out += risk_text(context, plan.chosen);
  if (const auto chance = plan.chosen.risk ? std::nullopt : chance_in_time(context, plan))
    out += fmt::format(
        "  in time     with {:.0f} % as far as the prediction's own error goes; a tighter --deadline buys margin\n",
        100 * *chance);
  if (plan.speed) {
    out += fmt::format(
        "  speed       {:.5g} samples/s, {:.6g} steps of {:.5g} samples, one every {:.4g} s; basis: {}\n",
        plan.speed->samples_per_s, plan.iterations, plan.speed->batch, 1 / plan.speed->updates_per_s, name(plan.basis));
    out += fmt::format("  bottleneck  {} (", name(plan.speed->bottleneck()));
    double whole = 0;
    for (const double part : plan.speed->breakdown) whole += part;
    std::string parts;
    for (std::size_t i = 0; i < kParts; ++i) {
      if (plan.speed->breakdown[i] > 0)
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name(static_cast<Part>(i)),
                             percent(plan.speed->breakdown[i] / whole));
    }
    out += parts + ")\n";
  }
  if (plan.peak_share) out += fmt::format("  hardware    {} of the GPUs' peak (MFU)\n", percent(*plan.peak_share));
  if (plan.memory) out += fmt::format("  memory      {}\n", memory_text(*plan.memory));
  if (plan.functions) {
    out += fmt::format("  speed       {:.6g} iterations of {:.3f} s compute + {:.3f} s exchange; {} at the time-out\n",
                       plan.functions->iterations, plan.functions->compute.count(), plan.functions->exchange.count(),
                       how_many(plan.functions->restarts, "restart"));
  }
  if (plan.on_demand_cost && *plan.on_demand_cost > plan.cost.middle * 1.0001) {
    out += fmt::format("  saving      {} against the same machines on demand ({:.2f} USD)\n",
                       percent(1 - plan.cost.middle / *plan.on_demand_cost), *plan.on_demand_cost);
  }
  for (const auto& [label, other] :
       {std::pair("all fastest", plan.all_fastest), std::pair("all slowest", plan.all_slowest)}) {
    if (other)
      out += fmt::format("  {:<11} {}: {} USD in {}{}\n", label, machines_text(*other), cost_text(*other),
                         time_text(*other), late(context, *other) ? ", too late" : "");
  }
  out += fmt::format("  proof       {}; {} clusters predicted in {:.3g} ms by {}\n",
                     plan.optimal ? (context.request.confidence
                                         ? fmt::format("cheapest of all whose prediction allows {:.4g} %; the weather "
                                                       "confirms it",
                                                       100 * *context.request.confidence)
                                         : "cheapest of all that the quotas allow")
                     : plan.assessed > 0 && plan.gap == 0
                         ? fmt::format("none: the cheapest of {} plans tried in the weather", plan.assessed)
                     : plan.search == "window" ? "none: this search looks at windows only"
                                               : fmt::format("not complete, at most {} cheaper", percent(plan.gap)),
                     plan.evaluated, 1e3 * context.took.count(), plan.search);
  if (!plan.ties.empty()) {
    out += fmt::format("\nAs good within the prediction's error ({}):\n", percent(plan.relative_sd));
    for (const PlanOption& tie : plan.ties)
      out += fmt::format("  {}: {} USD in {}{}\n", machines_text(tie), cost_text(tie), time_text(tie),
                         chance_kept(tie) ? ", kept with " + percent(*chance_kept(tie)) : "");
  }
  if (!plan.frontier.empty()) {
    out +=
        "\nTime against cost:\n" + options_table(context, plan.frontier, plan.chosen, plan.frontier.size()).text("  ");
  }
  return out;
}

std::string plan_text(const PlanContext& context, const Infeasible& answer, bool) {
  std::string out = fmt::format("No plan keeps this promise: {}: {}\n", context.profile.name, promise(context));
  out += fmt::format("  binds    {}: {}\n", answer.binding, answer.reason);
  if (answer.nearest) {
    out += fmt::format("  nearest  {}: {} for {} USD\n", machines_text(*answer.nearest), time_text(*answer.nearest),
                       cost_text(*answer.nearest));
  }
  if (answer.nearest && answer.nearest->risk) out += risk_text(context, *answer.nearest);
  if (answer.nearest_loss) {
    out += context.request.deadline
               ? fmt::format("           or loss {:.4g} within the deadline\n", *answer.nearest_loss)
               : fmt::format("           any loss above {:.4g}\n", *answer.nearest_loss);
  }
  return out;
}

}  // namespace mayfly::cli
