#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/units.h"
#include "train/abortable.h"

namespace mayfly {

/// Whether packets get through: told apart from slow, frozen or ended processes, whose machines answer all the same.
class Reach final : public Abortable {
 public:
  /// Which of the places, HOST:PORT each, nothing comes back from in time, not even that nobody listens there; rising.
  /// None after abort(), and none of what is no place.
  std::vector<std::size_t> missing(std::span<const std::string> places, Seconds patience);
  void abort() override { over_ = true; }

 private:
  std::atomic<bool> over_{false};
};

/// While connections are being made: where that takes long, looks whether all places can be reached, and calls
/// `missed`, in a thread of its own, if they cannot.
class ReachWatch {
 public:
  ReachWatch(std::vector<std::string> places, std::function<void()> missed);
  ~ReachWatch();
  ReachWatch(const ReachWatch&) = delete;
  ReachWatch& operator=(const ReachWatch&) = delete;

  /// Ends it. Which of the places cannot be reached; none where nobody has looked.
  std::vector<std::size_t> end();

 private:
  void look(const std::function<void()>& missed);

  const std::vector<std::string> places_;
  Reach reach_{};
  std::mutex mutex_{};
  std::condition_variable ended_{};
  bool over_ = false;
  std::vector<std::size_t> missing_{};
  std::thread thread_;
};

/// For an answer when it is asked whether a place can be reached.
constexpr Seconds kReachPatience{2};

/// A connection whose other machine does not answer any more ends within seconds, however long its process computes.
void limit_silence(int socket);

}  // namespace mayfly
