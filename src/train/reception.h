#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "train/data_link.h"

namespace mayfly {

/// The process at the other end of a connection that came to this process.
struct Guest {
  Guest(int socket, const Credentials& credentials, std::shared_ptr<EmulatedNetwork> network, std::string from)
      : own(std::make_shared<DataLink>(socket, credentials, std::move(network))), link(*own), name(std::move(from)) {}
  const std::shared_ptr<DataLink> own;
  DataLink& link;
  bool stays = false;                        ///< set while it is served: another has taken the link over, and ends it
  const std::string name;                    ///< "127.0.0.1:40001"
  std::atomic<std::int64_t> formation = -1;  ///< once it has said so, where that matters
};

/// Listens, lets in each guest that proves that it belongs to the run, and gives it a thread. Until then all of them
/// share one thread: a stranger costs a descriptor for as long as it may take to prove itself, and where too many wait
/// the oldest makes room, since a guest of the run needs no longer than its messages are on their way. Where the system
/// has no descriptor or thread to give, guests wait until it has.
class Reception {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    Credentials credentials{};
    std::shared_ptr<EmulatedNetwork> network{};  ///< none: as fast as it goes
  };
  /// All that is done for a guest, in its thread; the connection ends when it returns. An error is logged.
  using Serve = std::function<Result<void>(Guest&)>;
  /// So many connections may be unproven at a time.
  static constexpr std::size_t kMostUnproven = 256;
  static Result<std::unique_ptr<Reception>> open(Options options, Serve serve);
  /// Turns all guests out.
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  /// "127.0.0.1:40001".
  const std::string& address() const { return address_; }
  /// Ends these connections, and returns when nothing is done for them any more. Who is not let in yet stays.
  void turn_out(const std::function<bool(const Guest&)>& whom);
  /// No guest comes any more.
  void close();

 private:
  struct Entry {
    std::unique_ptr<Guest> guest{};
    std::atomic<bool> done = false;
    std::thread thread{};
  };
  /// What the system had not to give is not asked for until then.
  using Pause = std::optional<std::chrono::steady_clock::time_point>;
  /// Who has no thread yet.
  struct Newcomer {
    std::unique_ptr<Guest> guest{};
    std::chrono::steady_clock::time_point until{};  ///< to prove itself
    bool proven = false;
  };
  Reception(Options options, Serve serve, int listener, std::string address);
  void keep_door();
  void await_news();
  void hear_newcomers();
  void accept_one();
  void let_in_proven();
  Result<void> let_in(std::unique_ptr<Guest>& guest);
  void wait_out(Pause& pause, const std::string& shortage);
  void reap();
  void attend(Entry& entry);
  void turn_away(const Guest& guest, const std::string& why);

  const Options options_;
  const Serve serve_;
  const int listener_;
  const std::string address_;
  std::mutex mutex_{};  ///< of the list
  std::list<Entry> entries_{};
  std::atomic<bool> over_ = false;
  // Of the doorman's thread:
  std::vector<Newcomer> newcomers_{};  ///< the oldest first
  Pause descriptors_{}, threads_{};
  unsigned shortages_ = 0, strangers_ = 0;
  std::thread doorman_{};
};

}  // namespace mayfly
