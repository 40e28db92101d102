#include "cli/server_setup.h"

#include <algorithm>

#include "predict/worker.h"

namespace mayfly::cli {

void fit_to_job(const JobSpec& spec, const Catalog& catalog, Profile& profile) {
  if (profile.pipeline) return;
  const auto& servers = spec.train->servers;
  profile.exchange = servers ? Exchange::server : Exchange::all_reduce;
  if (!servers) return;
  profile.sync = servers->sync == ServersSpec::Sync::bsp ? Sync::bsp : Sync::asp;
  for (const std::string& type : {servers->type, profile.server.type, catalog.server_type, spec.instance_type}) {
    if (type.empty()) continue;
    profile.server.type = type;
    break;
  }
}

Result<void> set_servers(RunSetup& setup) {
  auto& spec = setup.inputs.spec.train->servers;
  if (!spec) return {};
  ServerRole& servers = setup.inputs.servers;
  if (spec->count == 0 && setup.plan.contains("servers") && setup.plan["servers"].is_array()) {
    for (const Json& line : setup.plan["servers"]) spec->count += line.is_object() ? line.value("n", 0) : 0;
  }
  spec->count = std::max(1, spec->count);
  servers.count = spec->count * (1 + spec->standby);
  servers.type = setup.profile ? setup.profile->server.type : spec->type;
  if (servers.type.empty()) servers.type = setup.catalog.server_type;
  if (servers.type.empty() || (!setup.inputs.priced && spec->type.empty())) return {};
  const auto type = lookup(setup.catalog, servers.type);
  if (!type) return fail("the servers' machines: {}", type.error().message);
  if (!setup.inputs.priced) return {};
  if (setup.inputs.emulation && setup.inputs.emulation->slowdown)
    servers.limits.network =
        setup.profile && setup.profile->server.network ? setup.profile->server.network : (*type)->usable_network();
  if (setup.profile && setup.profile->server.price) {
    servers.price = *setup.profile->server.price;
  } else if ((*type)->on_demand) {
    servers.price = (*type)->on_demand->rate;
  }
  return {};
}

void set_batch(const RunSetup& setup, MachineRole& role) {
  const auto& servers = setup.inputs.spec.train->servers;
  if (!servers || servers->sync == ServersSpec::Sync::bsp || !setup.profile) return;
  const auto* type = setup.catalog.find(role.type);
  if (type == nullptr) return;  // a plan's own: the job's batch will do
  if (const auto worker = make_worker(*setup.profile, *type, setup.catalog))
    role.batch = static_cast<int>(worker->batch);
}

}  // namespace mayfly::cli
