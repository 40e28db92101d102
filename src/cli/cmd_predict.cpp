#include <fmt/core.h>

#include <memory>

#include "base/how_many.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/expected_stalls.h"
#include "cli/plan_text.h"
#include "cli/step_flags.h"
#include "predict/loss_fit.h"
#include "predict/regression.h"
#include "predict/serverless.h"
#include "predict/worker.h"
#include "report/plan_json.h"

namespace mayfly::cli {
namespace {

/// --server: workers add up their gradients among themselves.
constexpr const char* kNoServer = "none";

struct PredictFlags {
  std::string profile{};
  std::string cluster{};
  std::string server{};
  std::string predictor = "queue";
  std::string catalog{};
  std::string market = "spot";
  StepFlags step{};
  std::string loss_log{};
  int functions = 0;
  int memory_mib = 0;
  TargetOptions target{};
  bool stalls = false;
  bool json = false;
};

/// Everything the answer is made of.
struct PredictInputs {
  Catalog catalog{};
  Profile profile{};
  Predictor predictor = Predictor::queue;
  Market market = Market::spot;
  std::optional<Target> target{};
};

Result<PredictInputs> load_inputs(const PredictFlags& options) {
  PredictInputs inputs;
  const auto predictor = parse_predictor(options.predictor);
  if (!predictor) return unexpected(predictor.error());
  const auto market = parse_market(options.market);
  if (!market) return unexpected(market.error());
  if (*market == Market::serverless)
    return fail("--market serverless: want spot or on-demand; functions are predicted with --predictor lambda");
  const auto target = options.target.target();
  if (!target) return unexpected(target.error());
  auto catalog = read_catalogs(options.catalog);
  if (!catalog) return unexpected(catalog.error());
  auto profile = load_profile(find_profile(options.profile));
  if (!profile) return unexpected(profile.error());
  const bool served = profile->exchange == Exchange::server;
  if (options.server == kNoServer && served) {
    *profile = exchanging(*profile, Exchange::all_reduce, *catalog);
  } else if (!options.server.empty() && options.server != kNoServer && profile->exchange == Exchange::all_reduce) {
    *profile = exchanging(*profile, Exchange::server, *catalog);
  }
  if (const auto applied = options.step.apply(*profile); !applied) return unexpected(applied.error());
  if (!options.loss_log.empty()) {
    auto fitted = fit_loss_log(options.loss_log, profile->sync);
    if (!fitted) return unexpected(fitted.error());
    profile->loss = fitted->curve;
  }
  inputs = {.catalog = std::move(*catalog),
            .profile = std::move(*profile),
            .predictor = *predictor,
            .market = *market,
            .target = *target};
  if (inputs.target) {
    if (const auto missing = missing_for(*inputs.target, inputs.profile)) {
      return fail("profile '{}' needs {} for {}", inputs.profile.name, *missing, words(*inputs.target));
    }
  }
  return inputs;
}

struct Machines {
  std::vector<MachineCount> counts{};
  std::vector<const InstanceType*> types{};
  std::vector<Worker> workers{};  ///< of each type
  std::vector<Group> groups{};    ///< likewise
  int total = 0;
  double hourly = 0;
  bool on_demand_instead = false;
  std::optional<MemoryFit> memory{};  ///< where it is tightest
  double peak_tflops = 0;             ///< of all GPUs
};

/// Where it is tightest, with the samples that each machine gets of a step. Published models share none.
std::optional<MemoryFit> tightest(const PredictInputs& inputs, const Machines& machines) {
  const Workload job = make_workload(inputs.profile);
  std::optional<MemoryFit> memory;
  for (std::size_t i = 0; i < machines.types.size(); ++i) {
    const Worker& worker = machines.workers[i];
    const auto share =
        inputs.predictor == Predictor::queue ? share_of_step(job, machines.groups, worker) : std::nullopt;
    const double batch = share.value_or(worker.batch);
    const auto fit = memory_fit(inputs.profile, inputs.catalog, *machines.types[i], batch);
    if (fit && (!memory || fit->chance < memory->chance)) memory = fit;
  }
  return memory;
}

/// A GPU without a sample of the step has nothing to do, and no model says how long it waits.
Result<void> enough_for_all(const PredictInputs& inputs, const Machines& machines) {
  if (inputs.predictor != Predictor::queue) return {};
  const Workload job = make_workload(inputs.profile);
  for (std::size_t i = 0; i < machines.types.size(); ++i) {
    const int gpus = std::max(1, machines.types[i]->gpu_count);
    const auto share = share_of_step(job, machines.groups, machines.workers[i]);
    if (share && *share < gpus)
      return fail(
          "--cluster: a step of {:g} samples leaves {:.3g} for the {} of a {}, want a larger batch or fewer machines",
          job.global_batch, *share, how_many(gpus, machines.types[i]->gpu ? "GPU" : "worker"), machines.types[i]->name);
  }
  return {};
}

Result<Machines> cluster_of(const PredictInputs& inputs, const std::string& text) {
  Machines machines;
  const auto counts = parse_machines(text);
  if (!counts) return unexpected(counts.error());
  machines.counts = *counts;
  machines.workers.reserve(counts->size());
  std::erase_if(machines.counts, [](const MachineCount& machine) { return machine.count == 0; });
  constexpr std::size_t kMostTypes = 64;
  if (machines.counts.size() > kMostTypes) {
    return fail("--cluster: {} types, want at most {}", machines.counts.size(), kMostTypes);
  }
  for (const auto& [type_name, count] : machines.counts) {
    const auto type = find_type(inputs.catalog, type_name);
    if (!type) return unexpected(type.error());
    const auto worker = make_worker(inputs.profile, **type, inputs.catalog);
    if (!worker) return unexpected(worker.error());
    if (inputs.predictor == Predictor::cynthia && worker->gflops <= 0) {
      return fail("profile '{}' has no gflops for {}; the cynthia predictor needs them", inputs.profile.name,
                  type_name);
    }
    machines.types.push_back(*type);
    machines.peak_tflops += count * machine_peak(inputs.profile, **type).value_or(0);
    machines.workers.push_back(*worker);
    machines.groups.push_back({.worker = &machines.workers.back(), .count = count});
    machines.total += count;
    auto price = (*type)->price(inputs.market);
    if (!price && (*type)->on_demand) {
      price = (*type)->on_demand;
      machines.on_demand_instead = true;
    }
    if (!price) return fail("{} has no price in catalogue '{}'", type_name, inputs.catalog.name);
    machines.hourly += price->rate.value * count;
  }
  if (machines.total == 0) return fail("--cluster '{}': want at least one machine", text);
  if (machines.total > 1 && inputs.profile.exchange == Exchange::all_reduce && inputs.profile.sync == Sync::asp)
    return fail("without servers {} machines wait for each other at every step: want --sync bsp", machines.total);
  if (const auto shared = enough_for_all(inputs, machines); !shared) return unexpected(shared.error());
  machines.memory = tightest(inputs, machines);
  return machines;
}

struct Servers {
  std::string type{};
  ServerPool pool{};
  double hourly = 0;
};

Result<Servers> servers_of(const PredictInputs& inputs, const std::string& text) {
  Servers servers;
  if (inputs.profile.exchange != Exchange::server) {
    if (!text.empty() && text != kNoServer)
      return fail("--server: profile '{}' exchanges by {}, without servers", inputs.profile.name,
                  name(inputs.profile.exchange));
    return servers;
  }
  std::vector<MachineCount> asked;
  if (!text.empty()) {
    const auto parsed = parse_machines(text);
    if (!parsed) return unexpected(parsed.error());
    asked = *parsed;
  } else if (!inputs.profile.server.type.empty()) {
    asked = {{inputs.profile.server.type, 1}};
  } else if (!inputs.catalog.server_type.empty()) {
    asked = {{inputs.catalog.server_type, 1}};
  }
  if (asked.size() != 1 || asked[0].count < 1)
    return fail("--server '{}': want one type and a count, for example m5.xlarge=1", text);
  const auto type = find_type(inputs.catalog, asked[0].type);
  if (!type) return unexpected(type.error());
  servers.type = asked[0].type;
  servers.pool = make_servers(inputs.profile, **type, asked[0].count);
  if (inputs.catalog.server_charged) {
    const bool own = inputs.profile.server.price &&
                     (inputs.profile.server.type.empty() || inputs.profile.server.type == servers.type);
    if (!own && !(*type)->on_demand)
      return fail("server {} has no on-demand price in catalogue '{}'", servers.type, inputs.catalog.name);
    servers.hourly = (own ? inputs.profile.server.price->value : (*type)->on_demand->rate.value) * asked[0].count;
  }
  return servers;
}

void print_answer(const Json& answer, const Speed& speed, const std::optional<MemoryFit>& memory) {
  const auto band = [&](const char* key, const char* format) {
    std::string text = fmt::format(fmt::runtime(format), answer[key].get<double>());
    const std::string low = std::string(key) + "_p10";
    const std::string high = std::string(key) + "_p90";
    if (answer.contains(low)) {
      text += fmt::format(fmt::runtime(fmt::format("  (8 of 10 within {} .. {})", format, format)),
                          answer[low].get<double>(), answer[high].get<double>());
    }
    return text;
  };
  Table table({"", ""});
  table.add({"predictor", answer["predictor"].get<std::string>() + ", basis " + answer["basis"].get<std::string>()});
  table.add({"workers", fmt::format("{}", answer["workers"].get<int>())});
  table.add({"step", band("step_s", "{:.4g} s")});
  table.add({"speed", band("samples_per_s", "{:.5g} samples/s")});
  table.add({"average batch", fmt::format("{:.5g} samples", answer["wa_batch"].get<double>())});
  if (!answer["iterations"].is_null())
    table.add({"steps needed", fmt::format("{:.6g}", answer["iterations"].get<double>())});
  if (!answer["loss"].is_null()) table.add({"loss", fmt::format("{:.4g}", answer["loss"].get<double>())});
  if (!answer["time_s"].is_null()) {
    table.add({"time", fmt::format("{} = {}", format_duration(Seconds(answer["time_s"].get<double>())),
                                   band("time_s", "{:.1f} s"))});
    table.add({"cost", band("cost_usd", "{:.4f} USD")});
  }
  table.add({"price", fmt::format("{:.4f} USD/h", answer["usd_per_hour"].get<double>())});
  if (answer.contains("peak_share"))
    table.add({"hardware", fmt::format("{:.1f} % of the GPUs' peak (MFU)", 100 * answer["peak_share"].get<double>())});
  if (memory) table.add({"memory", memory_text(*memory)});
  table.add({"bottleneck", answer["bottleneck"].get<std::string>()});
  fmt::print("{}", table.text().substr(1));
  Table parts({"where a worker's step goes", ">s", ">share"});
  double whole = 0;
  for (const double part : speed.breakdown) whole += part;
  for (std::size_t i = 0; i < kParts; ++i) {
    if (speed.breakdown[i] <= 0) continue;
    parts.add({"  " + std::string(name(static_cast<Part>(i))), fmt::format("{:.4g}", speed.breakdown[i]),
               fmt::format("{:.1f} %", 100 * speed.breakdown[i] / whole)});
  }
  fmt::print("\n{}", parts.text());
}

Json answer_json(const PredictInputs& inputs, const Machines& machines, const Servers& servers, const Speed& speed) {
  Json answer;
  const Sync sync = inputs.profile.sync;
  const double machine_sd = relative_sd(inputs.predictor, ForSteps{1}, inputs.profile, machines.groups, speed);
  answer["predictor"] = name(inputs.predictor);
  answer["basis"] = name(weakest_basis(machines.groups));
  answer["workers"] = machines.total;
  put(answer, "step_s", with_band(1 / speed.updates_per_s, machine_sd));
  put(answer, "samples_per_s", with_band(speed.samples_per_s, machine_sd));
  answer["wa_batch"] = speed.batch;
  answer["convergence_coefficient"] = speed.cc;
  for (const char* key : {"iterations", "loss", "time_s", "cost_usd"}) answer[key] = nullptr;
  const double hourly = machines.hourly + servers.hourly;
  if (inputs.target) {
    const auto iterations = iterations_for(*inputs.target, inputs.profile, speed, machines.total, sync);
    if (iterations) {
      const double sd = relative_sd(inputs.predictor, *inputs.target, inputs.profile, machines.groups, speed);
      const double time = *iterations / speed.updates_per_s;
      answer["iterations"] = *iterations;
      if (inputs.profile.loss) {
        answer["loss"] = loss_after(*inputs.profile.loss, {speed.batch, machines.total, speed.cc, sync}, *iterations);
      }
      put(answer, "time_s", with_band(time, sd));
      put(answer, "cost_usd", with_band(time * hourly / 3600, sd));
    }
  }
  answer["usd_per_hour"] = hourly;
  const auto work = inputs.profile.recipe.work();
  if (work && machines.peak_tflops > 0) answer["peak_share"] = *work * speed.samples_per_s / machines.peak_tflops;
  answer["memory_mb"] = machines.memory ? memory_json(*machines.memory) : Json();
  answer["bottleneck"] = name(speed.bottleneck());
  answer["breakdown_s"] = breakdown_json(speed);
  if (inputs.profile.checkpoint) {
    answer["checkpoint_s"] = checkpoint_time(published_checkpoint_fit(), inputs.profile.checkpoint->data_mb,
                                             inputs.profile.checkpoint->graph_mb)
                                 .count();
  }
  answer["cluster"] = Json::array();
  for (const auto& [type, count] : machines.counts) answer["cluster"].push_back({{"type", type}, {"n", count}});
  answer["servers"] = Json::array();
  if (servers.pool.count > 0) answer["servers"].push_back({{"type", servers.type}, {"n", servers.pool.count}});
  return answer;
}

int predict_machines(const PredictFlags& options, const PredictInputs& inputs) {
  if (options.cluster.empty())
    return bad_input({"--cluster: missing; want for example --cluster g3.8xlarge=5,g3.16xlarge=3"});
  const auto machines = cluster_of(inputs, options.cluster);
  if (!machines) return bad_input(machines.error());
  const auto servers = servers_of(inputs, options.server);
  if (!servers) return bad_input(servers.error());
  const Workload job = make_workload(inputs.profile);
  if (const auto missing = missing_for(inputs.predictor, job, servers->pool)) {
    return bad_input({fmt::format("profile '{}' cannot be used with predictor {}: it needs {}", inputs.profile.name,
                                  name(inputs.predictor), *missing)});
  }
  const Speed speed = cluster_speed(inputs.predictor, job, machines->groups, servers->pool);
  if (speed.updates_per_s <= 0 && job.exchange == Exchange::all_reduce)
    return bad_input(
        {fmt::format("--cluster '{}': the network between these machines is not in catalogue '{}', and "
                     "profile '{}' has no network_mb_per_s for it; one machine can be predicted",
                     options.cluster, inputs.catalog.name, inputs.profile.name)});
  if (speed.updates_per_s <= 0)
    return bad_input({fmt::format("--cluster '{}': too small for any measured shape of profile '{}'", options.cluster,
                                  inputs.profile.name)});
  const Json answer = answer_json(inputs, *machines, *servers, speed);
  if (options.json) {
    print_json(answer);
  } else {
    print_answer(answer, speed, machines->memory);
  }
  if (machines->memory && machines->memory->fits == Fits::no)
    note("does not fit into a GPU's memory: " + memory_text(*machines->memory));
  if (machines->on_demand_instead) note("a type without a spot price is counted at its on-demand price");
  std::vector<std::string> types;
  for (const auto& machine : machines->counts) types.push_back(machine.type);
  if (const auto warning = old_prices(inputs.catalog, types, inputs.market)) note(*warning);
  if (inputs.target && answer["iterations"].is_null()) {
    const LossCurve& curve = *inputs.profile.loss;
    const bool off_batch = speed.batch < curve.batch_min || speed.batch > curve.batch_max;
    fmt::print(stderr, "mayfly: {} is out of reach: {}\n", words(*inputs.target),
               off_batch
                   ? fmt::format("the average batch of {:g} is outside the {:g} to {:g} the loss curve was fitted for",
                                 speed.batch, curve.batch_min, curve.batch_max)
                   : fmt::format("the loss curve of profile '{}' ends at {:g}", inputs.profile.name, curve.floor));
    return kNo;
  }
  return kDone;
}

int predict_functions(const PredictFlags& options, const PredictInputs& inputs) {
  const Profile& profile = inputs.profile;
  if (!profile.serverless || !profile.samples || !profile.dataset_size || !profile.parameters) {
    return bad_input(
        {fmt::format("profile '{}' cannot be used with predictor lambda: it needs serverless, job.samples, "
                     "job.dataset_mb and job.parameters_mb",
                     profile.name)});
  }
  if (options.functions < 1 || options.memory_mib < 1)
    return bad_input({"--functions and --memory-mib: want both, above 0"});
  const auto* epochs = inputs.target ? std::get_if<ForEpochs>(&*inputs.target) : nullptr;
  if (epochs == nullptr) return bad_input({"--epochs: missing; functions are predicted for epochs"});
  const auto* platform = inputs.catalog.find_function(profile.serverless->platform);
  if (platform == nullptr)
    return bad_input(
        {fmt::format("catalogue '{}' has no functions '{}'", inputs.catalog.name, profile.serverless->platform)});
  if (options.memory_mib < profile.serverless->memory_mib_min || options.memory_mib > platform->memory_mib_max) {
    return bad_input({fmt::format("--memory-mib {}: want {} to {}", options.memory_mib,
                                  profile.serverless->memory_mib_min, platform->memory_mib_max)});
  }
  const auto servers = servers_of(inputs, options.server);
  if (!servers) return bad_input(servers.error());
  const auto p = serverless_prediction(profile, *platform, {options.functions, options.memory_mib}, epochs->epochs,
                                       {servers->hourly});
  Json answer{{"predictor", "lambda"},
              {"basis", name(profile.origin.basis)},
              {"workers", options.functions},
              {"functions", options.functions},
              {"memory_mib", options.memory_mib}};
  const double step = (p.compute + p.exchange).count();
  const double batch = p.local_batch * options.functions;
  answer["step_s"] = step;
  answer["samples_per_s"] = batch / step;
  answer["wa_batch"] = batch;
  answer["convergence_coefficient"] = nullptr;
  answer["iterations"] = p.iterations;
  answer["loss"] = nullptr;
  put(answer, "time_s", with_band(p.time.count(), model_sd(Predictor::lambda)));
  put(answer, "cost_usd", with_band(p.cost.value, model_sd(Predictor::lambda)));
  answer["usd_per_hour"] = p.cost.value / p.time.count() * 3600;
  Speed speed;
  speed.breakdown[static_cast<std::size_t>(Part::compute)] = p.compute.count();
  const bool shared =
      profile.serverless->server_network.value / options.functions < profile.serverless->function_network.value;
  speed.breakdown[static_cast<std::size_t>(shared ? Part::server_network : Part::worker_network)] = p.exchange.count();
  if (p.iterations > 0) speed.breakdown[static_cast<std::size_t>(Part::fetch)] = p.load.count() / p.iterations;
  answer["bottleneck"] = name(speed.bottleneck());
  answer["breakdown_s"] = breakdown_json(speed);
  answer["restarts"] = p.restarts;
  if (options.json) {
    print_json(answer);
  } else {
    print_answer(answer, speed, {});
  }
  return kDone;
}

int predict(const PredictFlags& options) {
  const auto inputs = load_inputs(options);
  if (!inputs) return bad_input(inputs.error());
  if (options.stalls) {
    const bool other =
        inputs->predictor != Predictor::queue || (!options.server.empty() && options.server != kNoServer);
    if (other) return bad_input({"--stalls: of rings, by --predictor queue; want no --server and no other predictor"});
    return predict_stalls(inputs->profile, inputs->catalog, inputs->market, options.cluster, options.json);
  }
  return inputs->predictor == Predictor::lambda ? predict_functions(options, *inputs)
                                                : predict_machines(options, *inputs);
}

}  // namespace

void add_predict(CLI::App& program, int& code) {
  auto options = std::make_shared<PredictFlags>();
  auto* verb = program.add_subcommand("predict", "time, loss, cost and bottleneck of one cluster");
  verb->add_option("--profile", options->profile, "profile.json, or the name of a shipped profile")->required();
  verb->add_option("--cluster", options->cluster, "workers: g3.8xlarge=5,g3.16xlarge=3 or 5xg3.8xlarge,3xg3.16xlarge");
  verb->add_option("--server", options->server,
                   "parameter servers: m5.xlarge=1, or none for a ring (default: the profile's)");
  options->target.add_to(*verb);
  verb->add_option("--predictor", options->predictor, "queue, spotdnn, cynthia, lambda or additive")
      ->capture_default_str();
  verb->add_option("--catalog", options->catalog,
                   "catalogue files or names, separated by commas (default: the shipped one)");
  verb->add_option("--market", options->market, "prices of: spot or on-demand")->capture_default_str();
  options->step.add_to(*verb);
  verb->add_option("--loss-log", options->loss_log,
                   "fit the loss curve to this log: CSV with a heading step,loss[,batch,workers]");
  verb->add_option("--functions", options->functions, "number of functions (predictor lambda)");
  verb->add_option("--memory-mib", options->memory_mib, "memory of one function (predictor lambda)");
  verb->add_flag("--stalls", options->stalls,
                 "what machines wait for exchanging gradients, inside and between them: of --cluster's, or of every "
                 "type of the catalogue");
  verb->add_flag("--json", options->json, "print one JSON document");
  verb->footer("Example: mayfly predict --profile spotdnn-resnet110 --cluster g3.8xlarge=5,g3.16xlarge=3 --loss 0.8");
  verb->callback([options, &code] { code = predict(*options); });
}

}  // namespace mayfly::cli
