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

std::string exported(const std::string& name, std::string_view value) {
  return fmt::format("export {}={}\n", name, shell_word(value));
}

/// What runs under srun: the worker or server, or a script in its folder.
std::string program_words(const SlurmRun& run, const MachineRole& role) {
  if (run.script && !role.server) {
    // The notice goes to all processes: the shell must outlive it, or the program's hand-over would be cut short.
    return fmt::format("--chdir={} /bin/sh -c {}", shell_word(run.script->directory.string()),
                       shell_word("trap : TERM\n" + run.script->text));
  }
  std::string words = fmt::format("{} {} --join {} --token-file {} --slot \"$launch\"",
                                  shell_word(run.program.string()), role.server ? "server" : "worker",
                                  shell_word(run.terms.join), shell_word((run.terms.directory / "token").string()));
  for (const std::string& word : run.arguments) words += " " + shell_word(word);
  return words;
}

/// Where others of the run reach a script: the machine's address towards the controller.
std::string script_exports(const SlurmRun& run) {
  std::string text;
  for (const auto& [name, value] : run.script->environment) text += exported(name, value);
  text += exported("MAYFLY_JOIN", run.terms.join);
  text += exported("MAYFLY_TOKEN_FILE", (run.terms.directory / "token").string());
  text += exported("PYTHONUNBUFFERED", "1");
  text += "export MAYFLY_SLOT=$launch\n";
  const std::string host = run.terms.join.substr(0, run.terms.join.rfind(':'));
  text += fmt::format("MAYFLY_HOST=$(ip -4 -o route get {} 2>/dev/null | sed -n 's/.* src \\([0-9.]*\\).*/\\1/p')\n",
                      shell_word(host));
  text += "export MAYFLY_HOST=${MAYFLY_HOST:-$(hostname -i | cut -d' ' -f1)}\n";
  return text;
}

}  // namespace

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

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
  const auto logs = run.terms.directory / "logs" / fmt::format("slurm-{}.log", first_launch(array));
  words.push_back("--job-name=" + slurm_name(run.terms.run, first_launch(array)));
  words.push_back(fmt::format("--array={}", fmt::join(indices, ",")));
  words.push_back("--chdir=" + run.terms.directory.string());
  words.emplace_back("--open-mode=append");
  words.push_back("--output=" + file_pattern(logs));
  return words;
}

std::string batch_script(const SlurmRun& run, const SlurmArray& array) {
  const auto notice = run.notice.find(array.role.market);
  const auto type = run.spec.types.find(array.role.type);
  const int cores = type != run.spec.types.end() ? type->second.cores.value_or(1) : 1;
  std::string text = "#!/bin/sh\n";
  // The end of its time is told to the shell, too, which must wait for the program.
  text += "trap : TERM\n";
  text += fmt::format("launch=$(({} + SLURM_ARRAY_TASK_ID))\n", first_launch(array));
  text += fmt::format("export MAYFLY_MACHINE={}\"$launch\"\n", shell_word(run.terms.run + "-"));
  if (notice != run.notice.end()) text += exported("MAYFLY_NOTICE_S", fmt::format("{}", notice->second.count()));
  // As many threads as it has cores, where Slurm does not bind it to them.
  text += fmt::format("export OMP_NUM_THREADS={}\n", cores);
  if (run.script && !array.role.server) text += script_exports(run);
  if (!run.spec.setup.empty()) text += run.spec.setup + "\n";
  text += fmt::format(
      "srun --ntasks=1 --cpus-per-task={} --kill-on-bad-exit=0 --open-mode=append --output={}\"$launch\".log {}\n",
      cores, shell_word(file_pattern(run.terms.directory / "logs" / "worker-")), program_words(run, array.role));
  return text;
}

}  // namespace mayfly
