#include "cli/backtest_text.h"

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"

namespace mayfly::cli {
namespace {

std::string share_text(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string usd_text(const std::optional<double>& value) { return value ? fmt::format("{:.2f}", *value) : "-"; }

std::string promises_text(const Summary& summary) {
  if (!summary.promises) return "";
  Table table({"STATED", ">PROMISES", ">DAYS", ">PROMISED", ">KEPT", ">95 %"});
  const auto add = [&](const std::string& label, const Calibration& bin) {
    table.add({label, std::to_string(bin.promises), std::to_string(bin.days), share_text(bin.promised),
               share_text(bin.kept), fmt::format("{:.1f} .. {:.1f} %", 100 * bin.low, 100 * bin.high)});
  };
  for (const Calibration& bin : summary.by_chance)
    add(fmt::format("{:.0f} .. {:.0f} %", 100 * bin.from, 100 * bin.to), bin);
  if (summary.by_chance.size() > 1) add("all", *summary.promises);
  return table.text("  ");
}

std::string money_text(const Summary& summary) {
  if (summary.spent.empty()) return "";
  Table table({"RULE", ">IN TIME", ">MEAN USD", ">P10", ">P50", ">P90", ">RESTARTS"});
  for (const Spent& spent : summary.spent)
    table.add({std::string(name(spent.rule)), share_text(spent.kept), usd_text(spent.mean), usd_text(spent.p10),
               usd_text(spent.p50), usd_text(spent.p90),
               spent.rule == Rule::mayfly ? "-" : fmt::format("{:.1f}", spent.restarts)});
  std::string text = fmt::format("\nMoney, of the {} starts at which every rule was done before the trace ended:\n{}",
                                 summary.compared, table.text("  "));
  for (const Spent& spent : summary.spent) {
    if (!spent.compared)
      text += fmt::format("  {} was done before the trace ended at {} of {} starts: left out\n", name(spent.rule),
                          spent.finished, spent.starts);
  }
  return text;
}

std::string examples_text(const BacktestContext& context) {
  const auto& starts = context.test.starts;
  Table table({"START", "PLAN", ">PROMISED", "KEPT", ">TIME", ">USD"});
  constexpr std::size_t kShown = 6;
  const std::size_t step = std::max<std::size_t>(1, starts.size() / kShown);
  for (std::size_t i = step / 2; i < starts.size(); i += step) {
    const Start& start = starts[i];
    if (!start.entrant) {
      table.add({when(context.test, start), "none", share_text(start.promised), "-", "-", "-"});
      continue;
    }
    const auto& run = *start.runs.front();
    const PlanOption& plan = context.test.histories[start.history].field.entrants[*start.entrant].option;
    table.add({when(context.test, start), machines_of(plan), share_text(start.promised), start.kept ? "yes" : "no",
               run.finished ? format_duration(Seconds(run.time)) : "not done", fmt::format("{:.2f}", run.cost)});
  }
  return "\nSome of the starts (without a plan: the surest there was):\n" + table.text("  ");
}

}  // namespace

std::string backtest_text(const BacktestContext& context) {
  const Summary& summary = context.summary;
  std::string text =
      fmt::format("{}, {} by {}, wanted with {:g} %: {} starts on {} {}\n", context.job, context.target,
                  format_duration(context.test.deadline), 100 * context.options.confidence, summary.starts,
                  context.test.histories.size(), context.test.histories.size() == 1 ? "trace" : "traces");
  text += fmt::format("{} have a plan, {} have none\n", summary.planned, summary.starts - summary.planned);
  for (const History& history : context.test.histories) {
    if (!history.field.none.empty()) text += fmt::format("  {}: {}\n", history.name, history.field.none);
  }
  return text + "\n" + promises_text(summary) + money_text(summary) + examples_text(context);
}

std::string run_backtest_text(const RunBacktest& test) {
  const auto kept = [](const std::optional<bool>& in_time) { return !in_time ? "-" : *in_time ? "yes" : "no"; };
  const auto money = [](const std::optional<Usd>& cost) { return cost ? fmt::format("{:.4f}", cost->value) : "-"; };
  Table table({"", ">TIME", ">USD", "IN TIME", ">RESTARTS"});
  table.add({"promised", format_duration(test.promised_time), money(test.promised_cost),
             test.promised_chance ? share_text(*test.promised_chance) : "-", "-"});
  table.add({"delivered", format_duration(test.time), money(test.cost), kept(test.in_time), "-"});
  for (const RunRule& rule : test.rules)
    table.add({rule.rule, rule.run.finished ? format_duration(Seconds(rule.run.time)) : "never", money(rule.cost),
               kept(rule.in_time), std::to_string(rule.run.restarts)});
  PlanOption plan;
  plan.cluster = test.cluster;
  plan.servers = test.servers;
  return fmt::format("{}: planned {}{}; {} preemptions\n\n{}", test.name, machines_of(plan),
                     test.deadline ? " by " + format_duration(*test.deadline) : "", test.preemptions, table.text("  "));
}

}  // namespace mayfly::cli
