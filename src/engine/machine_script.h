#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/script_command.h"

// What the shell of a machine runs that another's program has got.
namespace mayfly {

/// What all machines of a run have in common.
struct MachineProgram {
  RunTerms terms{};
  std::filesystem::path program{};        ///< mayfly-train, where machines see it
  std::vector<std::string> arguments{};   ///< of it, beside those of the terms
  std::optional<ScriptCommand> script{};  ///< of workers; servers are always mayfly-train's
  std::map<Market, Seconds> notice{};     ///< what a machine is told it has left when it will be taken
  std::string setup{};                    ///< lines of shell before the program
  bool own_files = false;                 ///< machines do not see this computer's files, and fetch what they need
  std::string copy{};                     ///< of those: what copied_program() takes; empty: they have the program
  std::filesystem::path workdir{};        ///< of those: the script's, below the job file's folder

  bool runs_script(const MachineRole& role) const { return script && !role.server; }
};

/// A word as a shell takes it, whatever is in it.
std::string shell_word(std::string_view text);

/// Exports for a machine whose launch is in $launch. `cores`: for as many threads; none: the program sees for itself.
std::string machine_exports(const MachineProgram& machine, const MachineRole& role, std::optional<int> cores);
/// mayfly-train's words; its launch is in $launch.
std::string train_words(const MachineProgram& machine, const MachineRole& role);
/// For `sh -c`. A notice goes to all processes: the shell must outlive it, or the program's hand-over would be cut
/// short.
std::string script_text(const ScriptCommand& script);

/// Where the shell of a machine finds a program that was copied there under this name.
std::string copied_program(const std::string& copy);

/// The log of a machine, in the run's folder.
std::filesystem::path machine_log(const RunTerms& terms, int launch);

/// All of it, where nothing but a shell starts the program: what it prints goes to its log. On a machine that cannot
/// read the run's folder it says so and ends with 3. With own files it holds the run's token, and what is printed is
/// left to whoever runs it.
std::string machine_script(const MachineProgram& machine, const Order& order, std::optional<int> cores);

}  // namespace mayfly
