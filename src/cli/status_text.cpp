#include "cli/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"
#include "base/text.h"

namespace mayfly::cli {
namespace {

std::string whole(Seconds time) { return format_duration(Seconds(std::round(std::max(0.0, time.count())))); }

std::string money(Usd amount) { return fmt::format("{:.4f} USD", amount.value); }

std::string share(const RunStatus& status) {
  if (!status.target || *status.target <= 0) return "-";
  return fmt::format("{:.0f} %", 100.0 * static_cast<double>(status.samples) / static_cast<double>(*status.target));
}

/// "running: training", "stopped", "lost its controller".
std::string state_words(const RunView& view) {
  if (view.life == RunLife::lost) return "lost its controller";
  if (view.life == RunLife::running && view.status && view.status->phase != "ended")
    return "running: " + view.status->phase;
  if (view.life == RunLife::finished && view.status && view.status->end == "budget") return "finished: budget spent";
  return std::string(name(view.life));
}

std::string deadline_words(const RunView& view) {
  const RunStatus& status = *view.status;
  std::string words = whole(*status.deadline);
  if (view.life != RunLife::running)
    return words + (status.deadline_met ? (*status.deadline_met ? ": kept" : ": missed") : "");
  const Seconds rest = *status.deadline - status.time;
  words += rest.count() >= 0 ? fmt::format(", in {}", whole(rest)) : fmt::format(", {} ago", whole(-rest));
  if (!status.deadline_met) return words + ": not known yet whether it will be met";
  return words + (*status.deadline_met ? ": will be met at this speed" : ": at risk, will be missed at this speed");
}

std::string progress_words(const RunStatus& status) {
  std::string words = fmt::format("step {}, {} samples", status.step, status.samples);
  if (status.target) words += fmt::format(" of {} ({})", *status.target, share(status));
  if (status.epochs) words += fmt::format(", {:.2f} epochs", *status.epochs);
  if (status.left) words += fmt::format(", {} to go", whole(*status.left));
  return words;
}

std::string machines_text(const RunView& view) {
  const RunStatus& status = *view.status;
  if (view.life != RunLife::running || status.machines.empty()) return {};
  const bool here = std::all_of(status.machines.begin(), status.machines.end(),
                                [](const MachineStatus& machine) { return machine.pid > 0 || machine.where.empty(); });
  Table table({"machine", "type", "market", ">USD/h", ">since", "state", ">log", here ? ">process" : "where"});
  for (const MachineStatus& machine : status.machines) {
    const std::string process = machine.pid > 0 ? std::to_string(machine.pid) : "-";
    table.add({machine.name.empty() ? "-" : machine.name, machine.type, machine.price.value > 0 ? machine.market : "-",
               machine.price.value > 0 ? fmt::format("{:g}", machine.price.value) : "-", whole(machine.since),
               machine.state, machine.launch >= 0 ? std::to_string(machine.launch) : "-",
               here || machine.where.empty() ? process : printable(machine.where)});
  }
  return "\n" + table.text("  ");
}

std::string advice(const RunView& view) {
  const std::string directory = view.directory.string();
  switch (view.life) {
    case RunLife::lost: {
      const double now = view.status ? view.status->written : 0;
      return fmt::format(
          "nobody drives it any more{}: its controller was killed or the machine went down. Go on with: "
          "mayfly resume {}\n",
          now > 0 ? fmt::format(" (last heard of {})", format_time(now)) : "", directory);
    }
    case RunLife::stopped:
      return fmt::format("go on with: mayfly resume {}\n", directory);
    case RunLife::failed:
      return fmt::format("it failed: {}\nonce the cause is gone: mayfly resume {}\n",
                         view.status ? view.status->failure : "", directory);
    case RunLife::running:
      if (view.status->host != host_name())
        return fmt::format("it is driven from {}, last heard of {}\n", view.status->host,
                           format_time(view.status->written));
      return {};
    default:
      return {};
  }
}

}  // namespace

Result<RunView> view_known_run(const std::string& directory) {
  RunView view = view_run(directory);
  if (view.life == RunLife::none) return fail("{}: no run here: want the folder of a run", directory);
  return view;
}

std::string runs_text(const std::vector<RunView>& views) {
  Table table({"run", "state", ">done", ">loss", ">samples/s", ">machines", ">cost", ">time", ">preemptions"});
  for (const RunView& view : views) {
    const RunStatus status = view.status.value_or(RunStatus{});
    const bool runs = view.life == RunLife::running;
    const auto held = std::count_if(status.machines.begin(), status.machines.end(),
                                    [](const MachineStatus& machine) { return machine.held(); });
    table.add({view.directory.filename().string(), state_words(view), share(status),
               status.loss ? fmt::format("{:.4f}", *status.loss) : "-",
               runs && status.samples_per_s ? fmt::format("{:.0f}", *status.samples_per_s) : "-",
               runs ? std::to_string(held) : "-", status.cost ? money(*status.cost) : "-",
               view.status ? whole(status.time) : "-", view.status ? std::to_string(status.preemptions) : "-"});
  }
  return table.text();
}

std::string run_text(const RunView& view) {
  std::string text = fmt::format("{}: {}\n", view.directory.string(), state_words(view));
  if (!view.status) return text + advice(view);
  const RunStatus& status = *view.status;
  Table table({"", ""});
  table.add({"job", status.job});
  table.add({"progress", progress_words(status)});
  if (status.loss) table.add({"loss", fmt::format("{:.4f}", *status.loss)});
  if (status.samples_per_s && view.life == RunLife::running)
    table.add({"speed", fmt::format("{:.0f} samples/s", *status.samples_per_s)});
  table.add({"time", whole(status.time)});
  if (status.deadline) table.add({"deadline", deadline_words(view)});
  if (status.cost)
    table.add({"cost", money(*status.cost) + (status.budget ? " of " + money(*status.budget) : std::string())});
  table.add(
      {"preemptions",
       fmt::format("{}{}", status.preemptions,
                   status.samples_redone > 0 ? fmt::format(", {} samples trained again", status.samples_redone) : "")});
  table.add({"checkpoint", status.checkpoint.empty() ? "none yet" : status.checkpoint});
  text += table.text("  ") + machines_text(view);
  if (!status.remarks.empty()) text += "\n  last events\n";
  for (const Remark& remark : status.remarks) text += fmt::format("  {:>9}  {}\n", whole(remark.time), remark.text);
  const std::string what_to_do = advice(view);
  return text + (what_to_do.empty() ? "" : "\n" + what_to_do);
}

}  // namespace mayfly::cli
