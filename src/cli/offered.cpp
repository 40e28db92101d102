#include "cli/offered.h"

#include <algorithm>

#include "base/text.h"
#include "engine/slurm_script.h"

namespace mayfly::cli {
namespace {

constexpr std::array kRented{Market::spot, Market::on_demand};

template <class Type>
std::map<Market, Offered::Terms> terms_of(const Type& type, const std::set<Market>& markets) {
  std::map<Market, Offered::Terms> terms;
  for (const Market market : markets) terms[market].price = market == Market::spot ? type.spot : type.on_demand;
  return terms;
}

Offered of_slurm(const SlurmSpec& slurm) {
  Offered offered{.where = "engine.slurm.types"};
  for (const Market market : kRented) {
    if (queue_of(slurm, market) != nullptr) offered.markets.insert(market);
  }
  for (const auto& [name, type] : slurm.types) offered.types[name] = terms_of(type, offered.markets);
  return offered;
}

Offered of_program(const ExecSpec& exec) {
  Offered offered{.where = "engine.exec.types", .markets = {kRented.begin(), kRented.end()}};
  for (const auto& [name, type] : exec.types) offered.types[name] = terms_of(type, offered.markets);
  return offered;
}

Offered of_hosts(const SshSpec& ssh) {
  Offered offered{.where = "engine.ssh.hosts"};
  for (const SshHost& host : ssh.hosts) {
    const Market market = host.spot ? Market::spot : Market::on_demand;
    offered.markets.insert(market);
    Offered::Terms& terms = offered.types[host.type][market];
    terms.price = host.price;
    terms.most = terms.most.value_or(0) + host.machines;
  }
  return offered;
}

}  // namespace

bool stays_below(const std::filesystem::path& path) {
  const auto normal = path.lexically_normal();
  return !path.is_absolute() && (normal.empty() || *normal.begin() != "..");
}

std::vector<ShelfRoot> shelf_of(const RunInputs& inputs, const std::filesystem::path& package) {
  std::vector<ShelfRoot> roots;
  const auto folder = inputs.job_file.parent_path();
  const auto add = [&](const std::filesystem::path& name) {
    if (stays_below(name)) roots.push_back({("job" / name).lexically_normal().generic_string(), folder / name});
  };
  const TrainSpec& train = *inputs.spec.train;
  if (train.data.name != "dials") std::ranges::for_each(train.data.files, add);
  if (train.validation) std::ranges::for_each(train.validation->files, add);
  if (!inputs.script && !train.model.file.empty()) add(train.model.file);
  if (!inputs.script) return roots;
  add(inputs.spec.workdir.empty() ? "." : inputs.spec.workdir);
  if (!package.empty()) roots.push_back({"python/mayfly", package / "mayfly"});
  return roots;
}

const Offered::Terms* Offered::find(const std::string& type, Market market) const {
  const auto found = types.find(type);
  if (found == types.end()) return nullptr;
  const auto terms = found->second.find(market);
  return terms == found->second.end() ? nullptr : &terms->second;
}

std::optional<int> Offered::most() const {
  std::optional<int> sum;
  for (const auto& [type, markets_of_it] : types) {
    for (const auto& [market, terms] : markets_of_it) {
      if (!terms.most) return std::nullopt;
      sum = sum.value_or(0) + *terms.most;
    }
  }
  return sum;
}

std::optional<Offered> offered_by(const EngineSpec& engine) {
  if (engine.kind == "slurm") return of_slurm(engine.slurm);
  if (engine.kind == "exec") return of_program(engine.exec);
  if (engine.kind == "ssh") return of_hosts(engine.ssh);
  return std::nullopt;
}

Result<void> check_machine_flags(const RunFlags& flags, const JobSpec& spec, const EngineSpec& engine) {
  for (const auto& [flag, text] :
       {std::pair{"--as", &flags.as}, {"--trace", &flags.trace}, {"--lifetime", &flags.lifetime}}) {
    if (!text->empty())
      return fail("{}: is for machines that this computer plays; here they are what engine.{} says", flag, engine.kind);
  }
  const bool counted = flags.workers || spec.most_workers || spec.nodes || !flags.plan.empty() ||
                       !spec.profile.empty() || offered_by(engine)->most();
  if (!counted) return fail("--engine {}: how many machines? want --workers, elastic.max or num_nodes", engine.kind);
  return {};
}

void limit_to(const Offered& offered, RunSetup& setup, PlanRequest& request) {
  for (InstanceType& type : setup.catalog.types) {
    const auto found = offered.types.find(type.name);
    if (found == offered.types.end()) continue;
    type.zones.clear();  // of a cloud
    std::optional<int> most;
    for (const auto& [market, terms] : found->second) {
      auto& offer = market == Market::spot ? type.spot : type.on_demand;
      if (terms.price && offer) offer->rate = *terms.price;
      if (terms.most) most = most.value_or(0) + *terms.most;
    }
    if (most) std::erase_if(request.quota, [&](const MachineCount& one) { return one.type == type.name; });
    if (most) request.quota.push_back({type.name, *most});
  }
  const auto ours = [offered](const InstanceType& type) { return offered.types.contains(type.name); };
  if (setup.profile && std::ranges::none_of(setup.catalog.types, ours)) {
    setup.notes.push_back(
        fmt::format("the profile is not used: {} has no type of the catalogue, so nothing is known of their speeds",
                    offered.where));
    setup.profile.reset();
  }
  request.wanted = [ours, before = request.wanted](const InstanceType& type) {
    return ours(type) && (!before || before(type));
  };
  request.wanted_offer = [offered, before = request.wanted_offer](const InstanceType& type, const Offer& offer) {
    return offered.find(type.name, offer.market) != nullptr && (!before || before(type, offer));
  };
}

Result<std::vector<MachineRole>> offered_roles(const Offered& offered, const RunSetup& setup,
                                               const std::set<Market>& markets, int most) {
  const std::string& named = setup.inputs.spec.resources.front().instance_type;
  std::vector<std::string> types;
  for (const auto& [type, terms] : offered.types) types.push_back(type);
  if (!named.empty() && !offered.types.contains(named))
    return fail("resources.instance_type: {} has no '{}'{}", offered.where, named, did_you_mean(named, types));
  if (!named.empty()) types = {named};
  std::vector<MachineRole> roles;
  if (offered.most()) {
    for (const Market market : kRented) {
      for (const std::string& type : types) {
        const auto* terms = markets.contains(market) ? offered.find(type, market) : nullptr;
        if (terms != nullptr)
          roles.insert(roles.end(), static_cast<std::size_t>(*terms->most), {.type = type, .market = market});
      }
    }
    if (roles.empty()) return fail("{} has no machines of the markets that are wanted", offered.where);
    // More than there are: those that come too much are refused until others go.
    roles.resize(static_cast<std::size_t>(most), roles.back());
    return roles;
  }
  if (types.size() > 1)
    return fail("{} has {}: which? want resources.instance_type, or a plan", offered.where, fmt::join(types, ", "));
  MachineRole role{.type = types.empty() ? setup.engine.kind : types.front(),
                   .market = markets.contains(Market::spot) ? Market::spot : Market::on_demand};
  for (const Market market : kRented) {
    if (!markets.contains(market) || !offered.markets.contains(market)) continue;
    role.market = market;
    break;
  }
  // That a market has no machines is said when they are asked for.
  return std::vector<MachineRole>(static_cast<std::size_t>(most), role);
}

void set_prices(const Offered& offered, RunSetup& setup) {
  RunInputs& inputs = setup.inputs;
  bool all = true;
  const auto take = [&](const std::string& type, Market market, UsdPerHour& price) {
    const auto* terms = offered.find(type, market);
    all = all && terms != nullptr && terms->price;
    if (terms != nullptr && terms->price) price = *terms->price;
  };
  for (MachineRole& role : inputs.roles) take(role.type, role.market, role.price);
  if (inputs.servers.count > 0) take(inputs.servers.type, Market::on_demand, inputs.servers.price);
  inputs.priced = inputs.priced || all;
}

std::vector<MachineRole> kinds_of(const RunInputs& inputs) {
  std::vector<MachineRole> kinds;
  const auto add = [&](const MachineRole& role) {
    const bool known = std::ranges::any_of(
        kinds, [&](const MachineRole& other) { return other.kind() == role.kind() && other.server == role.server; });
    if (!known) kinds.push_back(role);
  };
  for (const MachineRole& role : inputs.roles) add(role);
  // What a run in danger of missing its deadline may ask for.
  if (inputs.rents && inputs.spec.deadline) {
    MachineRole rented = inputs.roles.front();
    rented.market = Market::on_demand;
    add(rented);
  }
  if (inputs.servers.count > 0) add({.type = inputs.servers.type, .market = Market::on_demand, .server = true});
  return kinds;
}

Result<MachineProgram> machine_program(const RunFlags& flags, const RunSetup& setup, const std::string& setup_lines,
                                       bool shared_files) {
  const RunInputs& inputs = setup.inputs;
  MachineProgram machine{.program = setup.program,
                         .arguments = {"--interface", "auto", "--notices", setup.notices},
                         .script = inputs.script,
                         .setup = setup_lines,
                         .own_files = !shared_files,
                         .workdir = inputs.spec.workdir};
  machine.terms.directory = inputs.directory;
  if (flags.trust) machine.arguments.emplace_back("--trust");
  if (shared_files || !inputs.script) return machine;
  if (inputs.servers.count > 0)
    return fail("--engine {}: scripts with servers need machines that see this computer's files: want files: shared",
                setup.engine.kind);
  if (!stays_below(machine.workdir))
    return fail(
        "workdir '{}': machines of engine {} fetch what lies below the job file's folder: want a path below it, or "
        "files: "
        "shared",
        machine.workdir.string(), setup.engine.kind);
  return machine;
}

}  // namespace mayfly::cli
