#include "train/mesh.h"

#include <arpa/inet.h>
#include <gloo/allreduce.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/text.h"
#include "train/endable_pairs.h"
#include "train/reach.h"

// gloo asks each new connection for its peer in a thread where its own exception ends the process, and there is none to
// name where the peer has gone again already. Called from libgloo in place of the system's: answers with no address
// then, and gloo finds the end of the connection when it reads.
extern "C" int getpeername(int descriptor, sockaddr* __restrict address, socklen_t* __restrict size) noexcept {
  const socklen_t room = *size;
  if (::syscall(SYS_getpeername, descriptor, address, size) == 0) return 0;
  if (errno != ENOTCONN || room < sizeof(sockaddr_in)) return -1;
  int listens = 0;
  socklen_t listens_size = sizeof listens;
  ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size);
  if (listens != 0) {
    errno = ENOTCONN;
    return -1;
  }
  *reinterpret_cast<sockaddr_in*>(address) = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {0}, .sin_zero = {}};
  *size = sizeof(sockaddr_in);
  return 0;
}

namespace mayfly {
namespace {

namespace tcp = gloo::transport::tcp;

/// gloo's own patience is no help: a slow peer is not a dead one. Who is lost the controller says, and abort() ends the
/// waiting.
constexpr std::chrono::hours kPatience{24};

/// What gloo's algorithms take; gloo would connect it through a key-value store, where waiting cannot be ended.
class Connected : public gloo::Context {
 public:
  Connected(int own_rank, int all, std::shared_ptr<gloo::transport::Device> device,
            std::shared_ptr<gloo::transport::Context> pairs)
      : gloo::Context(own_rank, all) {
    device_ = std::move(device);
    transportContext_ = std::move(pairs);
    setTimeout(kPatience);
  }
};

/// Runs what may throw: gloo does for everything that goes wrong.
template <class Work>
Result<void> guarded(const char* what, Work work) {
  try {
    work();
    return {};
  } catch (const std::exception& error) {
    std::string_view reason = error.what();
    // "[.../pair.cc:598] Connection closed by peer": the place in gloo's source helps no reader.
    if (const auto end = reason.find("] "); reason.starts_with("[") && end != reason.npos)
      reason.remove_prefix(end + 2);
    return fail("{}: {}", what, reason);
  }
}

sockaddr_in socket_of(const gloo::transport::Address& address) {
  const tcp::Address copy(dynamic_cast<const tcp::Address&>(address));  // gloo's thread may be at it: copying locks
  return reinterpret_cast<const sockaddr_in&>(copy.getSockaddr());
}

/// Where the worker of this word awaits `rank`.
Result<sockaddr_in> door(const std::string& word, int rank, int size) {
  const auto colon = word.rfind(':');
  sockaddr_in socket{};
  socket.sin_family = AF_INET;
  if (colon == word.npos || ::inet_pton(AF_INET, word.substr(0, colon).c_str(), &socket.sin_addr) != 1)
    return fail("'{}' is no place of a peer", word.substr(0, 60));
  const auto ports = split(std::string_view(word).substr(colon + 1), ',');
  const auto port = ports.size() == static_cast<std::size_t>(size) ? parse_integer(ports[rank]) : std::nullopt;
  if (!port || *port < 1 || *port > 65535) return fail("'{}' has no door for rank {}", word.substr(0, 60), rank);
  socket.sin_port = htons(static_cast<std::uint16_t>(*port));
  return socket;
}

}  // namespace

struct NetworkDevice::Parts {
  std::shared_ptr<gloo::transport::Device> device{};
  Doorstep doorstep{};
};

NetworkDevice::NetworkDevice(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
NetworkDevice::~NetworkDevice() = default;

Result<std::unique_ptr<NetworkDevice>> NetworkDevice::open(const std::string& interface) {
  auto parts = std::make_unique<Parts>();
  const auto opened = guarded("network interface", [&] {
    tcp::attr attr;
    attr.iface = interface;
    attr.ai_family = AF_INET;
    parts->device = tcp::CreateDevice(attr);
  });
  if (!opened) return fail("network interface '{}': {}", interface, opened.error().message);
  return std::unique_ptr<NetworkDevice>(new NetworkDevice(std::move(parts)));
}

// How waiting is ended: gloo's time limits are the same for slow and dead peers, so abort() ends the waits in its
// buffers. While connections are being made there are none: closing the one pair that is waited for wakes its waiter.
struct Mesh::Parts {
  Place place{};
  std::shared_ptr<gloo::transport::Context> pairs{};
  std::shared_ptr<Connected> context{};
  std::string word{};
  std::uint32_t tag = 1;

  std::shared_ptr<OpenBuffers> buffers = std::make_shared<OpenBuffers>();

  std::mutex mutex{};
  int awaited = -1;  ///< rank whose connection is being made; the mutex is its

  template <class Do>
  void each_peer(Do act) {
    for (int rank = 0; rank < place.size; ++rank) {
      if (rank != place.rank) act(rank);
    }
  }
  std::string door_word(int doorstep);
  void connect(std::span<const sockaddr_in> doors);
  void greet();
  template <class T>
  Result<void> sum(std::span<T> values);
  bool await(int rank);
  /// Returns whether a thread was waiting for a connection to be made.
  bool end();
  /// After a failure no other worker must wait for this one.
  Result<void> settled(Result<void> result);
};

std::string Mesh::Parts::door_word(int doorstep) {
  std::array<char, INET_ADDRSTRLEN> host = {"127.0.0.1"};
  std::string ports;
  for (int rank = 0; rank < place.size; ++rank) {
    int port = doorstep;
    if (rank != place.rank) {
      const sockaddr_in socket = socket_of(pairs->getPair(rank)->address());
      ::inet_ntop(AF_INET, &socket.sin_addr, host.data(), host.size());
      port = ntohs(socket.sin_port);
    }
    ports += fmt::format("{}{}", rank > 0 ? "," : "", port);
  }
  return std::string(host.data()) + ":" + ports;
}

bool Mesh::Parts::await(int rank) {
  const std::lock_guard lock(mutex);
  awaited = buffers->over() ? -1 : rank;
  return !buffers->over();
}

bool Mesh::Parts::end() {
  const std::lock_guard lock(mutex);
  buffers->end();
  if (awaited >= 0) pairs->getPair(awaited)->close();
  return awaited >= 0;
}

Result<void> Mesh::Parts::settled(Result<void> result) {
  if (result && buffers->over()) result = fail("the formation is over");
  {
    const std::lock_guard lock(mutex);
    awaited = -1;
  }
  if (!result) {
    end();
    each_peer([&](int rank) { pairs->getPair(rank)->close(); });
  }
  return result;
}

void Mesh::Parts::connect(std::span<const sockaddr_in> doors) {
  each_peer([&](int rank) {
    const auto* socket = reinterpret_cast<const sockaddr*>(&doors[rank]);
    if (await(rank)) pairs->getPair(rank)->connect(tcp::Address(socket, sizeof doors[rank]).bytes());
  });
  if (!await(-1)) throw std::runtime_error("the formation is over");
}

/// A port may have had another owner a moment ago, and a late worker knock at the wrong door.
void Mesh::Parts::greet() {
  using Greeting = std::array<std::int64_t, 3>;  // formation, from, to
  std::vector<Greeting> own(place.size), theirs(place.size);
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sent, received;
  each_peer([&](int rank) {
    own[rank] = {place.formation, place.rank, rank};
    sent.push_back(context->createUnboundBuffer(own[rank].data(), sizeof(Greeting)));
    received.push_back(context->createUnboundBuffer(theirs[rank].data(), sizeof(Greeting)));
    sent.back()->send(rank, 0);
    received.back()->recv(rank, 0);
  });
  for (auto& buffer : received) buffer->waitRecv();
  for (auto& buffer : sent) buffer->waitSend();
  each_peer([&](int rank) {
    if (theirs[rank] != Greeting{place.formation, rank, place.rank})
      throw std::runtime_error(
          fmt::format("rank {} of formation {} stands at the door of rank {}", theirs[rank][1], theirs[rank][0], rank));
  });
}

template <class T>
Result<void> Mesh::Parts::sum(std::span<T> values) {
  if (place.size == 1 || values.empty()) return settled({});
  return settled(guarded("exchange", [&] {
    gloo::AllreduceOptions options(context);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<T>));
    options.setTag(tag++);
    options.setTimeout(kPatience);
    gloo::allreduce(options);
  }));
}

