#include "cli/findings.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "cli/captured.h"
#include "cli/command.h"
#include "cli/run_engine.h"
#include "cli/slurm_setup.h"
#include "job/job_spec.h"
#include "notice/client.h"

namespace mayfly::cli {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

constexpr Seconds kPatience{30};
/// A run with less room may fail at its first checkpoint.
constexpr double kLeastRoom = 1e8;

Finding scheduler(const std::string& name, const std::string& program) {
  const std::string file = found_in_path(program);
  if (file.empty()) return {"engines", name, State::unused, false, program + " is not there; not used by mayfly yet"};
  return {"engines", name, State::unused, false, file + " is there, but not used by mayfly yet"};
}

/// Whether its programs are here and their controller answers, and where machines are to be had.
Finding slurm_finding() {
  Finding finding{.group = "engines", .name = "slurm"};
  const auto cluster = slurm_cluster();
  if (!cluster) {
    finding.state = found_in_path("sbatch").empty() ? State::unused : State::no;
    finding.detail = cluster.error().message;
    return finding;
  }
  std::vector<std::string> partitions;
  for (const SlurmPartition& partition : cluster->partitions) {
    std::string words = partition.name;
    if (!partition.state.starts_with("UP")) words += " (" + partition.state + ")";
    if (partition.preempted) words += fmt::format(" (preempted, {} of grace)", format_duration(partition.grace));
    partitions.push_back(printable(words));
  }
  finding.detail = fmt::format("answers; partitions: {}", fmt::join(partitions, ", "));
  return finding;
}

/// Hosts and programs are named by a job or by a file of its own.
std::optional<Finding> provider_finding(const std::string& job, const std::string& engine_file) {
  if (job.empty() && engine_file.empty()) return std::nullopt;
  RunSetup setup;
  setup.inputs.job_file = fs::absolute(job.empty() ? engine_file : job);
  if (!job.empty()) {
    auto spec = load_job(job);
    if (!spec) return std::nullopt;  // that is said of the job
    setup.inputs.spec = *std::move(spec);
  }
  const auto chosen = choose_engine({.job = job, .engine_file = engine_file, .workers = 1}, setup);
  Finding finding{.group = "engines", .name = setup.engine.kind, .state = State::no};
  if (!chosen) return finding.detail = chosen.error().message, finding;
  if (setup.engine.kind != "ssh" && setup.engine.kind != "exec") return std::nullopt;
  auto provider = provider_of(setup, "check");
  if (!provider) return finding.detail = provider.error().message, finding;
  const auto listed = (*provider)->listed(answer_to((*provider)->list(), (*provider)->patience()));
  const std::string unheard = (*provider)->unheard();
  if (listed && unheard.empty()) finding.state = State::ok;
  finding.detail = !listed ? listed.error().message : unheard.empty() ? "answers" : "do not answer: " + unheard;
  return finding;
}

/// The nearest folder that exists already, in which the run's would be made.
fs::path existing(fs::path folder) {
  std::error_code error;
  folder = fs::absolute(folder, error);
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

Finding folder_finding(const std::string& out) {
  const fs::path folder = existing(out);
  std::error_code error;
  const auto room = fs::space(folder, error);
  Finding finding{.group = "data", .name = "run folder", .needed = true};
  const double free = error ? 0 : static_cast<double>(room.available);
  finding.detail = fmt::format("{}: {:.1f} GB free", folder.string(), free / 1e9);
  if (!fs::is_directory(folder, error)) {
    finding.state = State::no;
    finding.detail = folder.string() + ": is no folder";
  } else if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    finding.state = State::no;
    finding.detail = folder.string() + ": not writable";
  } else if (free < kLeastRoom) {
    finding.state = State::no;
  }
  return finding;
}

void add_files(const DataSpec& data, const fs::path& folder, std::vector<Finding>& findings) {
  for (const std::string& name : data.files) {
    const fs::path file = folder / name;
    std::error_code error;
    const auto size = fs::file_size(file, error);
    const bool readable = !error && ::access(file.c_str(), R_OK) == 0;
    findings.push_back({"data", name, readable ? State::ok : State::no, true,
                        readable ? fmt::format("{:.1f} MB", static_cast<double>(size) / 1e6)
                                 : fmt::format("{}: cannot be read", file.string())});
  }
}

Finding python_package(const std::string& package, const std::string& none) {
  const auto version = captured(
      {"python3", "-c", fmt::format("import {0}; print(getattr({0}, '__version__', ''))", package)}, kPatience);
  if (version) return {"python", package, State::ok, false, *version};
  return {"python", package, State::no, false, fmt::format("{} ({})", none, version.error().message)};
}

}  // namespace

