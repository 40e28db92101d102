#include "web/metrics.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>

namespace mayfly {
namespace {

/// As the text format wants it between quotes.
std::string label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

std::optional<double> slack(const RunStatus& status) {
  if (!status.deadline) return std::nullopt;
  return (*status.deadline - status.time - status.left.value_or(Seconds(0))).count();
}

struct Metric {
  const char* name;
  const char* type;
  const char* help;
  std::function<std::optional<double>(const RunStatus&)> value;
};

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> kMetrics{
      {"mayfly_samples_committed_total", "counter", "Samples in the weights.",
       [](const RunStatus& s) { return static_cast<double>(s.samples); }},
      {"mayfly_target_samples", "gauge", "Samples the promise is believed to need.",
       [](const RunStatus& s) { return s.target ? std::optional(static_cast<double>(*s.target)) : std::nullopt; }},
      {"mayfly_liveput_samples_per_second", "gauge", "Samples per second that were committed, over the last seconds.",
       [](const RunStatus& s) { return s.samples_per_s; }},
      {"mayfly_step_duration_seconds", "gauge", "Mean time of a step so far, changes and waiting included.",
       [](const RunStatus& s) {
         return s.step > 0 ? std::optional(s.time.count() / static_cast<double>(s.step)) : std::nullopt;
       }},
      {"mayfly_loss", "gauge", "Training loss, mean over the last 1 % of an epoch.",
       [](const RunStatus& s) { return s.loss; }},
      {"mayfly_run_seconds_total", "counter", "Time of the run.", [](const RunStatus& s) { return s.time.count(); }},
      {"mayfly_deadline_slack_seconds", "gauge", "Deadline less time so far and time left at this speed.", slack},
      {"mayfly_cost_dollars_total", "counter", "Money spent.",
       [](const RunStatus& s) { return s.cost ? std::optional(s.cost->value) : std::nullopt; }},
      {"mayfly_preemptions_total", "counter", "Workers and servers lost.",
       [](const RunStatus& s) { return static_cast<double>(s.preemptions); }},
      {"mayfly_samples_redone_total", "counter", "Samples trained again from a checkpoint.",
       [](const RunStatus& s) { return static_cast<double>(s.samples_redone); }},
  };
  return kMetrics;
}

}  // namespace

std::string metrics_text(std::span<const RunView> runs) {
  std::string text;
  const auto head = [&](const char* name, const char* type, const char* help) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  };
  const auto run_label = [](const RunView& run) { return label(run_name(run.directory)); };
  for (const Metric& metric : metrics()) {
    std::string lines;
    for (const RunView& run : runs) {
      const auto value = run.status ? metric.value(*run.status) : std::nullopt;
      if (value) lines += fmt::format("{}{{run=\"{}\"}} {}\n", metric.name, run_label(run), *value);
    }
    if (lines.empty()) continue;
    head(metric.name, metric.type, metric.help);
    text += lines;
  }
  std::string machines;
  for (const RunView& run : runs) {
    std::map<std::pair<std::string, std::string>, int> counts;
    if (run.status && run.life == RunLife::running) {
      for (const MachineStatus& machine : run.status->machines) {
        if (machine.held()) ++counts[{machine.type, machine.market}];
      }
    }
    for (const auto& [kind, count] : counts)
      machines += fmt::format("mayfly_machines{{run=\"{}\",type=\"{}\",market=\"{}\"}} {}\n", run_label(run),
                              label(kind.first), label(kind.second), count);
  }
  if (!machines.empty()) {
    head("mayfly_machines", "gauge", "Machines held now.");
    text += machines;
  }
  std::string states;
  for (const RunView& run : runs)
    states += fmt::format("mayfly_run_up{{run=\"{}\"}} {}\n", run_label(run), run.life == RunLife::running ? 1 : 0);
  if (!states.empty()) {
    head("mayfly_run_up", "gauge", "1 while somebody drives the run.");
    text += states;
  }
  return text;
}

}  // namespace mayfly
