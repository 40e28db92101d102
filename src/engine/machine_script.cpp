#include "engine/machine_script.h"

#include <fmt/format.h>

namespace mayfly {
namespace {

std::string exported(const std::string& name, std::string_view value) {
  return fmt::format("export {}={}\n", name, shell_word(value));
}

std::string token_word(const MachineProgram& machine) {
  return machine.own_files ? "\"$folder/token\"" : shell_word((machine.terms.directory / "token").string());
}

/// Where others of the run reach a script: the machine's address towards the controller.
std::string script_exports(const MachineProgram& machine) {
  std::string text;
  for (const auto& [name, value] : machine.script->environment) text += exported(name, value);
  text += exported("MAYFLY_JOIN", machine.terms.join);
  text += fmt::format("export MAYFLY_TOKEN_FILE={}\n", token_word(machine));
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
  std::string words =
      fmt::format("{} {} --join {} --token-file {} --slot \"$launch\"",
                  machine.own_files ? "\"$program\"" : shell_word(machine.program.string()),
                  role.server ? "server" : "worker", shell_word(machine.terms.join), token_word(machine));
  for (const std::string& word : machine.arguments) words += " " + shell_word(word);
  return words;
}

std::string copied_program(const std::string& copy) {
  return "\"${HOME:-/root}/.cache/mayfly/programs/\"" + shell_word(copy) + "/mayfly-train";
}

std::string script_text(const ScriptCommand& script) { return "trap : TERM\n" + script.text; }

std::filesystem::path machine_log(const RunTerms& terms, int launch) {
  return terms.directory / "logs" / fmt::format("worker-{}.log", launch);
}

namespace {

/// Nothing of the machine is left when its program ends by itself; the token is nobody else's to read.
std::string script_with_own_files(const MachineProgram& machine, const Order& order, std::optional<int> cores) {
  const std::string name = machine_name(machine.terms.run, order.launch);
  std::string text = fmt::format("launch={}\numask 077\ntrap : TERM\nexport HOME=\"${{HOME:-/root}}\"\n", order.launch);
  text += fmt::format("folder=\"${{HOME:-/root}}/.cache/mayfly/machines/\"{}\n", shell_word(name));
  // Machines that were killed have left theirs.
  text +=
      "for old in \"${folder%/*}\"/*; do\n"
      "  p=$(cat \"$old/pid.$(uname -n)\" 2>/dev/null) && [ -n \"$p\" ] && ! kill -0 \"$p\" 2>/dev/null && rm -rf "
      "\"$old\"\n"
      "done\n"
      "rm -rf \"$folder\"; mkdir -p \"$folder\" && echo $$ > \"$folder/pid.$(uname -n)\" || exit 1\n"
      "[ -z \"$MAYFLY_HELD\" ] || printf %s \"$folder\" > \"$MAYFLY_HELD/own\"\n";
  text += fmt::format("printf '%s\\n' {} > \"$folder/token\" || exit 1\n", shell_word(machine.terms.token));
  text += fmt::format("program={}\n",
                      machine.copy.empty() ? shell_word(machine.program.string()) : copied_program(machine.copy));
  text += "[ -x \"$program\" ] || program=mayfly-train\n";
  text += machine_exports(machine, order.role, cores);
  if (machine.runs_script(order.role)) {
    const auto place = shell_word((std::filesystem::path("job") / machine.workdir).lexically_normal().string());
    text += "export MAYFLY_FILES=\"$folder\" MAYFLY_TRAIN=\"$program\"\n";
    text += "export PYTHONPATH=\"$folder/python${PYTHONPATH:+:$PYTHONPATH}\"\n";
    text += fmt::format("\"$program\" fetch --join {} --token-file {} --files \"$folder\" > /dev/null || exit\n",
                        shell_word(machine.terms.join), token_word(machine));
    text += fmt::format("(cd \"$folder\"/{} && exec /bin/sh -c {})\n", place, shell_word(script_text(*machine.script)));
  } else {
    text += train_words(machine, order.role) + " --files \"$folder\"\n";
  }
  return text + "code=$?\nrm -rf \"$folder\"\nexit $code\n";
}

}  // namespace

std::string machine_script(const MachineProgram& machine, const Order& order, std::optional<int> cores) {
  if (machine.own_files) return script_with_own_files(machine, order, cores);
  const std::string token = shell_word((machine.terms.directory / "token").string());
  std::string text = fmt::format("launch={}\n", order.launch);
  text += fmt::format(
      "[ -r {} ] || {{ echo {} >&2; exit 3; }}\n", token,
      shell_word(fmt::format("this machine does not see the run's folder {}", machine.terms.directory.string())));
  text += fmt::format("exec >> {} 2>&1\n", shell_word(machine_log(machine.terms, order.launch).string()));
  text += machine_exports(machine, order.role, cores);
  if (!machine.runs_script(order.role)) return text + "exec " + train_words(machine, order.role) + "\n";
  return text + fmt::format("cd {} && exec /bin/sh -c {}\n", shell_word(machine.script->directory.string()),
                            shell_word(script_text(*machine.script)));
}

}  // namespace mayfly
