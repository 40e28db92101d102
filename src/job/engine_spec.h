#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

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

/// Where machines come from. Format: docs/formats.md#engine.
struct EngineSpec {
  std::string kind{};  ///< as --engine has it; empty: not said
  SlurmSpec slurm{};
  bool operator==(const EngineSpec&) const = default;
};

/// The `engine` block of a job file. What is wrong is left in the section.
EngineSpec read_engine(Section& section);
/// What --engine-file names: the same in a file of its own.
Result<EngineSpec> parse_engine(std::string_view text, const std::string& file);

}  // namespace mayfly
