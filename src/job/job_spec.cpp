#include "job/job_spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 14> kSkyPilotKeys{
    "workdir", "envs",    "secrets", "file_mounts", "volumes",        "setup",        "run",
    "config",  "service", "inputs",  "outputs",     "event_callback", "experimental", "pool"};
/// Nothing of them limits the choice or the spending.
constexpr std::array<std::string_view, 9> kSkyPilotResources{
    "job_recovery", "disk_size", "disk_tier", "network_tier", "ports", "labels", "autostop", "priority", "local_disk"};

std::optional<Seconds> read_duration(Section& section, std::string_view key) {
  const auto text = section.maybe_text(key);
  if (!text) return {};
  const auto duration = parse_duration(*text);
  if (!duration) {
    section.reject(key, duration.error().message);
    return {};
  }
  return *duration;
}

/// More than any training takes, and few enough for a run to count the samples of them exactly.
constexpr double kMostSteps = 1e12;
constexpr double kMostEpochs = 1e9;

void read_objective(Section section, JobSpec& job) {
  job.deadline = read_duration(section, "deadline");
  job.loss = section.maybe_number("loss");
  job.epochs = section.maybe_number("epochs", Range::positive);
  job.steps = section.maybe_number("steps", Range::positive);
  if (job.steps && (*job.steps != std::floor(*job.steps) || *job.steps > kMostSteps))
    section.reject("steps", fmt::format("{}, want a whole number from 1 to 10^12", *job.steps));
  if (job.epochs && *job.epochs > kMostEpochs)
    section.reject("epochs", fmt::format("{}, want at most 10^9", *job.epochs));
  if (const auto usd = section.maybe_number("budget", Range::positive)) job.budget = Usd{*usd};
  job.quota = section.maybe_text("quota").value_or("");
  if (int(job.loss.has_value()) + int(job.epochs.has_value()) + int(job.steps.has_value()) > 1) {
    section.reject("", "want one of loss, epochs and steps");
  }
  section.finish();
}

void read_elastic(Section section, JobSpec& job) {
  job.least_workers = section.maybe_integer("min");
  job.most_workers = section.maybe_integer("max");
  if (job.least_workers && job.most_workers && *job.least_workers > *job.most_workers)
    section.reject("min", "is above max");
  section.finish();
}

/// `V100` or `V100:8`, its parts.
void add_accelerator(Section& section, std::string_view name, std::string_view count, Resources& resources) {
  if (name.empty()) return section.reject("accelerators", "no name; want NAME or NAME:COUNT");
  Accelerator accelerator{.name = std::string(name)};
  if (!count.empty()) {
    accelerator.count = parse_integer(count);
    if (!accelerator.count || *accelerator.count <= 0)
      return section.reject("accelerators", fmt::format("count '{}', want a whole number above 0", count));
  }
  resources.accelerators.push_back(std::move(accelerator));
}

/// `V100`, `V100:8`, `{V100: 8}`, or a choice of several: `[A100:8, H100:8]`, `{A100: 8, H100: 8}`.
void read_accelerators(Section& section, Resources& resources) {
  const Value* value = section.raw("accelerators");
  if (value == nullptr) return;
  resources.accelerators.clear();
  const auto add = [&](const Value& one) {
    const auto parts = split(one.scalar, ':');
    if (parts.size() > 2)
      return section.reject("accelerators", fmt::format("'{}', want NAME or NAME:COUNT", one.scalar));
    add_accelerator(section, parts[0], parts.size() > 1 ? parts[1] : "", resources);
  };
  if (value->kind == Value::Kind::scalar) add(*value);
  for (const Value& one : value->items) add(one);
  for (const auto& [name, count] : value->entries) {
    if (count.kind == Value::Kind::list || count.kind == Value::Kind::map)
      return section.reject("accelerators", fmt::format("of {}, want a whole number above 0", name));
    add_accelerator(section, name, count.scalar, resources);
  }
  if (resources.accelerators.empty()) section.reject("accelerators", "no name; want NAME or NAME:COUNT");
}

/// `8` or `8+`.
void read_amount(Section& section, std::string_view key, std::optional<Amount>& amount) {
  auto text = section.maybe_text(key);
  if (!text) return;
  amount = Amount{.at_least = text->ends_with('+')};
  if (amount->at_least) text->pop_back();
  const auto value = parse_number(*text);
  if (!value || *value <= 0 || !std::isfinite(*value))
    return section.reject(key, fmt::format("'{}', want a number above 0, or one and a plus sign", *text));
  amount->value = *value;
}

/// `slurm[/PARTITION]` or `CLOUD[/REGION[/ZONE]]`; a star stands for any.
void read_infra(Section& section, Resources& resources) {
  const auto infra = section.maybe_text("infra");
  if (!infra) return;
  const auto parts = split(*infra, '/');
  const auto word = [&](std::size_t i) {
    return parts.size() > i && parts[i] != "*" ? std::string(parts[i]) : std::string();
  };
  resources.scheduler = word(0) == "slurm" ? "slurm" : "";
  resources.partition.clear();
  if (!resources.scheduler.empty()) {
    if (parts.size() > 2) section.reject("infra", fmt::format("'{}', want slurm or slurm/PARTITION", *infra));
    resources.partition = word(1);
    return;
  }
  resources.cloud = word(0);
  resources.region = word(1);
  resources.zone = word(2);
}

