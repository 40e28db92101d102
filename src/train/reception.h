#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "train/data_link.h"

namespace mayfly {

/// The process at the other end of a connection that came to this process.
struct Guest {
  Guest(int socket, const Credentials& credentials, std::shared_ptr<EmulatedNetwork> network, std::string from)
      : link(socket, credentials, std::move(network)), name(std::move(from)) {}
  DataLink link;
  const std::string name;                    ///< "127.0.0.1:40001"
  std::atomic<std::int64_t> formation = -1;  ///< once it has said so, where that matters
};

/// Listens, lets in each guest that proves that it belongs to the run, and gives it a thread.
class Reception {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    Credentials credentials{};
    std::shared_ptr<EmulatedNetwork> network{};  ///< none: as fast as it goes
  };
  /// All that is done for a guest, in its thread; the connection ends when it returns. An error is logged.
  using Serve = std::function<Result<void>(Guest&)>;
  static Result<std::unique_ptr<Reception>> open(Options options, Serve serve);
  /// Turns all guests out.
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  /// "127.0.0.1:40001".
  const std::string& address() const { return address_; }
  /// Ends these connections, and returns when nothing is done for them any more.
  void turn_out(const std::function<bool(const Guest&)>& whom);
  /// No guest comes any more.
  void close();

 private:
  struct Entry {
    std::unique_ptr<Guest> guest{};
    std::atomic<bool> done = false;
    std::thread thread{};
  };
  Reception(Options options, Serve serve, int listener, std::string address);
  void accept_guests();
  void admit(int socket, const std::string& from);
  void attend(Entry& entry);
  void turn_away(const Guest& guest, const std::string& why);

  const Options options_;
  const Serve serve_;
  const int listener_;
  const std::string address_;
  std::atomic<unsigned> strangers_ = 0;
  std::mutex mutex_{};  ///< of the list
  std::list<Entry> entries_{};
  std::atomic<bool> over_ = false;
  std::thread acceptor_{};
};

}  // namespace mayfly
