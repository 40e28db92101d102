#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "cloud/instance_type.h"

// A user's own script under the real torchrun: mayfly starts it, hands on notices, and keeps time, money and a
// journal. What happens when membership changes is torchrun's affair: it starts the script again, from the script's
// checkpoint.
namespace mayfly {

struct TorchrunInputs {
  std::vector<std::string> command{};  ///< torchrun and its arguments
  std::filesystem::path directory{};   ///< of the journal, the summary and notices
  std::string type = "local";          ///< what this machine is
  Market market = Market::spot;
  std::optional<UsdPerHour> price{};
  std::optional<Usd> budget{};
  std::optional<Seconds> deadline{};
  std::optional<double> steps{};  ///< of the whole training
  Seconds grace{30};              ///< left after a SIGTERM
  bool terminal = false;          ///< Ctrl-C reaches torchrun without our help
};

struct TorchrunSummary {
  int exit_code = 0;  ///< torchrun's; 128 + n where signal n ended it
  Seconds time{};
  std::optional<Usd> cost{};
  int restarts = 0;     ///< of the script's processes
  int preemptions = 0;  ///< notices that this machine will be taken
  bool over_budget = false;
  std::optional<double> step{};
  std::optional<double> loss{};
  std::optional<bool> deadline_met{};
};
/// `DIR/summary.json` of such a run. docs/formats.md#torchrun
Json summary_json(const TorchrunSummary& summary);

struct TorchrunCalls {
  std::function<void(const std::string&)> say{};
  /// Given, while torchrun runs, what to call, from any thread, when the machine will be taken: how much time is left
  /// and who said so. At the end it is given nothing: then no thread may call any more.
  std::function<void(std::function<void(Seconds left, const std::string& source)>)> notices{};
};

/// Until torchrun has ended. Its output passes through standard output and error. SIGTERM is a notice of `grace`: the
/// script's processes get SIGTERM at once, torchrun itself only when the time is over or it starts them again. A second
/// SIGTERM, and SIGINT, go to torchrun.
Result<TorchrunSummary> drive_torchrun(const TorchrunInputs& inputs, const TorchrunCalls& calls);

/// The script's processes: children of torchrun to which it gave a rank. By local rank.
std::vector<std::pair<int, int>> ranked_children(int torchrun);

}  // namespace mayfly
