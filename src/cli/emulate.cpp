#include "cli/emulate.h"

#include <algorithm>

#include "base/text.h"

namespace mayfly::cli {
namespace {

constexpr std::string_view kFunction = "lambda-";

const Profile* profile_of(const RunSetup& setup) { return setup.profile ? &*setup.profile : nullptr; }

/// Makes a function of so much memory a machine like any other.
Result<MachineRole> function_role(const std::string& name, RunSetup& setup) {
  const auto memory = parse_integer(std::string_view(name).substr(kFunction.size()));
  if (!memory) return fail("{}: want a memory in MiB, such as lambda-1728", name);
  auto type = function_type(profile_of(setup), setup.catalog, *memory);
  if (!type) return unexpected(type.error());
  if (setup.profile) {
    if (const auto speed = function_profile(*setup.profile, *type, *memory)) setup.profile->types[name] = *speed;
  }
  const auto& functions = setup.catalog.functions;
  const auto* platform = setup.profile && setup.profile->serverless
                             ? setup.catalog.find_function(setup.profile->serverless->platform)
                             : &functions.front();
  MachineRole role{.type = name,
                   .market = Market::serverless,
                   .price = type->on_demand->rate,
                   .limits = {.memory_mib = memory, .lifetime = platform->timeout}};
  auto& types = setup.catalog.types;
  if (setup.catalog.find(name) == nullptr)
    types.insert(std::lower_bound(types.begin(), types.end(), name,
                                  [](const InstanceType& one, const std::string& other) { return one.name < other; }),
                 *std::move(type));
  return role;
}

Result<MachineRole> machine_role(const std::string& name, RunSetup& setup) {
  const auto type = lookup(setup.catalog, name);
  if (!type) return unexpected(type.error());
  const bool spot = setup.inputs.spec.resources.front().use_spot.value_or((*type)->spot.has_value());
  const auto& price = spot ? (*type)->spot : (*type)->on_demand;
  if (!price) return fail("{} has no {} price", name, spot ? "spot" : "on-demand");
  return MachineRole{.type = name, .market = spot ? Market::spot : Market::on_demand, .price = price->rate};
}

std::vector<MachineCount> counted(const std::vector<MachineRole>& roles) {
  std::vector<MachineCount> counts;
  for (const MachineRole& role : roles) {
    const auto same =
        std::find_if(counts.begin(), counts.end(), [&](const MachineCount& count) { return count.type == role.type; });
    if (same == counts.end()) {
      counts.push_back({role.type, 1});
    } else {
      ++same->count;
    }
  }
  return counts;
}

/// Money and promise are those of the real cluster.
void stretch(double slowdown, PlanRequest& request, RunSetup& setup) {
  RunInputs& inputs = setup.inputs;
  if (setup.profile) setup.profile = stretched(*setup.profile, slowdown);
  setup.catalog = stretched(setup.catalog, slowdown);
  for (auto* time : {&request.deadline, &inputs.spec.deadline, &inputs.forecast.time}) {
    if (*time) **time *= slowdown;
  }
  for (MachineRole& role : inputs.roles) {
    role.price = role.price / slowdown;
    if (role.limits.lifetime) *role.limits.lifetime *= slowdown;
  }
}

Result<void> set_lifetime(const std::string& text, RunInputs& inputs) {
  if (text.empty()) return {};
  const auto lifetime = parse_duration(text);
  if (!lifetime) return fail("--lifetime: {}", lifetime.error().message);
  if (lifetime->count() <= 0) return fail("--lifetime '{}': want more than nothing", text);
  for (MachineRole& role : inputs.roles) role.limits.lifetime = *lifetime;
  return {};
}

}  // namespace

Result<void> read_as(const RunFlags& flags, RunSetup& setup) {
  const auto machines = parse_machines(flags.as);
  if (!machines) return fail("--as: {}", machines.error().message);
  setup.inputs.roles.clear();
  for (const MachineCount& machine : *machines) {
    const auto role =
        machine.type.starts_with(kFunction) ? function_role(machine.type, setup) : machine_role(machine.type, setup);
    if (!role) return fail("--as: {}", role.error().message);
    setup.inputs.roles.insert(setup.inputs.roles.end(), static_cast<std::size_t>(machine.count), *role);
  }
  if (setup.inputs.roles.empty()) return fail("--as '{}': names no machine", flags.as);
  setup.inputs.priced = true;
  return {};
}

Result<void> emulate(const RunFlags& flags, int cores, PlanRequest& request, RunSetup& setup) {
  RunInputs& inputs = setup.inputs;
  if (const auto set = set_lifetime(flags.lifetime, inputs); !set) return set;
  if (flags.as.empty()) return {};
  const auto& servers = inputs.spec.train->servers;
  const EmulationRequest wanted{.machines = counted(inputs.roles),
                                .servers = servers ? std::max(1, servers->count) * (1 + servers->standby) : 0,
                                .cores = cores};
  const auto emulation = make_emulation(profile_of(setup), setup.catalog, wanted);
  if (!emulation && setup.profile) return fail("--as: {}", emulation.error().message);
  if (!emulation) {
    setup.notes.push_back(fmt::format("not emulated, prices only: {}", emulation.error().message));
    return {};
  }
  inputs.emulation = *emulation;
  // Other types may join later; their speeds are those of the world before it is stretched.
  setup.hold_back = [profile = setup.profile, catalog = setup.catalog, made = *emulation](MachineRole& role) {
    const auto* type = catalog.find(role.type);
    const auto held = type == nullptr ? Result<EmulatedType>(EmulatedType{})
                                      : emulated_type(made, profile ? &*profile : nullptr, catalog, *type);
    if (!held) return;
    role.limits.cpu_share = held->cpu_share;
    role.limits.network = held->network;
  };
  for (MachineRole& role : inputs.roles) setup.hold_back(role);
  if (emulation->slowdown) {
    setup.notes.push_back(fmt::format("emulated: times are {:.3g} times those of real machines", *emulation->slowdown));
    stretch(*emulation->slowdown, request, setup);
  } else {
    setup.notes.push_back(
        "emulated: machines differ in speed as real ones do; by how much all are slower is not known without a profile "
        "that has measured one type here, so networks are not held back and promises stay as they are");
  }
  return {};
}

}  // namespace mayfly::cli
