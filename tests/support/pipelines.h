#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "job/profile.h"
#include "predict/shapes.h"
#include "trace/parcae_files.h"

// Pipeline jobs for the tests and benchmarks: small ones to work by hand, random ones, and Parcae's.
namespace mayfly::support {

/// Five layers of 10 B, 1 B/s, machines join in 2 s and leave in 1 s each, rendezvous 10 s, process 1 s; a pipeline of
/// p stages is built in 1 + 2 p s. No measured shape.
Profile small_pipeline();

/// Random layers, transfer times and restart costs; no change costs more than 160 s times `scale`.
Profile random_pipeline(Rng& rng, double scale);

/// Every shape of at most so many machines with one of the depths, some 10 % slower per machine for each doubling of
/// the width; restart costs as of GPT-1.5B.
Shapes grid_shapes(int machines, const std::vector<int>& depths);

/// GPT-2 of 1.5 billion parameters as Parcae's artifact costs it, for all depths to 26; no measured shape.
Profile gpt_pipeline();

/// Parcae's choices over the whole p3 trace, if this checkout has them; `model`: "bert" or "resnet152".
std::optional<std::vector<ParcaeChoice>> parcae_choices(const std::string& model);

}  // namespace mayfly::support
