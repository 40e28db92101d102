#include "job/job_spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 15> kSkyPilotKeys{
    "workdir", "num_nodes", "envs",   "secrets", "file_mounts",    "volumes",      "setup", "run",
    "config",  "service",   "inputs", "outputs", "event_callback", "experimental", "pool"};
constexpr std::array<std::string_view, 15> kSkyPilotResources{
    "cpus",         "memory", "max_hourly_cost", "any_of", "ordered",  "job_recovery", "disk_size", "disk_tier",
    "network_tier", "ports",  "image_id",        "labels", "autostop", "priority",     "local_disk"};

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

/// `V100`, `V100:8` or `{V100: 8}`.
void read_accelerators(Section& section, JobSpec& job) {
  const Value* value = section.raw("accelerators");
  if (value == nullptr) return;
  std::string count;
  if (value->kind == Value::Kind::scalar) {
    const auto parts = split(value->scalar, ':');
    job.accelerator = parts[0];
    if (parts.size() > 1) count = parts[1];
  } else if (value->kind == Value::Kind::map && value->entries.size() == 1) {
    job.accelerator = value->entries[0].first;
    count = value->entries[0].second.scalar;
  } else {
    job.unused.push_back("resources.accelerators (a choice of several)");
    return;
  }
  if (job.accelerator.empty()) return section.reject("accelerators", "no name; want NAME or NAME:COUNT");
  if (count.empty()) return;
  const auto number = parse_integer(count);
  if (!number || *number <= 0)
    return section.reject("accelerators", fmt::format("count '{}', want a whole number above 0", count));
  job.accelerator_count = number;
}

void read_resources(Section section, JobSpec& job) {
  if (const auto infra = section.maybe_text("infra")) {
    const auto parts = split(*infra, '/');
    const auto word = [&](std::size_t i) {
      return parts.size() > i && parts[i] != "*" ? std::string(parts[i]) : std::string();
    };
    job.cloud = word(0);
    job.region = word(1);
    if (!word(2).empty()) job.unused.push_back("resources.infra (the zone)");
  }
  if (const auto cloud = section.maybe_text("cloud")) job.cloud = *cloud;
  if (const auto region = section.maybe_text("region")) job.region = *region;
  std::transform(job.cloud.begin(), job.cloud.end(), job.cloud.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (section.raw("zone") != nullptr) job.unused.push_back("resources.zone");
  job.instance_type = section.maybe_text("instance_type").value_or("");
  read_accelerators(section, job);
  job.use_spot = section.maybe_flag("use_spot");
  for (const auto key : kSkyPilotResources) {
    if (section.raw(key) != nullptr) job.unused.push_back(fmt::format("resources.{}", key));
  }
  section.finish();
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
  if (auto train = root.maybe_section("train")) job.train = read_train(*train);
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
