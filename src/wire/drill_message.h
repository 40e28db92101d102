#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mayfly {

// Messages of a rehearsal: an operator, who has the run's token, has workers believe that they will be taken.
// docs/protocol.md

/// From an operator: these workers and servers are in a rehearsal. With a cloud they are told to watch its metadata
/// service at `endpoint`, which must be on loopback; with "sigterm" the engine gives them its notice. A machine that
/// is still there after `window_s` is ended. Without workers it is the controller that the operator will end.
struct Drill {
  std::vector<int> workers{};
  std::string cloud{};  ///< "aws", "gcp", "azure", "sigterm" or "none"
  std::string endpoint{};
  double window_s = 0;  ///< from this word to their end
  bool operator==(const Drill&) const = default;
};
/// To an operator: it is written down and passed on.
struct Drilling {
  double time_s = 0;         ///< of the run
  std::int64_t samples = 0;  ///< committed so far
  bool operator==(const Drilling&) const = default;
};
/// To a worker or server: listen to this metadata service too. Who cannot does nothing.
struct Watch {
  std::string cloud{};
  std::string endpoint{};
  bool operator==(const Watch&) const = default;
};

}  // namespace mayfly
