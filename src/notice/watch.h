#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "notice/client.h"

namespace mayfly {

/// Asks a machine's metadata service again and again, in a thread of its own, until the machine is to be taken or the
/// watch is destroyed.
class NoticeWatch {
 public:
  struct Options {
    MetadataService service{};
    std::optional<Seconds> interval{};  ///< none: as the cloud's documents say
  };
  /// Both are called from the watch's thread.
  struct Calls {
    /// Once for each kind of news: at most one warning without an end, then at most one end, after which it is quiet.
    std::function<void(const PreemptionNotice&)> notice{};
    /// The service cannot be asked; once until it could be again.
    std::function<void(const std::string& why)> trouble{};
  };
  NoticeWatch(const Options& options, Calls calls);
  /// Within the client's patience.
  ~NoticeWatch();
  NoticeWatch(const NoticeWatch&) = delete;

 private:
  void watch();
  /// True once there is nothing more to ask for.
  bool ask();
  bool pause(Seconds time);

  const Seconds interval_;
  const Calls calls_;
  MetadataClient client_;
  bool warned_ = false;
  int failures_ = 0;  ///< in a row
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool over_ = false;
  std::thread thread_{};
};

}  // namespace mayfly
