#include <sys/socket.h>

#include <array>

#include "fuzz/fuzz.h"
#include "support/token.h"
#include "train/peer_caches.h"
#include "train/shard_client.h"

// What a server or a cache of the run that has gone mad answers to a worker.
namespace {

using mayfly::Guest;
using mayfly::fuzz::require;

constexpr std::size_t kFloats = 16;

/// Whoever comes hears these bytes, whatever it asks.
mayfly::Result<void> babble(Guest& guest, std::string_view bytes) {
  const auto sent = guest.link.send_some(std::as_bytes(std::span(bytes)));
  if (!sent) return mayfly::unexpected(sent.error());
  ::shutdown(guest.link.awaited().fd, SHUT_WR);
  std::array<std::byte, 4096> ignored;
  while (guest.link.receive_into(ignored)) {
  }
  return {};
}

void ask_server(const std::string& address) {
  const auto client = mayfly::ShardClient::make(
      {.formation = 1, .shards = 1, .addresses = {address}, .credentials = mayfly::support::known(), .size = kFloats});
  if (!client->connect()) return;
  std::array<float, kFloats> weights{};
  const auto state = client->pull(0, weights);
  if (!state) return;
  require(*state >= 0, "a state is no older than what was asked for");
  client->begin_push(1, weights);
  client->push(0, kFloats / 2);
  static_cast<void>(client->finish_push());
}

void ask_cache(const std::string& address) {
  const auto caches = mayfly::TcpPeerCaches::open({.credentials = mayfly::support::known()}).value();
  caches->set_neighbours({.workers = {0, 1}, .addresses = {caches->address(), address}});
  std::vector<std::byte> sample;
  const auto there = caches->ask(1, 5, sample);
  require(there || !there.error().message.empty(), "an error has a message");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  const auto reception = mayfly::Reception::open({.credentials = mayfly::support::known()}, [&](Guest& guest) {
                           return babble(guest, text);
                         }).value();
  ask_server(reception->address());
  ask_cache(reception->address());
  return 0;
}
