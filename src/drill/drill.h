#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "notice/cloud.h"

namespace mayfly {

/// What a rehearsal takes away, and what is said before.
struct DrillRequest {
  std::filesystem::path directory{};  ///< of the run
  enum class Lose { workers, server, controller } lose = Lose::workers;
  std::optional<int> count{};  ///< of workers; none: half of them, rounded up
  bool all = false;            ///< every worker
  enum class Notice { cloud, sigterm, none } notice = Notice::none;
  Cloud cloud = Cloud::none;
  std::optional<Seconds> window{};  ///< from the notice to the end; none: what the cloud gives
  Seconds patience{60};             ///< with the run's next commit
};

/// One process that was taken.
struct DrillLoss {
  int worker = -1;  ///< -1: the controller
  bool server = false;
  int pid = 0;
  std::optional<Seconds> left_after{};  ///< from the notice until it had gone by itself
  bool killed = false;                  ///< it had not when the window was over
};

struct DrillReport {
  std::vector<DrillLoss> losses{};
  Seconds window{};
  double committed_before = 0;  ///< samples
  double committed_after = 0;
  double samples_redone = 0;             ///< committed, and trained again from a checkpoint
  std::optional<Seconds> next_commit{};  ///< from the last one's end to the next step that counted
  Seconds longest_pause{};               ///< between two commits, from the notice on
  bool run_over = false;                 ///< trained to its end meanwhile
};

/// Rehearses a loss against a run whose controller is on this machine. Blocks until the run has committed a step
/// without those that were taken. `say` is told what happens, as it happens.
Result<DrillReport> drill(const DrillRequest& request, const std::function<void(const std::string&)>& say);

Json drill_json(const DrillReport& report);

/// What happened to the samples after a moment of the run's time, from its journal.
struct Aftermath {
  double committed = 0;
  double redone = 0;
  std::optional<Seconds> next_commit{};  ///< the first at `settled` or later, counted from there
  Seconds longest_pause{};
};
/// `journal`: text of journal.jsonl; a last line that is not whole is passed over.
Aftermath aftermath(const std::string& journal, Seconds from, Seconds settled);

}  // namespace mayfly
