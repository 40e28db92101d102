#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "light_crew.h"
#include "support/temp_folder.h"

namespace mayfly::bench {

/// A real `mayfly run` of a small job, and a real server of it; both end with this object.
class Run {
 public:
  static constexpr int kBatch = 64;
  struct Options {
    std::string sync{};
    int workers = 1;
    int most = 1;  ///< more are sent away
  };
  explicit Run(const Options& options);
  ~Run();
  Run(const Run&) = delete;

  const std::string& address() const { return address_; }
  const Credentials& credentials() const { return credentials_; }
  /// Seconds of CPU time so far, those of the kernel on its behalf included.
  double controller_cpu() const;
  double server_cpu() const;
  /// Resident.
  double controller_mb() const;
  /// Workers that the journal counts out.
  int lost() const { return static_cast<int>(losses().size()); }
  /// From the first to the last of the last ones.
  double span_of_losses(int count) const;

 private:
  std::vector<double> losses() const;

  support::TempFolder folder_{};
  pid_t front_ = 0, controller_ = 0, server_ = 0;
  std::string address_{};
  Credentials credentials_{};
};

/// Another process that takes so many bytes and answers with so many, in turns, over plain TCP.
class PlainTcp {
 public:
  struct Exchange {
    std::size_t question = 0;
    std::size_t answer = 0;
  };
  PlainTcp(int connections, std::vector<Exchange> exchanges);
  ~PlainTcp();
  PlainTcp(const PlainTcp&) = delete;

  /// Wall time of all exchanges once over one connection, while all connections are busy.
  double seconds_per_cycle(double seconds);

 private:
  const std::vector<Exchange> exchanges_;
  pid_t peer_ = 0;
  std::vector<int> sockets_{};
};

/// Of the last one, five and fifteen minutes.
std::string load_average();

}  // namespace mayfly::bench
