#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/units.h"

namespace mayfly {

/// A market of a Slurm cluster: where its machines are asked for.
struct SlurmQueue {
  std::string partition{};
  std::string qos{};
  std::string account{};  ///< empty: the one for all markets
  bool operator==(const SlurmQueue&) const = default;
};

/// What a machine of a type asks of Slurm, and what it costs. What is empty or absent is left to Slurm.
struct SlurmType {
  std::string gres{};
  std::string constraint{};
  std::optional<int> cores{};
  std::optional<Bytes> memory{};
  std::optional<UsdPerHour> spot{};
  std::optional<UsdPerHour> on_demand{};
  bool operator==(const SlurmType&) const = default;
};

/// How machines are had from Slurm.
struct SlurmSpec {
  std::optional<SlurmQueue> spot{};
  std::optional<SlurmQueue> on_demand{};
  std::map<std::string, SlurmType> types{};  ///< empty: machines are all alike
  std::string account{};
  std::string reservation{};
  std::optional<Seconds> time{};       ///< of a machine
  std::optional<Seconds> hand_over{};  ///< before its end, when its successor is asked for
  std::string setup{};                 ///< for the shell, before a machine's program
  bool operator==(const SlurmSpec&) const = default;
};

/// A type of machine of a program's.
struct ExecType {
  std::optional<int> cores{};
  std::optional<UsdPerHour> spot{};
  std::optional<UsdPerHour> on_demand{};
  bool operator==(const ExecType&) const = default;
};

/// How machines are had from a program of the user's.
struct ExecSpec {
  std::vector<std::string> program{};       ///< and its arguments
  std::map<std::string, ExecType> types{};  ///< empty: machines are all alike
  Seconds patience{300};                    ///< with one call
  Seconds every{5};                         ///< between two looks while machines are waited for
  Seconds start{300};                       ///< from the order to the first word of a worker, at most
  Seconds notice{30};                       ///< what a machine is told it has left when it will be taken
  std::string setup{};                      ///< for the shell, before a machine's program
  bool shared_files = false;                ///< machines see this computer's files under the same paths
  bool operator==(const ExecSpec&) const = default;
};

/// A computer that takes machines over ssh.
struct SshHost {
  std::string host{};  ///< as ssh takes it: [USER@]NAME
  std::string type = "host";
  std::string zone{};
  bool spot = false;
  std::optional<UsdPerHour> price{};  ///< of each machine
  std::optional<int> cores{};         ///< likewise
  int machines = 1;                   ///< at once
  bool operator==(const SshHost&) const = default;
};

struct SshSpec {
  std::vector<SshHost> hosts{};
  std::vector<std::string> options{};  ///< of ssh: -i, -p, -J, -F, -o
  Seconds notice{30};
  std::string setup{};
  bool shared_files = false;
  bool operator==(const SshSpec&) const = default;
};

/// Where machines come from. Format: docs/formats.md#engine.
struct EngineSpec {
  std::string kind{};  ///< as --engine has it; empty: not said
  SlurmSpec slurm{};
  ExecSpec exec{};
  SshSpec ssh{};
  bool operator==(const EngineSpec&) const = default;
};

bool is_engine_kind(std::string_view kind);

/// The `engine` block of a job file. What is wrong is left in the section.
EngineSpec read_engine(Section& section);
/// What --engine-file names: the same in a file of its own.
Result<EngineSpec> parse_engine(std::string_view text, const std::string& file);

}  // namespace mayfly
