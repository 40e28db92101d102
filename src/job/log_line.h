#pragma once

#include <optional>
#include <string_view>

namespace mayfly {

/// What one line of a training's log says; what it does not say is absent.
struct LogPoint {
  int line = 0;                           ///< of the file
  std::optional<double> step{};           ///< updates since the beginning
  std::optional<double> epoch{};          ///< as the log counts them
  std::optional<double> done{};           ///< of this epoch, where it counts steps or samples by the epoch
  std::optional<double> of{};             ///< how many an epoch has of them; without `done`: steps of the whole
  bool done_samples = false;              ///< `done` and `of` are samples, not steps
  std::optional<double> loss{};           ///< of the training
  std::optional<double> clock{};          ///< seconds since 1970, or since the program began
  std::optional<double> time{};           ///< called "time" and no more: a clock, or one step's duration
  std::optional<double> step_s{};         ///< seconds of one step
  std::optional<double> samples_per_s{};  ///< speed
  std::optional<double> batch{};          ///< samples of one step
  bool operator==(const LogPoint&) const = default;

  /// Nothing but perhaps an epoch.
  bool empty() const { return !step && !done && !loss && !step_s && !samples_per_s; }
};

/// What a column, a JSON key or a word before a number means.
enum class LogKey { step, epoch, loss, clock, time, step_s, step_ms, steps_per_s, samples_per_s, batch };
/// By its usual spellings, in any case of letters: "global_step", "train/loss", "Wall time"; nothing for others, such
/// as losses of a validation.
std::optional<LogKey> log_key(std::string_view name);
void put(LogPoint& point, LogKey key, double value);

/// A line for people or of JSON: `step 100 loss 2.31 0.12 s/it`, `Epoch 1 [640/60000] loss: 0.3`, `{"step": 1, ...}`, a
/// progress bar. Never fails: most lines of a log say nothing.
LogPoint parse_log_line(std::string_view line);

}  // namespace mayfly
