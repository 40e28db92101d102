#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace mayfly {

/// What of a job file must stay as it is while a run of it goes on, because it decides which samples are trained in
/// which order and what is made of them: its `run` command and its `train` block, as dotted keys and their values. Not
/// among it is what only says where and how often to save, how to load, and when to give up: `train.checkpoint`,
/// `train.data.loader`, `train.on_nan`, `train.nan_steps`, `train.on_drift`. The rest of the file (objective,
/// resources, elastic and so on) may change as well.
Result<std::map<std::string, std::string>> lasting_terms(const std::string& text, const std::string& file);

/// All that differ, for people: "train.seed: was 1, is 2"; empty: nothing does.
std::string differences(const std::map<std::string, std::string>& before,
                        const std::map<std::string, std::string>& now);

}  // namespace mayfly