/// What stands here wins over what `resources` has already.
void read_limits(Section& section, Resources& resources) {
  const auto take = [&](std::string_view key, std::string& text) {
    if (auto found = section.maybe_text(key)) text = *std::move(found);
  };
  read_infra(section, resources);
  take("cloud", resources.cloud);
  take("region", resources.region);
  take("zone", resources.zone);
  take("instance_type", resources.instance_type);
  std::transform(resources.cloud.begin(), resources.cloud.end(), resources.cloud.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  read_accelerators(section, resources);
  read_amount(section, "cpus", resources.cpus);
  read_amount(section, "memory", resources.memory_gib);
  if (const auto spot = section.maybe_flag("use_spot")) resources.use_spot = spot;
  if (const auto usd = section.maybe_number("max_hourly_cost", Range::positive))
    resources.most_hourly = UsdPerHour{*usd};
}

void read_resources(Section section, JobSpec& job) {
  Resources all;
  read_limits(section, all);
  if (section.raw("ordered") != nullptr)
    section.reject("ordered", "mayfly takes what is cheapest, in no order of preference: want any_of");
  if (section.raw("image_id") != nullptr)
    section.reject("image_id", "mayfly starts no images; what machines run is set up before");
  for (const auto key : kSkyPilotResources) {
    if (section.raw(key) != nullptr) job.unused.push_back(fmt::format("resources.{}", key));
  }
  job.resources = {all};
  if (section.has("any_of")) {
    job.resources.clear();
    for (auto& one : section.list("any_of")) {
      job.resources.push_back(all);
      read_limits(one, job.resources.back());
      one.finish();
    }
    if (job.resources.empty()) section.reject("any_of", "is empty");
  }
  section.finish();
}

/// `infra: slurm/PARTITION` is short for an engine block; what that says itself stays.
void adopt_infra(Section& root, JobSpec& job) {
  const Resources& first = job.resources.front();
  const bool same = std::all_of(job.resources.begin(), job.resources.end(), [&](const Resources& one) {
    return one.scheduler == first.scheduler && one.partition == first.partition;
  });
  if (!same) return root.reject("resources", "any_of names several infra: a run has machines of one scheduler");
  if (first.scheduler.empty()) return;
  if (!job.engine) job.engine.emplace();
  std::string& kind = job.engine->kind;
  if (kind.empty()) kind = first.scheduler;
  if (kind != first.scheduler)
    return root.reject("engine", fmt::format("kind is {}, and resources.infra says {}", kind, first.scheduler));
  if (first.partition.empty()) return;
  for (auto* queue : {&job.engine->slurm.spot, &job.engine->slurm.on_demand}) {
    if (!*queue) *queue = SlurmQueue{.partition = first.partition};
  }
}

/// `{NAME: value}`.
void read_envs(Section& root, JobSpec& job) {
  const Value* value = root.raw("envs");
  if (value == nullptr) return;
  if (value->kind != Value::Kind::map) return root.reject("envs", "want NAME: value");
  for (const auto& [name, text] : value->entries) {
    const bool good =
        !name.empty() && name.find('=') == name.npos && text.kind != Value::Kind::list && text.kind != Value::Kind::map;
    if (!good) return root.reject("envs", fmt::format("'{}': want NAME: value", name));
    if (name.starts_with("MAYFLY_"))
      return root.reject("envs", fmt::format("'{}': names in MAYFLY_ are mayfly's", name));
    job.envs.emplace_back(name, text.scalar);
  }
}

/// What a script is started with.
void read_command(Section& root, JobSpec& job) {
  job.run = root.maybe_text("run").value_or("");
  if (job.run.empty()) root.reject("run", "nothing to run: want the command of the script, such as python3 train.py");
  job.workdir = root.maybe_text("workdir").value_or("");
  read_envs(root, job);
}

/// It becomes part of the name of the run's folder.
std::string read_name(Section& root) {
  constexpr std::size_t kLongestName = 200;
  const auto name = root.maybe_text("name").value_or("");
  const bool plain = std::ranges::none_of(
      name, [](char c) { return c == '/' || c == '\x7f' || (static_cast<unsigned char>(c) < 0x20); });
  if (!plain || name.starts_with('.') || name.size() > kLongestName)
    root.reject("name",
                fmt::format("'{}', want at most {} bytes without '/' or control characters, and no '.' in front",
                            printable(name.substr(0, 60)), kLongestName));
  return name;
}

JobSpec read_job(Section& root) {
  JobSpec job{.name = read_name(root), .profile = root.maybe_text("profile").value_or("")};
  if (auto objective = root.maybe_section("objective")) read_objective(*objective, job);
  if (auto elastic = root.maybe_section("elastic")) read_elastic(*elastic, job);
  if (auto resources = root.maybe_section("resources")) read_resources(*resources, job);
  job.nodes = root.maybe_integer("num_nodes");
  if (auto train = root.maybe_section("train")) job.train = read_train(*train);
  if (auto costs = root.maybe_section("costs")) job.costs = read_costs(*costs);
  if (auto engine = root.maybe_section("engine")) {
    job.engine = read_engine(*engine);
    engine->finish();
  }
  adopt_infra(root, job);
  const bool script = job.train && job.train->model.is_script();
  if (script) read_command(root, job);
  for (const auto key : kSkyPilotKeys) {
    const bool used = script && (key == "run" || key == "workdir" || key == "envs");
    if (root.raw(key) != nullptr && !used) job.unused.emplace_back(key);
  }
  return job;
}

}  // namespace

Result<JobSpec> parse_job(std::string_view text, const std::string& file) {
  return read_document(text, file, "", read_job);
}

Result<JobSpec> load_job(const std::filesystem::path& path) {
  const auto text = load_own_text(path);
  if (!text) return unexpected(text.error());
  return parse_job(*text, path.string());
}

}  // namespace mayfly
