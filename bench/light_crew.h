#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "wire/channel.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace mayfly::bench {

using Clock = std::chrono::steady_clock;

/// Calls when there is something to read, in the thread that is in run().
class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  void watch(int descriptor, std::function<void()> readable);
  void forget(int descriptor);
  /// Until `done`, which is asked after each round of events, or the time is over. False: it was the time.
  bool run(Seconds most, const std::function<bool()>& done);

 private:
  int epoll_;
  std::map<int, std::function<void()>> calls_{};
};

/// Connected over TCP, without delay for small packets; both ends have proven that they belong to the run.
int connected_to(const std::string& address, const Credentials& credentials);
/// Likewise, without the proof.
int connected_to(const std::string& address);
void send_all(int socket, std::string_view bytes);
/// What is there, at the end of `into`; false: the peer has closed.
bool receive_more(int socket, std::string& into);

/// Workers of a real controller that compute nothing: a lease is answered at once. All in one thread.
class LightCrew {
 public:
  struct Options {
    std::string address{};
    Credentials credentials{};
    bool trains = true;  ///< otherwise leases are kept for ever
  };
  LightCrew(Poller& poller, Options options) : poller_(poller), options_(std::move(options)) {}
  ~LightCrew();

  /// One more connects and says hello; ready as soon as it is welcome.
  void join();
  /// The oldest closes its connections without a word.
  void vanish();
  /// Heartbeats of everyone that is due one.
  void beat();

  std::size_t here() const { return workers_.size(); }
  std::size_t welcomed() const { return welcomed_; }
  std::int64_t leases() const { return leases_; }
  /// Samples committed, as far as leases tell.
  std::int64_t sample() const { return sample_; }
  /// Those that were sent away, or lost the controller.
  std::size_t refused() const { return refused_; }
  /// Bytes of a lease's word, and of its answer.
  std::size_t lease_bytes() const { return lease_bytes_; }
  std::size_t pushed_bytes() const { return pushed_bytes_; }

 private:
  struct Server {
    int socket = -1;
    std::string in{};
    std::uint64_t first = 0, count = 0;
  };
  struct Worker {
    int number = 0;
    int socket = -1;
    FrameReader frames{};
    bool welcome = false;
    std::int64_t formation = 0;
    Lease lease{};
    std::vector<Server> servers{};
    int waiting = 0;  ///< servers that have not answered
    Clock::time_point beat{};
  };

  void heard(Worker& worker);
  void hear(Worker& worker, const ToMember& message);
  void attach(Worker& worker, const Attach& word);
  void ask(Worker& worker, const Lease& lease);
  void heard_data(Worker& worker, Server& server);
  /// False: there is no whole answer yet.
  bool take_answer(Worker& worker, Server& server);
  void answered(Worker& worker);
  void leave_servers(Worker& worker);
  void drop(int number);
  void say(const Worker& worker, const ToController& message);

  Poller& poller_;
  const Options options_;
  std::map<int, std::unique_ptr<Worker>> workers_{};
  int next_ = 0;
  std::size_t welcomed_ = 0, refused_ = 0, lease_bytes_ = 0, pushed_bytes_ = 0;
  std::int64_t leases_ = 0, sample_ = 0;
};

}  // namespace mayfly::bench
