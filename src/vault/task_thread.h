#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace mayfly {

/// A thread that does what it is given, one thing after another.
class TaskThread {
 public:
  TaskThread();
  /// What it was given is still done.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  void add(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<std::function<void()>> tasks_{};
  bool closing_ = false;
  std::thread thread_{};
};

}  // namespace mayfly
