#pragma once

#include <memory>

#include "job/train_spec.h"
#include "nn/network.h"

namespace mayfly {

/// One layer for the dials data, and further parameters that only travel; each sample takes as long as the job says.
std::unique_ptr<Network> dials_network(const ModelSpec& model, int inputs, int classes);

}  // namespace mayfly
