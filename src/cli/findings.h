#pragma once

#include <string>
#include <vector>

#include "notice/cloud.h"

namespace mayfly::cli {

/// One thing that was looked at before a run.
struct Finding {
  std::string group{};  ///< "engines", "devices", "notices", "data", "python"
  std::string name{};
  enum class State { ok, no, unused } state = State::ok;
  bool needed = false;   ///< no local run without it
  std::string detail{};  ///< what was seen; of `no`: why
};

/// mayfly-train and the libraries it loads; Slurm; the engine that the job or a file of its own names (empty: neither),
/// which is asked for its machines; and what is not used so far.
std::vector<Finding> engine_findings(const std::string& job, const std::string& engine_file);
std::vector<Finding> device_findings();
/// Which cloud's metadata service would be watched, and whether it answers; asks no service where there is none.
std::vector<Finding> notice_findings(const std::string& notices);
/// The job's data files (empty: no job), and room where runs are written.
std::vector<Finding> data_findings(const std::string& job, const std::string& out);
std::vector<Finding> python_findings();

}  // namespace mayfly::cli
