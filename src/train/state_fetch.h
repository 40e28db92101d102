#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/result.h"
#include "train/abortable.h"
#include "train/data_link.h"

namespace mayfly {

/// Takes a shard's whole state from another server. One fetch at a time.
class StateFetch final : public Abortable {
 public:
  StateFetch(Credentials credentials, std::shared_ptr<EmulatedNetwork> network)
      : credentials_(std::move(credentials)), network_(std::move(network)) {}

  /// From the server at this address, which holds the shard in this formation: exactly the state of `sample`, be it the
  /// present one or a copy that was kept. Waits for the server to get there. Where it fails `into` is garbage.
  Result<void> fetch(const std::string& address, std::int64_t formation, std::int64_t sample,
                     std::span<std::byte> into);
  void abort() override;

 private:
  static Result<void> receive(DataLink& link, std::int64_t formation, std::int64_t sample, std::span<std::byte> into);

  const Credentials credentials_;
  const std::shared_ptr<EmulatedNetwork> network_;
  std::mutex mutex_{};
  bool over_ = false;
  std::shared_ptr<DataLink> link_{};
};

/// The first words of a connection to a server, and the part of the parameters that it says it holds.
Result<DataHeader> greet(DataLink& link, std::int64_t formation);

}  // namespace mayfly
