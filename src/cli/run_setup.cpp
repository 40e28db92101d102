#include "cli/run_setup.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "cli/command.h"
#include "cli/emulate.h"
#include "cli/offered.h"
#include "cli/plan_text.h"
#include "cli/question.h"
#include "cli/run_checkpoints.h"
#include "cli/run_engine.h"
#include "cli/run_markets.h"
#include "cli/server_setup.h"

namespace mayfly::cli {
namespace {

/// As many as --workers may say.
constexpr int kMostMachines = 1024;

/// --port and --advertise.
Result<void> listen_as(const RunFlags& flags, RunInputs& inputs) {
  const auto port_in = [](const std::string& text) -> std::optional<int> {
    const auto port = parse_integer(text);
    return port && *port >= 1 && *port <= 65535 ? std::optional(static_cast<int>(*port)) : std::nullopt;
  };
  if (!flags.port.empty()) {
    const auto port = port_in(flags.port);
    if (!port) return fail("--port '{}': want 1 to 65535", flags.port);
    inputs.port = *port;
  }
  if (flags.advertise.empty()) return {};
  const auto colon = flags.advertise.rfind(':');
  const bool whole = colon != std::string::npos;
  if (flags.advertise.substr(0, colon).empty() || (whole && !port_in(flags.advertise.substr(colon + 1))))
    return fail("--advertise '{}': want HOST or HOST:PORT, as machines elsewhere reach this one", flags.advertise);
  inputs.advertise = flags.advertise;
  return {};
}

/// The first IPv4 address of a network interface.
Result<std::string> address_of(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return fail("--interface: cannot list the network interfaces");
  std::optional<std::string> found;
  std::vector<std::string> known;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    known.emplace_back(entry->ifa_name);
    if (known.back() != interface || found) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr) found = text;
  }
  ::freeifaddrs(list);
  if (!found) return fail("--interface '{}': want one of {}", interface, fmt::join(known, ", "));
  return *found;
}

/// Machines of plan.json, as roles.
Result<void> read_plan(const std::string& path, RunSetup& setup) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  const Json plan = Json::parse(*text, nullptr, false);
  if (!plan.is_object() || !plan.contains("cluster") || !plan["cluster"].is_array())
    return fail("{}: no plan: want what 'mayfly plan -o' writes", path);
  if (plan.contains("feasible") && plan["feasible"] == false) return fail("{}: says that no plan is feasible", path);
  for (const Json& line : plan["cluster"]) {
    const bool whole = line.is_object() && line.contains("type") && line["type"].is_string() && line.contains("n") &&
                       line["n"].is_number_integer() && line.contains("market") && line["market"].is_string() &&
                       line.contains("usd_per_hour") && line["usd_per_hour"].is_number();
    if (!whole) return fail("{}: cluster: want type, market, n and usd_per_hour of each line", path);
    const auto market = parse_market(line["market"].get<std::string>());
    if (!market) return fail("{}: cluster: {}", path, market.error().message);
    const auto count = line["n"].get<std::int64_t>();
    if (count < 1 || count > 10'000) return fail("{}: cluster: n is {}, want 1 to 10000", path, count);
    const MachineRole role{
        .type = line["type"].get<std::string>(),
        .zone = line.contains("zone") && line["zone"].is_string() ? line["zone"].get<std::string>() : "",
        .market = *market,
        .price = {line["usd_per_hour"].get<double>()}};
    setup.inputs.roles.insert(setup.inputs.roles.end(), static_cast<std::size_t>(count), role);
  }
  if (setup.inputs.roles.empty()) return fail("{}: cluster: empty", path);
  if (plan.contains("time_s") && plan["time_s"].is_number())
    setup.inputs.forecast.time = Seconds(plan["time_s"].get<double>());
  if (plan.contains("cost_usd") && plan["cost_usd"].is_number())
    setup.inputs.forecast.cost = Usd{plan["cost_usd"].get<double>()};
  setup.inputs.priced = true;
  setup.plan = plan;
  return {};
}

