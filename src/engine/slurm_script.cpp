#include "engine/slurm_script.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "engine/slurm_text.h"

namespace mayfly {
namespace {

/// Slurm replaces %j and its like in names of files.
std::string file_pattern(const std::filesystem::path& path) {
  std::string pattern;
  for (const char c : path.string()) pattern += c == '%' ? "%%" : std::string(1, c);
  return pattern;
}

int first_launch(const SlurmArray& array) { return array.launches.front(); }

/// What runs under srun: the worker or server, or a script in its folder.
std::string program_words(const MachineProgram& machine, const MachineRole& role) {
  if (!machine.runs_script(role)) return train_words(machine, role);
  return fmt::format("--chdir={} /bin/sh -c {}", shell_word(machine.script->directory.string()),
                     shell_word(script_text(*machine.script)));
}

}  // namespace

const SlurmQueue* queue_of(const SlurmSpec& spec, Market market) {
  const auto& queue = market == Market::on_demand ? spec.on_demand : spec.spot;
  return market == Market::serverless || !queue ? nullptr : &*queue;
}

Result<std::vector<std::string>> slurm_options(const SlurmRun& run, const MachineRole& role) {
  const SlurmSpec& spec = run.spec;
  const SlurmQueue* queue = queue_of(spec, role.market);
  if (queue == nullptr) return fail("engine.slurm has no partition for the {} market", name(role.market));
  SlurmType type;
  if (const auto found = spec.types.find(role.type); found != spec.types.end()) {
    type = found->second;
  } else if (!spec.types.empty() && !role.server) {
    return fail("engine.slurm.types has no '{}'", role.type);
  }
  std::vector<std::string> words{"--nodes=1", "--ntasks=1", "--no-requeue",
                                 fmt::format("--time={:.0f}", std::ceil(run.time.count() / 60)),
                                 fmt::format("--signal=TERM@{:.0f}", run.hand_over.count())};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--{}={}", option, value));
  };
  add("partition", queue->partition);
  add("qos", queue->qos);
  add("account", queue->account.empty() ? spec.account : queue->account);
  add("reservation", spec.reservation);
  add("gres", type.gres);
  add("constraint", type.constraint);
  if (type.cores) add("cpus-per-task", std::to_string(*type.cores));
  // Slurm's M is 2^20 bytes.
  if (type.memory) add("mem", fmt::format("{:.0f}M", std::ceil(type.memory->value / (1 << 20))));
  return words;
}

Result<std::vector<std::string>> sbatch_words(const SlurmRun& run, const SlurmArray& array) {
  const auto options = slurm_options(run, array.role);
  if (!options) return unexpected(options.error());
  std::vector<std::string> words{"sbatch", "--parsable"};
  words.insert(words.end(), options->begin(), options->end());
  std::vector<int> indices;
  for (const int launch : array.launches) indices.push_back(launch - first_launch(array));
  const auto logs = run.machine.terms.directory / "logs" / fmt::format("slurm-{}.log", first_launch(array));
  words.push_back("--job-name=" + slurm_name(run.machine.terms.run, first_launch(array)));
  words.push_back(fmt::format("--array={}", fmt::join(indices, ",")));
  words.push_back("--chdir=" + run.machine.terms.directory.string());
  words.emplace_back("--open-mode=append");
  words.push_back("--output=" + file_pattern(logs));
  return words;
}

std::string batch_script(const SlurmRun& run, const SlurmArray& array) {
  const MachineProgram& machine = run.machine;
  const auto type = run.spec.types.find(array.role.type);
  // As many threads as it has cores, where Slurm does not bind it to them.
  const int cores = type != run.spec.types.end() ? type->second.cores.value_or(1) : 1;
  std::string text = "#!/bin/sh\n";
  // The end of its time is told to the shell, too, which must wait for the program.
  text += "trap : TERM\n";
  text += fmt::format("launch=$(({} + SLURM_ARRAY_TASK_ID))\n", first_launch(array));
  text += machine_exports(machine, array.role, cores);
  text += fmt::format(
      "srun --ntasks=1 --cpus-per-task={} --kill-on-bad-exit=0 --open-mode=append --output={}\"$launch\".log {}\n",
      cores, shell_word(file_pattern(machine.terms.directory / "logs" / "worker-")),
      program_words(machine, array.role));
  return text;
}

}  // namespace mayfly
