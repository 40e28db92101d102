#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/run_setup.h"
#include "engine/machine_script.h"
#include "plan/planner.h"

// Engines whose machines are of types of their own: what the job file or the engine's file says of them.
namespace mayfly::cli {

/// What an engine's block offers.
struct Offered {
  struct Terms {
    std::optional<UsdPerHour> price{};
    std::optional<int> most{};  ///< machines at once; none: that is seen when they are ordered
  };
  std::string where{};                                     ///< "engine.slurm.types"
  std::map<std::string, std::map<Market, Terms>> types{};  ///< empty: machines are all alike
  std::set<Market> markets{};

  const Terms* find(const std::string& type, Market market) const;
  /// Machines at once, where that is known of all.
  std::optional<int> most() const;
};
/// None for engines whose machines have no types of their own.
std::optional<Offered> offered_by(const EngineSpec& engine);

/// Flags of `run` that are for machines of this computer, and what a run on another engine cannot do without.
Result<void> check_machine_flags(const RunFlags& flags, const JobSpec& spec, const EngineSpec& engine);

/// Before anything is planned: only what is offered can be had, at its prices. A profile that speaks of no such type is
/// left out, and that is said.
void limit_to(const Offered& offered, RunSetup& setup, PlanRequest& request);

/// What workers are where nothing was planned, `most` at most: of the type that the job names or the only one, in a
/// market that it takes; of an engine that knows how many there are, those.
Result<std::vector<MachineRole>> offered_roles(const Offered& offered, const RunSetup& setup,
                                               const std::set<Market>& markets, int most);

/// Prices of machines and servers, where all of them are known.
void set_prices(const Offered& offered, RunSetup& setup);

/// The kinds of machines that a run may ask for.
std::vector<MachineRole> kinds_of(const RunInputs& inputs);

/// Of a path in a job file: it lies below the job file's folder.
bool stays_below(const std::filesystem::path& path);
/// What machines fetch that see no files of this computer: what the job names below its folder, and for a script the
/// Python package. Other paths are taken to be there on the machines.
std::vector<ShelfRoot> shelf_of(const RunInputs& inputs, const std::filesystem::path& package);

/// What the shells of machines run. `setup_lines`: the engine's own. `shared_files`: they see this computer's.
Result<MachineProgram> machine_program(const RunFlags& flags, const RunSetup& setup, const std::string& setup_lines,
                                       bool shared_files);

}  // namespace mayfly::cli