/// As `plan` promises; but machines are processes of this computer, there at once.
Result<std::optional<NoPlan>> make_own_plan(const Question& question, RunSetup& setup) {
  auto usual = shipped_weather();
  if (!usual) return unexpected(usual.error());
  const PlanWeather weather{.usual = *std::move(usual)};
  Profile profile = *setup.profile;
  PlanRequest request = question.request;
  promise_in(weather, {}, setup.catalog, profile, request);
  request.start = {};
  const auto start = std::chrono::steady_clock::now();
  const auto answer = make_plan(profile, setup.catalog, request);
  if (!answer) return unexpected(answer.error());
  const PlanContext context{.profile = profile,
                            .catalog = setup.catalog,
                            .request = request,
                            .took = std::chrono::steady_clock::now() - start,
                            .weather = &weather};
  const bool colour = ::isatty(STDOUT_FILENO) != 0;
  if (const auto* no = std::get_if<Infeasible>(&*answer)) return NoPlan{plan_text(context, *no, colour)};
  const Plan& plan = std::get<Plan>(*answer);
  if (plan.chosen.fleet)
    return fail("the cheapest plan is serverless, which cannot be run yet: leave it out of --market");
  setup.plan_text = plan_text(context, plan, colour);
  setup.plan = plan_json(context, plan);
  for (const PlanLine& line : plan.chosen.cluster)
    setup.inputs.roles.insert(
        setup.inputs.roles.end(), static_cast<std::size_t>(line.count),
        MachineRole{.type = line.type, .zone = line.zone, .market = line.market, .price = line.rate});
  setup.inputs.forecast.time = Seconds(plan.time.middle);
  setup.inputs.forecast.cost = Usd{plan.cost.middle};
  if (setup.inputs.spec.loss && plan.speed)
    setup.inputs.forecast.samples = plan.iterations * setup.inputs.spec.train->batch;
  setup.inputs.priced = true;
  return std::nullopt;
}

/// How fast each number of machines is: from the profile where it knows the type, else as many times as there are.
void add_machine(std::vector<MachineCount>& counts, const std::string& type) {
  const auto same =
      std::find_if(counts.begin(), counts.end(), [&](const MachineCount& count) { return count.type == type; });
  if (same == counts.end()) {
    counts.push_back({type, 1});
  } else {
    ++same->count;
  }
}

Result<void> make_shapes(RunSetup& setup) {
  // Workers may join by hand, as many as the job wants.
  const int most = std::max(setup.inputs.workers, setup.inputs.spec.most_workers.value_or(0));
  if (setup.profile) {
    JobRequest request{.type = setup.inputs.roles.front().type, .most_machines = most};
    for (const MachineRole& role : setup.inputs.roles) add_machine(request.mix, role.type);
    auto job = make_job(*setup.profile, setup.catalog, request);
    if (!job) return unexpected(job.error());
    setup.job.emplace(*std::move(job));
    setup.inputs.profile = &*setup.profile;
  } else {
    setup.job.emplace(unmeasured_job(most));
  }
  setup.inputs.job = &*setup.job;
  return {};
}

/// `plan --existing --progress` of the moment.
std::vector<MachineRole> cheapest_addition(const RunSetup& setup, PlanRequest request, const Shortfall& shortfall) {
  for (const MachineRole& role : shortfall.machines) add_machine(request.existing, role.type);
  request.progress = Progress{.elapsed = shortfall.elapsed};
  if (std::holds_alternative<ToLoss>(request.target)) {
    if (!shortfall.loss) return {};
    request.progress->reached = ToLoss{*shortfall.loss};
  } else if (std::holds_alternative<ForEpochs>(request.target)) {
    request.progress->reached = ForEpochs{shortfall.epochs};
  } else {
    return {};
  }
  request.markets = {Market::on_demand};
  request.frontier = false;
  const auto answer = make_plan(*setup.profile, setup.catalog, request);
  const auto* plan = answer ? std::get_if<Plan>(&*answer) : nullptr;
  std::vector<MachineRole> roles;
  if (plan == nullptr) return roles;
  for (const MachineCount& more : plan->addition) {
    const auto type = lookup(setup.catalog, more.type);
    if (!type || !(*type)->on_demand) return {};
    roles.insert(roles.end(), static_cast<std::size_t>(more.count),
                 MachineRole{.type = more.type, .market = Market::on_demand, .price = (*type)->on_demand->rate});
  }
  for (MachineRole& role : roles) {
    set_batch(setup, role);
    if (setup.hold_back) setup.hold_back(role);
  }
  return roles;
}

