#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/provider.h"
#include "job/engine_spec.h"

// What hosts are asked over ssh. A machine is a folder /tmp/mayfly-UID/HOST/RUN-LAUNCH on its host, which is gone when
// the host was started anew, as the machine is: with `pid`, `since`, its `script`, what that printed in `log`, and
// `code` when it has ended. HOST is the name by which the engine knows it, so that several names of one computer do not
// meet.
namespace mayfly {

/// Texts for sh on a host, to be put one behind another; this one first.
std::string ssh_prelude(const SshHost& host);
/// Starts a machine, if it is not there already.
std::string ssh_start(const std::string& run, int launch, const std::string& script);
/// Kills what it and its children are; also where it is not there.
std::string ssh_end(const std::string& run, int launch);
std::string ssh_tell(const std::string& run, int launch);
/// The last lines that a machine printed, also when it is over.
std::string ssh_tail(const std::string& run, int launch);
/// Tells of each machine of the run, once of those that have ended, and of how many there are of other runs.
std::string ssh_list(const std::string& run);

/// What one host is asked.
struct SshWord {
  std::size_t host = 0;  ///< its number
  std::string text{};    ///< for its shell
};
/// A program that hosts are to have before they are asked; those that have it under this name are not sent it again.
struct SshCopy {
  std::filesystem::path program{};
  std::string name{};  ///< as for copied_program(); empty: nothing is to be copied
};
/// All hosts at the same time, for `sh` on this computer.
ProgramCall ssh_call(const SshSpec& spec, const std::vector<SshWord>& words, const SshCopy& copy = {});

/// What one host answered.
struct SshAnswer {
  int code = 255;  ///< of its shell, or ssh's own: 255
  std::vector<std::string> lines{};
  bool well() const { return code == 0; }
  /// The last of its lines, for people.
  std::string why() const;
};
/// By the host's number. Hosts that are not among them were not heard of.
std::map<std::size_t, SshAnswer> ssh_answers(std::string_view output);

/// What a host says of its machines.
struct SshHeld {
  std::vector<Listed> machines{};
  int others = 0;  ///< machines of other runs
};
SshHeld ssh_held(const SshAnswer& answer, const SshHost& host);

}  // namespace mayfly
