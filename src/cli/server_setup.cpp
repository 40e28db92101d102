#include "cli/server_setup.h"

#include <algorithm>

#include "predict/worker.h"

namespace mayfly::cli {

void fit_to_job(const JobSpec& spec, const Catalog& catalog, Profile& profile, PlanRequest& request) {
  if (profile.pipeline) return;
  const auto& servers = spec.train->servers;
  const Exchange exchange = servers ? Exchange::server : Exchange::all_reduce;
  if (profile.exchange != exchange) profile = exchanging(profile, exchange, catalog);
  profile.sync = servers && servers->sync != ServersSpec::Sync::bsp ? Sync::asp : Sync::bsp;
  if (profile.sync == Sync::bsp && !profile.scale_batch) profile.batch = spec.train->batch;
  if (!servers) return;
  request.exchanges = {Meeting::servers};
  for (const std::string& type :
       {servers->type, profile.server.type, catalog.server_type, spec.resources.front().instance_type}) {
    if (type.empty()) continue;
    profile.server.type = type;
    break;
  }
}

void adopt_exchange(RunSetup& setup) {
  auto& servers = setup.inputs.spec.train->servers;
  if (servers || !setup.profile || !setup.plan.is_object()) return;  // with --as there is no plan
  if (setup.plan.value("exchange", "") != name(Meeting::servers)) return;
  servers = ServersSpec{.sync = ServersSpec::Sync::bsp};
  setup.profile = exchanging(*setup.profile, Exchange::server, setup.catalog);
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
