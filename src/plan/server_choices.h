#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/planner.h"

namespace mayfly {

using SiteName = std::pair<std::string, std::string>;  // cloud, region

/// How many of a type run already.
int existing_of(const std::string& type, const PlanRequest& request);
/// Clouds offer it no longer, and nobody asked for it nonetheless.
bool is_retired(const InstanceType& type, const PlanRequest& request);

/// The parameter servers that a site's clusters may have, cheapest first, without those that another surpasses for no
/// more money. They are rented on demand: a server that vanishes takes the work of all workers with it.
std::vector<ServerChoice> server_choices(const Profile& profile, const Catalog& catalog, const PlanRequest& request,
                                         const SiteName& site);

}  // namespace mayfly
