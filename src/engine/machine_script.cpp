#include "engine/machine_script.h"

#include <fmt/format.h>

namespace mayfly {
namespace {

std::string exported(const std::string& name, std::string_view value) {
  return fmt::format("export {}={}\n", name, shell_word(value));
}

/// Where others of the run reach a script: the machine's address towards the controller.
std::string script_exports(const MachineProgram& machine) {
  std::string text;
  for (const auto& [name, value] : machine.script->environment) text += exported(name, value);
  text += exported("MAYFLY_JOIN", machine.terms.join);
  text += exported("MAYFLY_TOKEN_FILE", (machine.terms.directory / "token").string());
  text += exported("PYTHONUNBUFFERED", "1");
  text += "export MAYFLY_SLOT=$launch\n";
  const std::string host = machine.terms.join.substr(0, machine.terms.join.rfind(':'));
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

std::string machine_exports(const MachineProgram& machine, const MachineRole& role, std::optional<int> cores) {
  std::string text = fmt::format("export MAYFLY_MACHINE={}\"$launch\"\n", shell_word(machine.terms.run + "-"));
  const auto notice = machine.notice.find(role.market);
  if (notice != machine.notice.end()) text += exported("MAYFLY_NOTICE_S", fmt::format("{}", notice->second.count()));
  if (cores) text += fmt::format("export OMP_NUM_THREADS={}\n", *cores);
  if (machine.runs_script(role)) text += script_exports(machine);
  if (!machine.setup.empty()) text += machine.setup + "\n";
  return text;
}

std::string train_words(const MachineProgram& machine, const MachineRole& role) {
  std::string words = fmt::format("{} {} --join {} --token-file {} --slot \"$launch\"",
                                  machine.copy.empty() ? shell_word(machine.program.string()) : "\"$program\"",
                                  role.server ? "server" : "worker", shell_word(machine.terms.join),
                                  shell_word((machine.terms.directory / "token").string()));
  for (const std::string& word : machine.arguments) words += " " + shell_word(word);
  return words;
}

std::string script_text(const ScriptCommand& script) { return "trap : TERM\n" + script.text; }

std::filesystem::path machine_log(const RunTerms& terms, int launch) {
  return terms.directory / "logs" / fmt::format("worker-{}.log", launch);
}

std::string machine_script(const MachineProgram& machine, const Order& order, std::optional<int> cores) {
  const std::string token = shell_word((machine.terms.directory / "token").string());
  std::string text = fmt::format("launch={}\n", order.launch);
  text += fmt::format(
      "[ -r {} ] || {{ echo {} >&2; exit 3; }}\n", token,
      shell_word(fmt::format("this machine does not see the run's folder {}", machine.terms.directory.string())));
  text += fmt::format("exec >> {} 2>&1\n", shell_word(machine_log(machine.terms, order.launch).string()));
  text += machine_exports(machine, order.role, cores);
  if (!machine.copy.empty())
    text += fmt::format("program=$HOME/.cache/mayfly/{}/mayfly-train\n[ -x \"$program\" ] || program={}\n",
                        shell_word(machine.copy), shell_word(machine.program.string()));
  if (!machine.runs_script(order.role)) return text + "exec " + train_words(machine, order.role) + "\n";
  return text + fmt::format("cd {} && exec /bin/sh -c {}\n", shell_word(machine.script->directory.string()),
                            shell_word(script_text(*machine.script)));
}

}  // namespace mayfly