Result<void> set_times(const RunFlags& flags, RunInputs& inputs) {
  for (const auto& [flag, text, time] : {std::tuple{"--orphan-after", &flags.orphan_after, &inputs.times.orphan},
                                         std::tuple{"--step-limit", &flags.step_limit, &inputs.times.step.floor}}) {
    if (text->empty()) continue;
    const auto parsed = parse_duration(*text);
    if (!parsed) return fail("{}: {}", flag, parsed.error().message);
    *time = *parsed;
  }
  inputs.times.step.first = 10 * inputs.times.step.floor;
  return {};
}

/// The Python package lies beside the program: in the source tree above build/, or in share/mayfly of an installation.
std::filesystem::path python_package(const std::filesystem::path& program) {
  std::error_code error;
  for (const char* place : {"../python", "../share/mayfly/python"}) {
    const auto folder = (program.parent_path() / place).lexically_normal();
    if (std::filesystem::exists(folder / "mayfly" / "__init__.py", error)) return folder;
  }
  return {};
}

Result<void> set_script(const std::string& file, RunSetup& setup) {
  RunInputs& inputs = setup.inputs;
  if (!inputs.spec.train->model.is_script()) return {};
  ScriptCommand script{.text = inputs.spec.run,
                       .directory = inputs.job_file.parent_path() / inputs.spec.workdir,
                       .environment = inputs.spec.envs};
  if (const auto package = python_package(setup.program); !package.empty()) {
    const char* paths = std::getenv("PYTHONPATH");
    const std::string more = paths != nullptr && *paths != '\0' ? ":" + std::string(paths) : "";
    script.environment.emplace_back("PYTHONPATH", package.string() + more);
  }
  std::error_code error;
  if (!std::filesystem::is_directory(script.directory, error))
    return fail("{}: workdir {}: no such folder", file, script.directory.string());
  inputs.script = std::move(script);
  return {};
}

Result<void> check_spec(const JobSpec& spec, const std::string& file) {
  if (!spec.train) return fail("{}: no 'train' block: what is to be trained?", file);
  if (!spec.epochs && !spec.steps && !spec.loss)
    return fail("{}: no target: want epochs, steps or loss under 'objective'", file);
  const auto folder = std::filesystem::path(file).parent_path();
  const auto missing = [&](const DataSpec& data) -> std::optional<std::string> {
    if (data.name == "dials") return std::nullopt;  // makes its file
    for (const std::string& name : data.files) {
      std::error_code error;
      if (!std::filesystem::exists(folder / name, error)) return (folder / name).string();
    }
    return std::nullopt;
  };
  if (const auto name = missing(spec.train->data)) return fail("{}: data file {}: not there", file, *name);
  if (spec.train->validation) {
    if (const auto name = missing(*spec.train->validation)) return fail("{}: data file {}: not there", file, *name);
  }
  return {};
}

/// Without a word of the user's: as many machines as there are.
int usual_most(const std::optional<Offered>& offered, int cores) {
  return offered ? std::min(offered->most().value_or(kMostMachines), kMostMachines) : cores;
}

std::filesystem::path new_directory(const std::string& name) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  std::string stamp = format_time(static_cast<double>(seconds.count()));
  std::erase_if(stamp, [](char c) { return c == ':' || c == '-' || c == 'Z'; });
  return std::filesystem::path("mayfly-runs") / fmt::format("{}-{}", name.empty() ? "job" : name, stamp);
}

}  // namespace

std::vector<std::pair<const char*, std::string*>> RunFlags::texts() {
  return {{"job", &job},
          {"plan", &plan},
          {"as", &as},
          {"trace", &trace},
          {"speed", &speed},
          {"policy", &policy},
          {"market", &market},
          {"notice", &notice},
          {"interface", &interface},
          {"advertise", &advertise},
          {"port", &port},
          {"catalog", &catalog},
          {"orphan_after", &orphan_after},
          {"step_limit", &step_limit},
          {"engine", &engine},
          {"engine_file", &engine_file},
          {"lifetime", &lifetime},
          {"checkpoints", &checkpoints},
          {"notices", &notices},
          {"format_of_trace", &trace_flags.format},
          {"polarity", &trace_flags.polarity},
          {"gap", &trace_flags.gap},
          {"type", &trace_flags.type},
          {"zone", &trace_flags.zone},
          {"observation", &trace_flags.observation}};
}