std::vector<Finding> engine_findings(const std::string& job, const std::string& engine_file) {
  Finding local{.group = "engines", .name = "local", .needed = true};
  const auto program = train_program();
  const auto version = program ? captured({program->string(), "--version"}, kPatience)
                               : Result<std::string>(unexpected(program.error()));
  if (!version) local.state = State::no;
  local.detail = version ? fmt::format("{} starts, LibTorch loads", *version) : version.error().message;
  std::vector<Finding> findings{local, slurm_finding()};
  if (auto named = provider_finding(job, engine_file)) findings.push_back(*std::move(named));
  findings.push_back(scheduler("kubernetes", "kubectl"));
  return findings;
}

std::vector<Finding> device_findings() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  std::vector<Finding> findings{
      {"devices", "cores", State::ok, false, fmt::format("{} for this process", cores)},
      {"devices", "memory", State::ok, false, fmt::format("{:.1f} GB of the machine", memory / 1e9)}};
  if (found_in_path("nvidia-smi").empty()) {
    findings.push_back({"devices", "gpus", State::unused, false, "nvidia-smi is not there"});
    return findings;
  }
  const auto list = captured({"nvidia-smi", "-L"}, kPatience);
  const auto count = list ? std::count(list->begin(), list->end(), '\n') + (list->empty() ? 0 : 1) : 0;
  findings.push_back(
      {"devices", "gpus", State::unused, false,
       list ? fmt::format("{} there; mayfly-train computes on cores only", count) : list.error().message});
  return findings;
}

std::vector<Finding> notice_findings(const std::string& notices) {
  const auto service = metadata_service(notices, endpoints_of_environment(), firmware_words());
  if (!service) return {{"notices", "metadata", State::no, false, service.error().message}};
  if (service->cloud == Cloud::none)
    return {{"notices", "metadata", State::unused, false,
             "no cloud by firmware or environment: nobody is asked, SIGTERM is a notice all the same"}};
  MetadataClient client(*service);
  const auto answer = client.ask();
  const std::string where = fmt::format("{} at {}", name(service->cloud), service->endpoint);
  if (!answer) return {{"notices", "metadata", State::no, false, fmt::format("{}: {}", where, answer.error().message)}};
  return {{"notices", "metadata", State::ok, false,
           fmt::format("{}: answers, {}", where, *answer ? "and has a notice: " + (*answer)->reason : "no notice")}};
}

std::vector<Finding> data_findings(const std::string& job, const std::string& out) {
  std::vector<Finding> findings;
  if (!job.empty()) {
    const auto text = load_text(job);
    const auto spec = text ? parse_job(*text, job) : Result<JobSpec>(unexpected(text.error()));
    Finding finding{.group = "data", .name = "job", .needed = true};
    finding.state = spec && spec->train ? State::ok : State::no;
    finding.detail = !spec ? spec.error().message : !spec->train ? job + ": no 'train' block" : "is understood";
    findings.push_back(finding);
    if (spec && spec->train) {
      add_files(spec->train->data, fs::path(job).parent_path(), findings);
      if (spec->train->validation) add_files(*spec->train->validation, fs::path(job).parent_path(), findings);
    }
  }
  findings.push_back(folder_finding(out));
  return findings;
}

std::vector<Finding> python_findings() {
  const std::string file = found_in_path("python3");
  if (file.empty()) return {{"python", "python3", State::no, false, "not there: scripts of your own cannot be run"}};
  std::vector<Finding> findings{{"python", "python3", State::ok, false, file}};
  findings.push_back(python_package("torch", "scripts that use it cannot be run"));
  findings.push_back(python_package("mayfly", "scripts of your own cannot join"));
  return findings;
}

}  // namespace mayfly::cli
