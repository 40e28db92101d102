#pragma once

#include <string>

#include "cloud/catalog.h"
#include "job/profile.h"

namespace mayfly::cli {

/// `predict --stalls`: of the cluster's machines, or, where none is named, of every type that can do the job. The
/// exit code.
int predict_stalls(Profile profile, const Catalog& catalog, Market market, const std::string& cluster, bool json);

}  // namespace mayfly::cli
