#include "cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::string row_deadline(const PlanContext& context, const PlanOption& option) {
  if (!context.request.deadline) return "";
  const Seconds elapsed = context.request.progress ? context.request.progress->elapsed : Seconds{0};
  const Seconds slack = *context.request.deadline - elapsed - Seconds(option.time);
  return slack.count() >= 0 ? format_duration(slack) : "late";
}

Table options_table(const PlanContext& context, const std::vector<PlanOption>& options, const PlanOption& chosen,
                    std::size_t most) {
  Table table({"MACHINES", "MARKET", "SERVERS", ">USD/h", ">TIME", ">SLACK", ">COST USD", "CHOSEN"});
  std::size_t shown = 0;
  for (const PlanOption& option : options) {
    if (shown++ == most) break;
    const bool is_chosen =
        option.cluster == chosen.cluster && option.servers == chosen.servers && option.fleet == chosen.fleet;
    table.add({machines_text(option), markets_text(option), option.servers.empty() ? "-" : lines_text(option.servers),
               fmt::format("{:.3f}", option.hourly), format_duration(Seconds(option.time)),
               row_deadline(context, option), fmt::format("{:.4f}", option.cost), is_chosen ? "  <==" : ""});
  }
  return table;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// "kept in 93.1 % of 4,000 windows of p3 (8 of 10 within 90.2 .. 95.3)" and what they cost.
std::string risk_text(const PlanContext& context, const PlanOption& option) {
  const Risk& risk = *option.risk;
  const auto kept = [&](const char* what, const Estimate& share) {
    return fmt::format("  {:<11} kept in {} of {} windows of {}{} (8 of 10 within {:.1f} .. {:.1f})\n", what,
                       percent(share.middle), risk.windows, context.weather->trace.name,
                       context.weather->options.now ? " that begin as it ends" : "", 100 * *share.p10,
                       100 * *share.p90);
  };
  std::string out;
  if (risk.in_time) out += kept("deadline", *risk.in_time);
  if (risk.in_budget) out += kept("budget", *risk.in_budget);
  if (risk.cost_p50) {
    out += fmt::format("  there       {} and {:.4f} USD in the middle window", format_duration(Seconds(*risk.time_p50)),
                       *risk.cost_p50);
    out += risk.cost_p95 ? fmt::format("; 95 % stay below {} and below {:.4f} USD\n",
                                       format_duration(Seconds(*risk.time_p95)), *risk.cost_p95)
                         : "; more than 5 % never end\n";
  } else {
    out += "  there       most windows see no end of the job\n";
  }
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

std::string plan_text(const PlanContext& context, const Plan& plan, bool colour) {
  const auto bold = [&](const std::string& text) { return colour ? "\033[1m" + text + "\033[0m" : text; };
  std::string out = fmt::format("{}: {}\n\n", context.profile.name, promise(context));
  constexpr std::size_t kShown = 10;
  out += "Considered: the best mix, and the best of each type alone\n";
  out += options_table(context, plan.considered, plan.chosen, kShown).text("  ");
  if (plan.considered.size() > kShown)
    out += fmt::format("  ... and {} dearer ones\n", plan.considered.size() - kShown);
  out += fmt::format(
      "\nPlan: {}{}\n", bold(machines_text(plan.chosen)),
      plan.chosen.servers.empty() ? "" : " with " + lines_text(plan.chosen.servers) + " as parameter server");
  if (!context.request.existing.empty()) {
    std::string added;
    for (const auto& [type, count] : plan.addition)
      added += fmt::format("{}{} x {}", added.empty() ? "" : " + ", count, type);
    out += fmt::format("  add         {} for {:.4f} USD\n", added.empty() ? "nothing" : added, plan.chosen.added_cost);
  }
  const auto band = [](const Estimate& e, auto show) {
    return e.p10 ? fmt::format("  (8 of 10 within {} .. {})", show(*e.p10), show(*e.p90)) : std::string();
  };
  const auto as_time = [](double s) { return format_duration(Seconds(s)); };
  const auto as_cost = [](double usd) { return fmt::format("{:.2f}", usd); };
  out += fmt::format("  time        {} = {:.2f} s{}\n", as_time(plan.time.middle), plan.time.middle,
                     band(plan.time, as_time));
  out += fmt::format("  cost        {:.4f} USD{}\n", plan.cost.middle, band(plan.cost, as_cost));
  if (plan.chosen.risk) out += risk_text(context, plan.chosen);
  if (context.request.deadline && plan.relative_sd > 0 && !plan.chosen.risk) {
    const Seconds elapsed = context.request.progress ? context.request.progress->elapsed : Seconds{0};
    const double left = (*context.request.deadline - elapsed).count();
    const double chance = std::erfc(-std::log(left / plan.time.middle) / plan.relative_sd / std::sqrt(2.0)) / 2;
    out += fmt::format(
        "  in time     with {:.0f} % as far as the prediction's own error goes; a tighter --deadline buys margin\n",
        100 * chance);
  }
  if (plan.speed) {
    out += fmt::format("  speed       {:.5g} samples/s, a step every {:.4g} s, {:.6g} steps; basis: {}\n",
                       plan.speed->samples_per_s, 1 / plan.speed->updates_per_s, plan.iterations, name(plan.basis));
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
  if (plan.functions) {
    out += fmt::format(
        "  speed       {:.6g} iterations of {:.3f} s compute + {:.3f} s exchange; {} restart{} at the time-out\n",
        plan.functions->iterations, plan.functions->compute.count(), plan.functions->exchange.count(),
        plan.functions->restarts, plan.functions->restarts == 1 ? "" : "s");
  }
  if (plan.on_demand_cost && *plan.on_demand_cost > plan.chosen.cost * 1.0001) {
    out += fmt::format("  saving      {} against the same machines on demand ({:.2f} USD)\n",
                       percent(1 - plan.chosen.cost / *plan.on_demand_cost), *plan.on_demand_cost);
  }
  for (const auto& [label, other] :
       {std::pair("all fastest", plan.all_fastest), std::pair("all slowest", plan.all_slowest)}) {
    if (other)
      out += fmt::format("  {:<11} {}: {:.4f} USD in {}{}\n", label, machines_text(*other), other->cost,
                         as_time(other->time), row_deadline(context, *other) == "late" ? ", too late" : "");
  }
  out += fmt::format("  proof       {}; {} clusters predicted in {:.3g} ms by {}\n",
                     plan.optimal ? "cheapest of all that the quotas allow"
                     : context.request.confidence
                         ? fmt::format("none: the cheapest of {} plans tried on the trace", plan.assessed)
                     : plan.search == "window" ? "none: this search looks at windows only"
                                               : fmt::format("not complete, at most {} cheaper", percent(plan.gap)),
                     plan.evaluated, 1e3 * context.took.count(), plan.search);
  if (!plan.ties.empty()) {
    out += fmt::format("\nAs good within the prediction's error ({}):\n", percent(plan.relative_sd));
    for (const PlanOption& tie : plan.ties)
      out += fmt::format("  {}: {:.4f} USD in {}\n", machines_text(tie), tie.cost, as_time(tie.time));
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
    out += fmt::format("  nearest  {}: {} for {:.4f} USD\n", machines_text(*answer.nearest),
                       format_duration(Seconds(answer.nearest->time)), answer.nearest->cost);
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
