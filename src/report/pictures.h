#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace mayfly {

/// A standalone SVG, good enough for a paper. The name has letters and dashes only, so it can be that of a file.
struct Picture {
  std::string name;
  std::string svg;
};

/// The pictures of a `mayfly-report/1` (docs/formats.md#report), in the order a reader wants them:
///
///   timeline       machines held, by type and market, and how many of them train      first view
///   progress       samples over time, with the prediction and its band, target, deadline; further views to compare
///   loss           training and validation, with the prediction and the target; further views to compare
///   money          spent over time, with the prediction, budget, and the price on demand; further views to compare
///   machine-time   where it went, a bar for each view
///   frontier       time against cost of the plan's options
///   replay-progress, replay-machine-time, replay-money      likewise, for each policy of a replay
///   stalls         where a training step's time goes, of a profile
///
/// What a document does not tell has no picture. The document may have been edited by hand: whatever is in it, its
/// texts end up escaped and its numbers drawn or left out.
std::vector<Picture> pictures(const Json& report);

}  // namespace mayfly
