#pragma once

#include <string>

#include "job/job_spec.h"
#include "status/progress.h"
#include "status/summary.h"

namespace mayfly::cli {

/// "step 120 | loss 0.5321 | 1230 samples/s | 4 machines | 0.02 USD | 1m12s to go, deadline in 3m"
std::string progress_line(const RunProgress& progress);

/// Promised against delivered, and where the weights are.
std::string summary_text(const RunSummary& summary, const JobSpec& job);

/// Says what happens on standard error: remarks line by line, and on a terminal a last line that is always current.
class RunScreen {
 public:
  explicit RunScreen(bool terminal) : terminal_(terminal) {}
  void say(const std::string& text);
  void progress(const RunProgress& progress);
  void end();

 private:
  bool terminal_;
  std::string line_{};
};

}  // namespace mayfly::cli
