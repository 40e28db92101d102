#include "train/shard_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "train/coverage.h"
#include "train/data_link.h"
#include "train/held_shard.h"
#include "train/log.h"
#include "train/staging.h"

namespace mayfly {
namespace {

using Kind = DataHeader::Kind;

/// For a stranger to prove that it is none, and to say what it wants.
constexpr Seconds kHello{5};

/// Someone at the other end, with a thread of its own.
struct Guest {
  std::unique_ptr<DataLink> link{};
  std::string name{};
  std::int64_t formation = -1;  ///< once it has said so; under the server's mutex
  std::atomic<bool> done = false;
  std::thread thread{};
};

/// A push that is not whole.
struct Incoming {
  std::int64_t lease = 0;
  PushBuffer buffer{};
  Coverage coverage{ShardRange{}};
};

class TcpShardServer final : public ShardServer {
 public:
  TcpShardServer(Options options, int listener, std::string address)
      : options_(std::move(options)), listener_(listener), address_(std::move(address)) {
    acceptor_ = std::thread([this] { accept_guests(); });
  }
  ~TcpShardServer() override;

  std::string address() const override { return address_; }
  std::unique_ptr<Shard> begin(std::int64_t formation, std::unique_ptr<Shard> shard, std::int64_t sample) override;
  Result<void> commit(const Commit& commit) override;
  void forget(const Forget& forget) override {
    if (forget.formation == formation_) staging_.forget(forget.leases);
  }
  void keep_copy() override { held_.keep_copy(); }
  Result<void> read_copy(std::int64_t formation, std::int64_t sample, std::span<std::byte> into) override;
  std::int64_t sample() const override { return held_.sample(); }

 private:
  void accept_guests();
  void admit(int socket, const sockaddr_in& from);
  /// Those who asked for a formation before this one; all where it is -1.
  void turn_out(std::int64_t formation);
  static void join(std::list<Guest>& guests);

  // A guest's thread.
  void turn_away(const Guest& guest, const std::string& why);
  void serve(Guest& guest);
  Result<ShardRange> meet(Guest& guest);
  Result<void> talk(Guest& guest, ShardRange range, std::optional<Incoming>& incoming);
  Result<void> take_push(Guest& guest, ShardRange range, const DataHeader& header, std::optional<Incoming>& incoming);
  Result<void> answer_pull(Guest& guest, const DataHeader& header);
  Result<void> answer_fetch(Guest& guest, const DataHeader& header);

  const Options options_;
  std::atomic<unsigned> strangers_ = 0;
  const int listener_;
  const std::string address_;
  std::int64_t formation_ = -1;  ///< of the owner's thread
  HeldShard held_{};
  Staging staging_{};

  std::mutex mutex_{};  ///< of the guests' list
  std::list<Guest> guests_{};
  bool over_ = false;
  std::thread acceptor_{};
};

TcpShardServer::~TcpShardServer() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  held_.await_formation(std::numeric_limits<std::int64_t>::max());
  turn_out(std::numeric_limits<std::int64_t>::max());
}

void TcpShardServer::accept_guests() {
  while (true) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const int socket = ::accept4(listener_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC);
    const int error = errno;
    {
      const std::lock_guard lock(mutex_);
      if (over_) {
        if (socket >= 0) ::close(socket);
        return;
      }
    }
    if (socket >= 0) {
      admit(socket, from);
    } else if (error != EINTR && error != ECONNABORTED) {
      log("accept: {}", std::strerror(error));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // out of descriptors: some will be closed
    }
  }
}

void TcpShardServer::admit(int socket, const sockaddr_in& from) {
  std::array<char, INET_ADDRSTRLEN> host{};
  ::inet_ntop(AF_INET, &from.sin_addr, host.data(), host.size());
  std::list<Guest> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = guests_.begin(); at != guests_.end();) {
      const auto next = std::next(at);
      if (at->done) gone.splice(gone.end(), guests_, at);
      at = next;
    }
    auto& guest = guests_.emplace_back();
    guest.link = std::make_unique<DataLink>(socket, options_.credentials, options_.network);
    guest.name = fmt::format("{}:{}", host.data(), ntohs(from.sin_port));
    guest.thread = std::thread([this, &guest] { serve(guest); });
  }
  join(gone);
}

