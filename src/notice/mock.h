#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "notice/cloud.h"

namespace mayfly {

/// A metadata service of this process, on loopback: says what the cloud's own would say to a machine. For rehearsals
/// and tests. It insists on what the real ones insist on: session tokens that have not expired (AWS), the header that
/// keeps strangers' requests out (GCP, Azure).
class MockMetadata {
 public:
  struct Options {
    Cloud cloud = Cloud::aws;
    std::string machine_name = "mayfly-drill";  ///< Azure
    int token_uses = 0;                         ///< AWS: a token expires after so many; 0: never
    bool gives_tokens = true;                   ///< AWS: false as where only version 1 is on
  };
  static Result<std::unique_ptr<MockMetadata>> open(Options options);
  ~MockMetadata();
  MockMetadata(const MockMetadata&) = delete;

  /// "http://127.0.0.1:40001"
  std::string endpoint() const;
  /// The machine will be taken in so long, by the wall clock.
  void announce(Seconds left);
  /// AWS: it is at risk.
  void recommend_rebalance();
  /// Azure: the same end, of another machine.
  void announce_for(const std::string& machine, Seconds left);
  /// Questions that were answered with what they asked for.
  int served() const;
  /// Questions that were turned away for want of a token or header.
  int refused() const;

 private:
  struct Parts;
  explicit MockMetadata(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace mayfly
