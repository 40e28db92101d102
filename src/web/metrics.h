#pragma once

#include <span>
#include <string>

#include "status/folder.h"

namespace mayfly {

/// What Prometheus reads at /metrics, in its text format: one line a figure and run, labelled with the run's name.
/// Money is in USD, times in seconds; what is not known is left out.
std::string metrics_text(std::span<const RunView> runs);

}  // namespace mayfly