Json RunFlags::json() const {
  Json json{{"format", "mayfly-request/1"},
            {"workers", workers ? Json(*workers) : Json()},
            {"private_network", private_network},
            {"trust", trust},
            {"seed", seed}};
  RunFlags copy = *this;
  for (const auto& [key, text] : copy.texts()) json[key] = *text;
  return json;
}

Result<RunFlags> RunFlags::parse(const std::string& text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != "mayfly-request/1")
    return fail("{}: want the request of a run, format mayfly-request/1", file);
  RunFlags flags;
  for (const auto& [key, field] : flags.texts()) {
    const bool later =
        field == &flags.notices || field == &flags.market || field == &flags.engine_file || field == &flags.checkpoints;
    if (later && !json.contains(key)) continue;  // of a run from before there were any
    if (!json.contains(key) || !json[key].is_string()) return fail("{}: {}: want a text", file, key);
    *field = json[key].get<std::string>();
  }
  if (json.contains("workers") && json["workers"].is_number_integer()) flags.workers = json["workers"].get<int>();
  flags.private_network = json.value("private_network", Json()) == true;
  flags.trust = json.value("trust", Json()) == true;
  if (json.contains("seed") && json["seed"].is_number_unsigned()) flags.seed = json["seed"].get<std::uint64_t>();
  return flags;
}

