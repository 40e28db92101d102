#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "data/checkpoint.h"

namespace mayfly {

/// Where a run's checkpoints are kept: a folder. What takes long, reading and checking them above all, is done in a
/// thread of its own, one thing after another; answers are posted to the thread that asked.
class Vault {
 public:
  /// `post`: runs what it is given later, in the thread that wants the answers. Callable from any thread.
  Vault(std::filesystem::path folder, int keep, std::function<void(std::function<void()>)> post);
  /// What was asked for is still done, but the answer is not told.
  ~Vault();
  Vault(const Vault&) = delete;

  /// The newest whole one of this lineage.
  void seek(const Lineage& lineage, std::function<void(const FoundCheckpoint&)> found);
  void publish(std::filesystem::path checkpoint, std::function<void(const Result<void>&)> done);

 private:
  void work();
  void add(std::function<void()> task);

  std::filesystem::path folder_;
  int keep_;
  std::function<void(std::function<void()>)> post_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<std::function<void()>> tasks_{};
  bool closing_ = false;
  std::thread thread_{};
};

}  // namespace mayfly
