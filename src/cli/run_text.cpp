#include "cli/run_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "base/how_many.h"
#include "base/table.h"
#include "base/text.h"

namespace mayfly::cli {
namespace {

std::string short_time(Seconds time) { return format_duration(Seconds(std::round(std::max(0.0, time.count())))); }
std::string or_dash(const std::optional<Seconds>& time) { return time ? format_duration(*time) : "-"; }
std::string or_dash(const std::optional<Usd>& money) { return money ? fmt::format("{:.4f} USD", money->value) : "-"; }
std::string or_dash(const std::optional<double>& value) { return value ? fmt::format("{:.4f}", *value) : "-"; }

std::string target_words(const JobSpec& job) {
  if (job.epochs) return fmt::format("{} epochs", *job.epochs);
  if (job.steps) return fmt::format("{} steps", *job.steps);
  return "-";
}

}  // namespace

std::string progress_line(const RunProgress& progress) {
  std::string line = fmt::format("step {} | loss {:.4f} | {:.0f} samples/s | {}", progress.step, progress.loss,
                                 progress.samples_per_s, how_many(progress.machines, "machine"));
  if (progress.target)
    line += fmt::format(" | {:.0f} %", 100.0 * static_cast<double>(progress.samples) /
                                           static_cast<double>(std::max<std::int64_t>(1, *progress.target)));
  if (progress.spent) line += fmt::format(" | {:.4f} USD", progress.spent->value);
  if (progress.left) line += fmt::format(" | {} to go", short_time(*progress.left));
  if (progress.deadline) {
    const Seconds rest = *progress.deadline - progress.time;
    line += rest.count() >= 0 ? fmt::format(" | deadline in {}", short_time(rest))
                              : fmt::format(" | {} late", short_time(-rest));
  }
  return line;
}

std::string summary_text(const RunSummary& summary, const JobSpec& job) {
  Table table({"", ">promised", ">delivered"});
  table.add({"time", or_dash(summary.forecast.time), format_duration(summary.time)});
  if (job.deadline) table.add({"deadline", format_duration(*job.deadline), format_duration(summary.time)});
  if (summary.cost) table.add({"cost", or_dash(summary.forecast.cost), or_dash(summary.cost)});
  table.add({"loss", or_dash(job.loss), or_dash(summary.loss)});
  if (summary.validation_loss) table.add({"validation loss", "-", or_dash(summary.validation_loss)});
  if (summary.accuracy) table.add({"accuracy", "-", fmt::format("{:.1f} %", 100 * *summary.accuracy)});
  table.add({"trained", target_words(job), fmt::format("{} samples, {:.2f} epochs", summary.samples, summary.epochs)});
  table.add({"repeated, skipped", "0, 0", fmt::format("{}, {}", summary.samples_repeated, summary.samples_skipped)});
  table.add({"preemptions", "-", fmt::format("{}", summary.preemptions)});
  if (summary.recovery_p50)
    table.add({"recovery (median, longest)", "-",
               fmt::format("{:.3f} s, {:.3f} s", summary.recovery_p50->count(), summary.recovery_max->count())});
  std::string text = table.text();
  if (summary.samples_redone > 0)
    text += fmt::format("{} samples were trained again from a checkpoint, because all machines were gone at once\n",
                        summary.samples_redone);
  for (const std::string& promise : summary.missed) text += fmt::format("promise missed: {}\n", promise);
  text += fmt::format("weights: {}\n", summary.checkpoint.empty() ? "none" : summary.checkpoint);
  return printable(text);
}

void RunScreen::say(const std::string& text) {
  if (terminal_ && !line_.empty()) fmt::print(stderr, "\r\033[K");
  fmt::print(stderr, "{}\n", terminal_ ? printable(text) : text);
  if (terminal_ && !line_.empty()) fmt::print(stderr, "{}", line_);
  std::fflush(stderr);
}

void RunScreen::progress(const RunProgress& progress) {
  if (!terminal_) return;
  line_ = progress_line(progress);
  fmt::print(stderr, "\r\033[K{}", line_);
  std::fflush(stderr);
}

void RunScreen::end() {
  if (terminal_ && !line_.empty()) fmt::print(stderr, "\r\033[K");
  line_.clear();
}

}  // namespace mayfly::cli