Mesh::Mesh(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Mesh::~Mesh() = default;

Result<std::unique_ptr<Mesh>> Mesh::open(NetworkDevice& network, Place place) {
  auto parts = std::make_unique<Parts>();
  parts->place = place;
  const auto opened = guarded("open a mesh", [&] {
    auto& device = network.parts().device;
    parts->pairs = device->createContext(place.rank, place.size);
    parts->pairs->setTimeout(kPatience);
    parts->each_peer([&](int rank) { parts->pairs->createPair(rank); });
    parts->context = std::make_shared<Connected>(place.rank, place.size, device,
                                                 std::make_shared<EndablePairs>(parts->pairs, parts->buffers));
    parts->word = parts->door_word(network.parts().doorstep.port());
  });
  if (!opened) return unexpected(opened.error());
  return std::unique_ptr<Mesh>(new Mesh(std::move(parts)));
}

const std::string& Mesh::word() const { return parts_->word; }

Result<void> Mesh::connect(std::span<const std::string> words) {
  const auto& place = parts_->place;
  if (words.size() != static_cast<std::size_t>(place.size))
    return fail("{} places of peers for a formation of {}", words.size(), place.size);
  std::vector<sockaddr_in> doors(place.size);
  for (int rank = 0; rank < place.size; ++rank) {
    if (rank == place.rank) continue;
    auto found = door(words[rank], place.rank, place.size);
    if (!found) return unexpected(found.error());
    doors[rank] = *found;
  }
  return parts_->settled(guarded("connect", [&] {
    parts_->connect(doors);
    parts_->greet();
    // gloo waits for ever for a peer whose machine is out of reach.
    limit_silence_of_all();
  }));
}

std::vector<std::string> Mesh::doorsteps(std::span<const std::string> words) const {
  std::vector<std::string> places;
  for (int rank = 0; rank < static_cast<int>(words.size()); ++rank) {
    const auto found = door(words[rank], rank, parts_->place.size);
    const bool other = rank != parts_->place.rank && found;
    places.push_back(other ? fmt::format("{}:{}", words[rank].substr(0, words[rank].rfind(':')), ntohs(found->sin_port))
                           : "");
  }
  return places;
}

Result<void> Mesh::sum(std::span<float> values) { return parts_->sum(values); }
Result<void> Mesh::sum(std::span<double> values) { return parts_->sum(values); }

Result<void> Mesh::hand_over(int source, std::span<const int> receivers, std::span<const std::span<std::byte>> parts) {
  const int rank = parts_->place.rank;
  const bool sends = rank == source;
  const bool receives = !sends && std::find(receivers.begin(), receivers.end(), rank) != receivers.end();
  const std::uint64_t first = std::uint64_t{1} << 40;  // away from the tags of sums
  if (!sends && !receives) return {};
  return parts_->settled(guarded("hand over", [&] {
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty()) continue;
      const auto begin = [&](int peer) {
        auto& buffer = buffers.emplace_back(parts_->context->createUnboundBuffer(parts[i].data(), parts[i].size()));
        sends ? buffer->send(peer, first + i) : buffer->recv(peer, first + i);
      };
      if (receives) begin(source);
      for (const int receiver : receivers) {
        if (sends && receiver != source) begin(receiver);
      }
    }
    for (auto& buffer : buffers) sends ? buffer->waitSend() : buffer->waitRecv();
  }));
}

void Mesh::abort() {
  // A pair that is closed just before it is awaited opens again: repeated until the waiter has seen it.
  while (parts_->end()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace mayfly