void TcpShardServer::join(std::list<Guest>& guests) {
  for (auto& guest : guests) guest.thread.join();
}

void TcpShardServer::turn_out(std::int64_t formation) {
  std::list<Guest> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = guests_.begin(); at != guests_.end();) {
      const auto next = std::next(at);
      // Who has not spoken yet may be of the formation that begins.
      if (over_ || formation < 0 || (at->formation >= 0 && at->formation < formation)) {
        at->link->abort();
        gone.splice(gone.end(), guests_, at);
      }
      at = next;
    }
  }
  join(gone);
}

std::unique_ptr<Shard> TcpShardServer::begin(std::int64_t formation, std::unique_ptr<Shard> shard,
                                             std::int64_t sample) {
  formation_ = formation;
  held_.await_formation(formation);
  turn_out(formation);  // nobody reads the old shard any more
  staging_.begin(formation, shard ? shard->range().count : 0);
  return held_.replace(std::move(shard), sample);
}

Result<void> TcpShardServer::commit(const Commit& commit) {
  if (commit.formation != formation_) return fail("a commit of formation {}, this is {}", commit.formation, formation_);
  if (commit.from != held_.sample())
    return fail("a commit from sample {} to {}, it is at {}", commit.from, commit.sample, held_.sample());
  if (commit.leases.empty()) return fail("a commit to sample {} without leases", commit.sample);
  auto pushes = staging_.take(commit.leases);
  if (!pushes) return unexpected(pushes.error());
  std::vector<std::span<const float>> values;
  for (const auto& push : *pushes) values.emplace_back(push.span());
  held_.apply(values, commit.sample, commit.step, commit.workers);
  for (auto& push : *pushes) staging_.give_back(std::move(push));
  return {};
}

Result<void> TcpShardServer::read_copy(std::int64_t formation, std::int64_t sample, std::span<std::byte> into) {
  const auto copy = held_.copy(formation, sample, [] { return true; });
  if (!copy) return unexpected(copy.error());
  if ((*copy)->bytes.size() != into.size()) return fail("{} bytes, want {}", (*copy)->bytes.size(), into.size());
  std::memcpy(into.data(), (*copy)->bytes.data(), into.size());
  return {};
}

void TcpShardServer::serve(Guest& guest) {
  if (auto proven = guest.link->prove(kHello); !proven) {
    turn_away(guest, proven.error().message);
  } else {
    std::optional<Incoming> incoming;
    auto range = meet(guest);
    auto talked = range ? talk(guest, *range, incoming) : Result<void>(unexpected(range.error()));
    // What it did not finish is lost with it; what it finished stays.
    if (incoming) staging_.give_back(std::move(incoming->buffer));
    if (!talked) log("connection from {} dropped: {}", guest.name, talked.error().message);
  }
  guest.link->abort();
  guest.done = true;
}

/// Ten thousand of them fill no log.
void TcpShardServer::turn_away(const Guest& guest, const std::string& why) {
  const auto number = strangers_.fetch_add(1) + 1;
  if (std::has_single_bit(number))
    log("{} connections of strangers so far; the last from {}: {}", number, guest.name, why);
}

Result<ShardRange> TcpShardServer::meet(Guest& guest) {
  auto& link = *guest.link;
  link.limit_silence(kHello);
  const auto hello = link.receive();
  if (!hello) return unexpected(hello.error());
  if (!*hello || (*hello)->kind != Kind::hello || (*hello)->count != 0) return fail("it did not say hello");
  link.limit_silence(std::nullopt);
  const auto formation = (*hello)->formation;
  if (formation < 0) return fail("formation {}", formation);
  {
    const std::lock_guard lock(mutex_);
    guest.formation = formation;
  }
  auto range = held_.range(formation, [&] { return link.hung_up(); });
  if (!range) return range;
  const DataHeader welcome{.kind = Kind::welcome, .formation = formation, .first = range->first, .count = range->count};
  if (auto said = link.send(welcome); !said) return unexpected(said.error());
  return range;
}

