#include <sys/socket.h>

#include <array>
#include <cstring>

#include "data/partitioned_samples.h"
#include "fuzz/fuzz.h"
#include "support/plain_shard.h"
#include "support/token.h"
#include "train/peer_caches.h"
#include "train/shard_server.h"

// What a process of the run that has gone mad says to a server, and to the cache of a worker.
namespace {

using mayfly::DataHeader;
using mayfly::fuzz::require;

constexpr std::size_t kFloats = 64;
constexpr std::int64_t kFormation = 3;

struct NoStorage final : mayfly::RawSamples {
  mayfly::Result<void> raw(std::int64_t, std::vector<std::byte>&) override { return mayfly::fail("none"); }
  mayfly::SourceCounts counts() const override { return {}; }
};

/// A sample that never comes whole takes the memory it is said to have, which takes long.
bool promises_much(std::string_view bytes) {
  for (std::size_t at = 0; bytes.size() - at >= sizeof(DataHeader);) {
    DataHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    at += sizeof header;
    if (header.kind != DataHeader::Kind::give) continue;
    if (header.count > bytes.size() - at) return header.count > (1 << 16);
    at += header.count;
  }
  return false;
}

/// Says it all and hears the answers out, or until nothing more comes.
void say(const std::string& address, std::string_view bytes) {
  static const auto credentials = mayfly::support::known();
  mayfly::DataLink link(credentials, nullptr);
  const auto met = link.connect(address, mayfly::kLinkPatience);
  require(met.has_value(), "who belongs to the run is let in");
  const int socket = link.awaited().fd;
  static_cast<void>(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  ::shutdown(socket, SHUT_WR);
  link.limit_silence(mayfly::Seconds(0.02));
  std::array<char, 4096> heard;
  while (::recv(socket, heard.data(), heard.size(), 0) > 0) {
  }
}

void to_server(std::string_view bytes) {
  const auto server = mayfly::ShardServer::open({.credentials = mayfly::support::known()}).value();
  server->begin(kFormation, std::make_unique<mayfly::support::PlainShard>(kFloats, 0, 1), 0);
  server->keep_copy();
  say(server->address(), bytes);
  static_cast<void>(server->commit({.formation = kFormation, .from = 0, .sample = 10, .leases = {1}}));
  require(server->sample() == 0 || server->sample() == 10, "only the controller moves the state");
  require(server->begin(-1, nullptr, 0) != nullptr, "the shard is still there");
}

void to_cache(std::string_view bytes) {
  const auto caches = mayfly::TcpPeerCaches::open({.credentials = mayfly::support::known()}).value();
  if (promises_much(bytes)) return;
  NoStorage storage;
  mayfly::SampleCache cache(1 << 12);
  mayfly::PartitionedSamples samples(cache, storage, *caches);
  samples.set_members(0, {0});
  caches->serve(&samples);
  say(caches->address(), bytes);
  caches->serve(nullptr);
  require(cache.bytes() <= cache.capacity(), "a cache holds no more than it may");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  to_server(text);
  to_cache(text);
  return 0;
}
