#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "base/units.h"
#include "data/checkpoint.h"
#include "vault/depot.h"
#include "vault/task_thread.h"

namespace mayfly {

/// What a run asks of the place where its checkpoints are. It takes long, reading and checking them above all, so it is
/// done in a thread of its own, one thing after another; answers are posted to the thread that asked.
class Vault {
 public:
  struct Options {
    int keep = 1;
    Seconds first_pause{1};  ///< until a depot that gave no answer is asked again; doubled each time, up to a minute
  };
  /// `depot` must outlive it. `post`: runs what it is given later, in the thread that wants the answers. Callable from
  /// any thread. `said`: for people, posted too.
  Vault(Depot& depot, const Options& options, std::function<void(std::function<void()>)> post,
        std::function<void(const std::string&)> said = {});
  /// What was asked for is still done, but the answer is not told; a depot that gives none is not asked again.
  ~Vault();
  Vault(const Vault&) = delete;

  /// The newest whole one of this lineage. Asks until the depot can tell: to begin anew because it is away would throw
  /// away what was trained.
  void seek(const Lineage& lineage, std::function<void(const FoundCheckpoint&)> found);
  void publish(std::string checkpoint, std::function<void(const Result<void>&)> done);

 private:
  /// False: it is closing.
  bool wait(Seconds pause);

  Depot& depot_;
  Options options_;
  std::function<void(std::function<void()>)> post_;
  std::function<void(const std::string&)> said_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool closing_ = false;
  TaskThread thread_{};  ///< last: it ends first
};

}  // namespace mayfly