Result<void> TcpShardServer::talk(Guest& guest, ShardRange range, std::optional<Incoming>& incoming) {
  while (true) {
    const auto received = guest.link->receive();
    if (!received) return unexpected(received.error());
    if (!*received) return {};
    const auto& header = **received;
    if (header.formation != guest.formation)
      return fail("formation {} on a connection of {}", header.formation, guest.formation);
    Result<void> done = fail("a message of kind {}", static_cast<unsigned>(header.kind));
    if (header.kind == Kind::push) done = take_push(guest, range, header, incoming);
    if (header.kind == Kind::pull) done = answer_pull(guest, header);
    if (header.kind == Kind::fetch) done = answer_fetch(guest, header);
    if (!done) return done;
  }
}

Result<void> TcpShardServer::take_push(Guest& guest, ShardRange range, const DataHeader& header,
                                       std::optional<Incoming>& incoming) {
  if (!incoming) incoming = Incoming{.lease = header.number, .buffer = staging_.buffer(), .coverage = Coverage(range)};
  if (incoming->lease != header.number)
    return fail("lease {} pushed before all of lease {}", header.number, incoming->lease);
  if (incoming->buffer.size != range.count) return fail("the formation is over");
  if (!incoming->coverage.add({.first = header.first, .count = header.count}))
    return fail("floats {} + {} of lease {}: pushed already, or not in {} + {}", header.first, header.count,
                header.number, range.first, range.count);
  const auto place = incoming->buffer.span().subspan(header.first - range.first, header.count);
  if (auto received = guest.link->receive_into(std::as_writable_bytes(place)); !received) return received;
  if (!incoming->coverage.complete()) return {};
  const auto lease = incoming->lease;
  if (!staging_.keep(header.formation, lease, std::move(incoming->buffer))) return fail("the formation is over");
  incoming.reset();
  return guest.link->send({.kind = Kind::staged, .formation = header.formation, .number = lease});
}

Result<void> TcpShardServer::answer_pull(Guest& guest, const DataHeader& header) {
  auto& link = *guest.link;
  const auto reading = held_.read(header.formation, header.number, [&] { return link.hung_up(); });
  if (!reading) return unexpected(reading.error());
  auto& state = **reading;
  const auto size = state.with([](std::span<const float> weights) { return weights.size(); });
  if (auto said =
          link.send({.kind = Kind::weights, .formation = header.formation, .number = state.sample(), .count = size});
      !said)
    return said;
  // Waiting happens between the pieces, never within with(): an update may be on its way.
  for (std::size_t at = 0; at < size * sizeof(float);) {
    const auto sent =
        state.with([&](std::span<const float> weights) { return link.send_some(std::as_bytes(weights).subspan(at)); });
    if (!sent) return unexpected(sent.error());
    at += *sent;
    if (*sent > 0 && options_.network) options_.network->out.pass(*sent);
    if (*sent > 0) continue;
    if (auto room = link.await_room(); !room) return room;
  }
  return {};
}

Result<void> TcpShardServer::answer_fetch(Guest& guest, const DataHeader& header) {
  auto& link = *guest.link;
  const auto copy = held_.copy(header.formation, header.number, [&] { return link.hung_up(); });
  if (!copy) return unexpected(copy.error());
  const auto& bytes = (*copy)->bytes;
  if (bytes.size() != header.count) return fail("a state of {} bytes asked for, it has {}", header.count, bytes.size());
  return link.send({.kind = Kind::state, .formation = header.formation, .number = header.number, .count = bytes.size()},
                   bytes);
}

}  // namespace

Result<std::unique_ptr<ShardServer>> ShardServer::open(Options options) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, options.address.c_str(), &place.sin_addr) != 1)
    return fail("'{}' is no IPv4 address to listen on", options.address);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof place;
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&place), size) != 0 ||
      ::listen(listener, SOMAXCONN) != 0 || ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size) != 0) {
    const int error = errno;
    if (listener >= 0) ::close(listener);
    return fail("listening on {}: {}", options.address, std::strerror(error));
  }
  auto address = fmt::format("{}:{}", options.address, ntohs(place.sin_port));
  return std::make_unique<TcpShardServer>(std::move(options), listener, std::move(address));
}

}  // namespace mayfly
