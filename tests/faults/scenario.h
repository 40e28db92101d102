#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/controller.h"

namespace mayfly {

/// What a controller is made of and what is told to it, without the world that tells it: the upper part of the files
/// in tests/scenarios. docs/formats.md#scenario
struct Scenario {
  PolicyName policy = PolicyName::reactive;
  std::vector<Shape> shapes{};
  std::vector<double> speeds{};  ///< samples/s of each
  Seconds change{30};            ///< what every change of shape costs
  ControllerOptions options{};
  std::vector<Offer> offers{};  ///< machines on demand that may be ordered
  /// Ticks come when they are due, after everything else of that moment, up to `until`; or only where written.
  bool ticks_written = false;
  std::optional<Seconds> until{};  ///< default: the last event
  std::vector<TimedEvent> events{};
};

/// Errors name file:line, the word seen and the word wanted.
Result<Scenario> parse_scenario(std::string_view text, const std::string& file);
/// The same text again, without its comments.
std::string scenario_text(const Scenario& scenario);

/// What the controller answers: each command and each event that it ignored, a line with time and reason.
std::string transcript(const Scenario& scenario);

/// `scenario`'s controller. `shapes` and `costs` must outlive it.
Controller make_controller(const Scenario& scenario, const Shapes& shapes, const MigrationCosts& costs);

}  // namespace mayfly
