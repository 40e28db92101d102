#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "predict/emulation.h"
#include "wire/data_message.h"

// How a run ended, against what was promised. docs/formats.md#summary
namespace mayfly {

/// What was promised, for the comparison at the end.
struct Forecast {
  std::optional<Seconds> time{};
  std::optional<Usd> cost{};
  std::optional<double> samples{};  ///< to the promised loss
};

enum class RunEnd { trained, budget, stopped, unable };
std::string_view name(RunEnd end);

struct RunSummary {
  RunEnd end = RunEnd::trained;
  std::optional<double> loss{};
  std::optional<double> validation_loss{};
  std::optional<double> accuracy{};
  std::int64_t samples = 0;
  double epochs = 0;
  std::int64_t samples_repeated = 0;  ///< in the weights more than once an epoch
  std::int64_t samples_skipped = 0;   ///< not in the weights
  std::int64_t samples_redone = 0;    ///< trained again, from a checkpoint
  int preemptions = 0;
  Seconds time{};
  std::optional<Usd> cost{};
  Forecast forecast{};
  std::optional<Seconds> recovery_p50{};  ///< from a loss to the next commit
  std::optional<Seconds> recovery_max{};
  std::optional<double> staleness_mean{};  ///< with servers: updates between a gradient's state and its use
  std::optional<double> staleness_max{};
  std::int64_t strangers = 0;  ///< connections that did not prove to belong to the run
  std::string checkpoint{};
  std::string failure{};              ///< of `unable`: what the job asks for and no worker can do
  std::vector<std::string> missed{};  ///< promises: "deadline", "loss", "budget"
  std::optional<Emulation> emulated{};
  std::optional<Fed> loader{};  ///< of all workers together, where they have said so
};

/// `DIR/summary.json`.
Json summary_json(const RunSummary& summary);
/// Of a run that has ended; what it says of an emulation and the loader is left out.
Result<RunSummary> load_summary(const std::filesystem::path& directory);

}  // namespace mayfly