Result<std::variant<std::unique_ptr<RunSetup>, NoPlan>> set_up(const RunFlags& flags,
                                                               const std::filesystem::path& directory) {
  auto setup = std::make_unique<RunSetup>();
  RunInputs& inputs = setup->inputs;
  std::error_code error;
  inputs.job_file = std::filesystem::absolute(flags.job, error);
  // A run that goes on does what it was told at first, whatever has become of the file since.
  const auto text = directory.empty() ? load_text(inputs.job_file) : load_own_text(directory / "job.yaml");
  if (!text) return unexpected(text.error());
  inputs.job_text = *text;
  auto spec = parse_job(*text, flags.job);
  if (!spec) return unexpected(spec.error());
  if (const auto checked = check_spec(*spec, flags.job); !checked) return unexpected(checked.error());
  inputs.spec = *std::move(spec);
  inputs.supervised = true;
  if (const auto chosen = choose_engine(flags, *setup); !chosen) return unexpected(chosen.error());
  const auto offered = offered_by(setup->engine);
  auto program = train_program();
  if (!program) return unexpected(program.error());
  setup->program = *program;
  if (const auto set = set_script(flags.job, *setup); !set) return unexpected(set.error());
  inputs.shelf = shelf_of(inputs, python_package(setup->program));
  if (const auto set = set_checkpoints(flags, inputs); !set) return unexpected(set.error());
  const std::string out = flags.out.empty() ? new_directory(inputs.spec.name).string() : flags.out;
  inputs.directory = std::filesystem::absolute(directory.empty() ? std::filesystem::path(out) : directory, error);
  auto catalog = read_catalogs(flags.catalog);
  if (!catalog) return unexpected(catalog.error());
  setup->catalog = *std::move(catalog);

  Question question;
  apply_job(inputs.spec, flags.job, question);
  question.request.markets.erase(Market::serverless);
  if (const auto chosen = choose_markets(flags.market, question.request); !chosen) return unexpected(chosen.error());
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int most =
      flags.workers.value_or(inputs.spec.most_workers.value_or(inputs.spec.nodes.value_or(usual_most(offered, cores))));
  question.request.most_workers = std::min(question.request.most_workers, most);
  if (!question.profile.empty()) {
    auto profile = load_profile(question.profile);
    if (!profile) return fail("{}: profile: {}", flags.job, profile.error().message);
    setup->profile = *std::move(profile);
    fit_to_job(inputs.spec, setup->catalog, *setup->profile, question.request);
    if (inputs.spec.train->servers && setup->profile->server.type.empty())
      return fail("{}: nothing is known of the servers' machines: want a 'type' in train.servers", flags.job);
  }
  if (offered) limit_to(*offered, *setup, question.request);
  if (!flags.plan.empty()) {
    if (const auto read = read_plan(flags.plan, *setup); !read) return unexpected(read.error());
  } else if (flags.as.empty() && setup->profile) {
    auto no = make_own_plan(question, *setup);
    if (!no) return unexpected(no.error());
    if (*no) return **std::move(no);
  }
  if (offered && inputs.roles.empty()) {
    auto roles = offered_roles(*offered, *setup, question.request.markets, most);
    if (!roles) return unexpected(roles.error());
    inputs.roles = *std::move(roles);
  }
  inputs.rents = may_rent(question.request, inputs.roles, setup->catalog);
  if (offered && !offered->markets.contains(Market::on_demand)) inputs.rents = false;
  adopt_exchange(*setup);
  if (!flags.as.empty()) {
    if (const auto read = read_as(flags, *setup); !read) return unexpected(read.error());
  }
  inputs.workers = flags.workers.value_or(inputs.roles.empty() ? most : static_cast<int>(inputs.roles.size()));
  if (inputs.roles.empty()) inputs.roles.push_back({});
  inputs.roles.resize(static_cast<std::size_t>(inputs.workers), inputs.roles.back());
  if (const auto played = emulate(flags, cores, question.request, *setup); !played) return unexpected(played.error());
  if (const auto shaped = make_shapes(*setup); !shaped) return unexpected(shaped.error());
  if (setup->profile && inputs.priced)
    inputs.addition = [owner = setup.get(), request = question.request](const Shortfall& shortfall) {
      return cheapest_addition(*owner, request, shortfall);
    };
  if (const auto set = set_weather(flags, *setup); !set) return unexpected(set.error());
  if (const auto set = set_times(flags, inputs); !set) return unexpected(set.error());
  const auto metadata = metadata_service(flags.notices, endpoints_of_environment(), firmware_words());
  if (!metadata) return fail("--{}", metadata.error().message);
  setup->notices = name(metadata->cloud);
  if (inputs.script && metadata->cloud != Cloud::none)
    inputs.script->environment.emplace_back("MAYFLY_NOTICES", setup->notices);
  if (const auto set = set_servers(*setup); !set) return unexpected(set.error());
  for (MachineRole& role : inputs.roles) set_batch(*setup, role);
  if (offered) set_prices(*offered, *setup);
  inputs.policy = setup->profile ? PolicyName::liveput : PolicyName::ideal;
  if (!flags.policy.empty()) {
    const auto policy = policy_named(flags.policy);
    if (!policy)
      return fail("--policy '{}': no such policy{}; want one of {}", flags.policy,
                  did_you_mean(flags.policy, policy_names()), fmt::join(policy_names(), ", "));
    if (const auto fine = check_policy(*policy); !fine) return fail("--policy {}", fine.error().message);
    inputs.policy = *policy;
  }
  inputs.interface = flags.interface;
  const auto address = address_of(flags.interface);
  if (!address) return unexpected(address.error());
  inputs.private_network = flags.private_network;
  inputs.address = *address;
  if (const auto listens = listen_as(flags, inputs); !listens) return unexpected(listens.error());
  if (const auto set = set_engine(flags, *setup); !set) return unexpected(set.error());
  if (inputs.spec.budget && !inputs.priced)
    setup->notes.push_back("nobody watches the budget: without a profile, --plan or --as nothing is known of prices");
  if (inputs.spec.deadline && !setup->profile)
    setup->notes.push_back("nobody watches the deadline: without a profile nothing is known of speeds");
  if (inputs.script && inputs.emulation)
    setup->notes.push_back("a script is not held back to the speed of what it plays: only prices are those of --as");
  if (!inputs.spec.unused.empty())
    setup->notes.push_back(
        fmt::format("understood but without effect on the run: {}", fmt::join(inputs.spec.unused, ", ")));
  return setup;
}

}  // namespace mayfly::cli
