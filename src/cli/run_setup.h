#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/trace_flags.h"
#include "run/run.h"
#include "trace/trace.h"

namespace mayfly::cli {

/// The flags of `run`; kept in DIR/request.json so that `resume` asks for the same.
struct RunFlags {
  std::string job{};
  std::string plan{};
  std::string as{};
  std::string trace{};
  std::string speed = "1x";
  std::string out{};
  std::string policy{};
  std::string market{};
  std::string notice{};
  std::string interface = "lo";
  std::string advertise{};
  std::string port{};
  std::string catalog{};
  std::string orphan_after{};
  std::string step_limit{};
  std::string engine{};  ///< empty: as the job says, else local
  std::string engine_file{};
  std::string lifetime{};
  std::string checkpoints{};  ///< a folder or an address in an object store; empty: as the job says
  std::string notices = "none";
  bool private_network = false;
  bool trust = false;
  std::optional<int> workers{};
  std::uint64_t seed = 1;
  TraceFlags trace_flags{};

  Json json() const;
  static Result<RunFlags> parse(const std::string& text, const std::string& file);

 private:
  /// By key of request.json.
  std::vector<std::pair<const char*, std::string*>> texts();
};

/// Everything a run points into, and what a person should see before it starts.
struct RunSetup {
  RunInputs inputs{};
  EngineSpec engine{};              ///< of --engine, --engine-file and the job, one over the other
  std::string engine_text{};        ///< of --engine-file
  std::filesystem::path program{};  ///< mayfly-train
  std::string notices = "none";     ///< whose metadata service the machines watch, as for `--notices`
  std::optional<Series> weather{};  ///< machines come and go as in a trace
  double speed = 1;                 ///< seconds of the trace per second
  bool waits = false;               ///< it may be long until a first machine comes
  Catalog catalog{};
  std::optional<Profile> profile{};
  std::optional<Job> job{};
  std::string plan_text{};  ///< the chosen cluster; empty where nothing was planned
  Json plan{};
  std::vector<std::string> notes{};
  std::function<void(MachineRole&)> hold_back{};  ///< of an emulation: a machine that comes later
};
/// "No" is an answer too: no cluster keeps that promise.
struct NoPlan {
  std::string text{};
};

/// `directory`: of a run to go on with; empty: a new one.
Result<std::variant<std::unique_ptr<RunSetup>, NoPlan>> set_up(const RunFlags& flags,
                                                               const std::filesystem::path& directory);

}  // namespace mayfly::cli
