#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/units.h"
#include "notice/watch.h"
#include "wire/loop.h"

namespace mayfly {

/// The controller no longer knows this worker: what it holds counts for nothing. A Welcome as newcomer follows.
struct Dropped {};
/// No word from the controller for as long as the job allows.
struct Orphaned {};
/// The controller cannot be reached, or does not want this worker.
struct Rejected {
  std::string why{};
};
using Mail = std::variant<ToMember, Dropped, Orphaned, Rejected>;

/// A worker's or server's line to its controller, with a thread of its own: heartbeats go out whatever the training
/// does. A line that breaks is mended, and what the controller may have missed is said again.
class Line {
 public:
  struct Options {
    std::string host{};
    std::uint16_t port = 0;
    Credentials credentials{};
    std::string role = "worker";  ///< or "server"
    int launch = -1;
    std::optional<std::string> machine{};  ///< what the engine gave it with that number
    Seconds patience{10};                  ///< for the first connection
    Seconds notice{30};                    ///< left after SIGTERM
    MetadataService metadata{};            ///< which says when this machine will be taken
    /// In the line's thread: no formation up to and including this one will be heard of again.
    std::function<void(std::int64_t formation)> ended{};
  };
  /// Connects and says hello. SIGTERM is a notice, another one changes nothing. A worker or server that is to be taken
  /// away and has not been told to leave in time is told so here.
  explicit Line(Options options);
  /// Says what is still to be said.
  ~Line();

  /// The next thing to do; blocks.
  Mail next();
  void say(FromMember message);
  /// Comes as mail once more.
  void remind(ToMember message) { deliver(std::move(message)); }
  /// The weights hold this many samples; none: nothing that counts.
  void holds(std::optional<std::int64_t> sample);
  /// Where in a step the training is, for heartbeats: "data", "compute", "exchange"; null: in none. A literal.
  void doing(const char* what) { doing_ = what; }

 private:
  using Clock = std::chrono::steady_clock;

  void attempt();
  void lost(const std::string& why);
  void hear(ToMember message);
  void welcome(Welcome message);
  void refuse(const std::string& why);
  /// Its heartbeat was answered.
  void confirm();
  void watch_too(const Watch& service);
  void send(const ToController& message);
  void tick();
  bool too_silent() const;
  void give_up(const std::string& why);
  void terminate();
  void watch(const MetadataService& service, std::optional<Seconds> interval);
  void notice(const PreemptionNotice& notice);
  void leave_in(Seconds left);
  void deliver(Mail mail);

  const Options options_;
  const pthread_t trains_;  ///< the thread that made the line
  std::atomic<std::int64_t> sample_{-1};
  std::atomic<const char*> doing_{nullptr};

  std::mutex mutex_{};
  std::condition_variable arrived_{};
  std::deque<Mail> mail_{};

  // Of the line's thread.
  Loop loop_{};
  Timer retry_{loop_}, heartbeat_{loop_}, farewell_{loop_}, last_call_{loop_};
  std::optional<SignalWatch> signals_{};
  std::unique_ptr<Link> link_{};
  bool attached_ = false;  ///< welcomed on this link
  bool closing_ = false;
  std::optional<Welcome> terms_{};
  Clock::time_point last_word_ = Clock::now();
  std::string why_lost_;                    ///< the line, since that word
  std::optional<FromMember> unanswered_{};  ///< the last of Ready, Reachable, Formed, StepDone, Pushed, Broken
  std::optional<FromMember> checkpoint_{};  ///< the last one written that may not have been heard of
  int unheard_ = 0;                         ///< heartbeats sent since, whose answer proves that it was
  bool terminated_ = false;                 ///< had its SIGTERM
  std::optional<Clock::time_point> leaves_{};
  std::string why_leaves_{};
  std::optional<AtRisk> risk_{};
  std::vector<std::unique_ptr<NoticeWatch>> watches_{};
  std::thread thread_{};
};

}  // namespace mayfly
