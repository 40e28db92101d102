#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "engine/process.h"

namespace mayfly {

/// Something a person was told, and when.
struct Remark {
  Seconds time{};
  std::string text{};
  bool operator==(const Remark&) const = default;
};

/// Of a journal line that is one.
std::optional<Remark> remark_in(std::string_view journal_line);

/// One worker or server of a run.
struct MachineStatus {
  std::string name{};   ///< w3, s1; empty: its worker has not said a word yet
  int launch = -1;      ///< number of its log; -1: it came by itself
  std::string where{};  ///< for people: "pid 4711", a host
  std::string stage{};  ///< ordered, starting, running, leaving, gone
  pid_t pid = 0;        ///< of a process of the controller's computer
  std::string type{};
  std::string zone{};
  std::string market{};
  UsdPerHour price{};
  Seconds since{};      ///< the run's time when it came
  std::string state{};  ///< ordered, starting, loading, ready, training, serving, leaving
  bool held() const { return stage != "ordered"; }
  bool operator==(const MachineStatus&) const = default;
};

/// Where a run stands, as its controller last wrote it. docs/formats.md#status
struct RunStatus {
  std::string job{};
  std::string phase{};  ///< attaching, waiting, training, saving, ending; ended: `end` says how
  std::string end{};    ///< trained, budget, stopped, failed; empty: not yet
  std::string failure{};
  ProcessId controller{};
  ProcessId front{};  ///< starts the controller again; none where no process does
  std::string host{};
  std::string boot{};
  double written = 0;  ///< seconds since 1970
  Seconds time{};
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::optional<std::int64_t> target{};  ///< samples
  std::optional<double> epochs{};
  std::optional<double> loss{};
  std::optional<double> samples_per_s{};
  std::optional<Seconds> left{};  ///< to the target at this speed
  std::optional<Seconds> deadline{};
  std::optional<bool> deadline_met{};  ///< so far as is known now
  std::optional<Usd> cost{};
  std::optional<Usd> budget{};
  std::optional<double> target_loss{};  ///< of the objective
  std::optional<Seconds> predicted_time{};
  std::optional<Usd> predicted_cost{};
  std::vector<MachineStatus> machines{};
  int preemptions = 0;
  std::int64_t samples_redone = 0;
  std::string checkpoint{};  ///< path; empty: none yet
  std::vector<Remark> remarks{};
  bool operator==(const RunStatus&) const = default;
};

Json status_json(const RunStatus& status);
/// Of DIR/status.json.
Result<RunStatus> parse_status(std::string_view text, const std::string& file);
Result<RunStatus> load_status(const std::filesystem::path& directory);

/// Keeps DIR/status.json current: whole at any time, and written at most once a second unless it must.
class StatusFile {
 public:
  /// `supervised`: the parent process starts this one again.
  StatusFile(const std::filesystem::path& directory, bool supervised);

  void remember(Remark remark);
  bool due(Seconds now) const;
  /// Adds who writes and what was said. What cannot be written is tried again later: no decision depends on it.
  void write(Seconds now, RunStatus status);

 private:
  std::filesystem::path path_;
  ProcessId front_{};
  std::deque<Remark> remarks_{};
  std::optional<Seconds> written_{};
};

}  // namespace mayfly
