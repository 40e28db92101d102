#include "train/shard_server.h"

#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "train/coverage.h"
#include "train/held_shard.h"
#include "train/staging.h"
#include "train/turns.h"

namespace mayfly {
namespace {

using Kind = DataHeader::Kind;

/// For a guest to say what it wants.
constexpr Seconds kHello{5};
/// Smaller answers are not worth a place in the line.
constexpr std::size_t kWorthATurn = 128 << 10;
/// The next one begins while that much is still on its way.
constexpr std::size_t kOnItsWay = 64 << 10;
constexpr std::chrono::microseconds kLookAgain{100}, kLookSeldom{2000};

/// A push that is not whole.
struct Incoming {
  std::int64_t lease = 0;
  PushBuffer buffer{};
  Coverage coverage{ShardRange{}};
};

/// What a guest's thread knows.
struct Visit {
  Guest& guest;
  ShardRange range{};
  std::optional<Incoming> incoming{};
  LinkLoad::Own own{};
};

class TcpShardServer final : public ShardServer {
 public:
  explicit TcpShardServer(Options options) : options_(std::move(options)) {}
  ~TcpShardServer() override;

  Result<void> listen();
  std::string address() const override { return reception_->address(); }
  std::unique_ptr<Shard> begin(std::int64_t formation, std::unique_ptr<Shard> shard, std::int64_t sample) override;
  Result<void> commit(const Commit& commit) override;
  void forget(const Forget& forget) override {
    if (forget.formation == formation_) staging_.forget(forget.leases);
  }
  void keep_copy() override { held_.keep_copy(); }
  Result<void> read_copy(std::int64_t formation, std::int64_t sample, std::span<std::byte> into) override;
  std::int64_t sample() const override { return held_.sample(); }

 private:
  // A guest's thread.
  Result<void> serve(Guest& guest);
  Result<ShardRange> meet(Guest& guest);
  Result<void> talk(Visit& visit);
  Result<void> take_push(Visit& visit, const DataHeader& header);
  Result<void> answer_pull(Visit& visit, const DataHeader& header);
  Result<void> send_weights(DataLink& link, HeldShard::Reading& state, Turns::Turn* turn);
  static Result<std::size_t> note_arrived(DataLink& link, std::size_t sent, Turns::Turn& turn);
  static Result<void> await_arrival(DataLink& link, std::size_t size, Turns::Turn& turn);
  Result<void> answer_fetch(Guest& guest, const DataHeader& header);

  const Options options_;
  std::int64_t formation_ = -1;  ///< of the owner's thread
  HeldShard held_{};
  Staging staging_{};
  Turns turns_{};
  std::unique_ptr<Reception> reception_{};  ///< whose threads use all of the above
};

Result<void> TcpShardServer::listen() {
  auto reception = Reception::open(options_, [this](Guest& guest) { return serve(guest); });
  if (!reception) return unexpected(reception.error());
  reception_ = std::move(*reception);
  return {};
}

TcpShardServer::~TcpShardServer() {
  if (reception_) reception_->close();
  held_.await_formation(std::numeric_limits<std::int64_t>::max());
}

std::unique_ptr<Shard> TcpShardServer::begin(std::int64_t formation, std::unique_ptr<Shard> shard,
                                             std::int64_t sample) {
  formation_ = formation;
  held_.await_formation(formation);
  // No guest reads the old shard any more. One that has not spoken yet may be of the formation that begins.
  reception_->turn_out(
      [&](const Guest& guest) { return formation < 0 || (guest.formation >= 0 && guest.formation < formation); });
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

Result<void> TcpShardServer::serve(Guest& guest) {
  const auto range = meet(guest);
  if (!range) return unexpected(range.error());
  Visit visit{.guest = guest, .range = *range};
  auto talked = talk(visit);
  // What it did not finish is lost with it; what it finished stays.
  if (visit.incoming) staging_.give_back(std::move(visit.incoming->buffer));
  return talked;
}

Result<ShardRange> TcpShardServer::meet(Guest& guest) {
  auto& link = guest.link;
  link.limit_silence(kHello);
  const auto hello = link.receive();
  if (!hello) return unexpected(hello.error());
  if (!*hello || (*hello)->kind != Kind::hello || (*hello)->count != 0) return fail("it did not say hello");
  link.limit_silence(std::nullopt);
  const auto formation = (*hello)->formation;
  if (formation < 0) return fail("formation {}", formation);
  guest.formation = formation;
  auto range = held_.range(formation, [&] { return link.hung_up(); });
  if (!range) return range;
  const DataHeader welcome{.kind = Kind::welcome, .formation = formation, .first = range->first, .count = range->count};
  if (auto said = link.send(welcome); !said) return unexpected(said.error());
  return range;
}

Result<void> TcpShardServer::talk(Visit& visit) {
  while (true) {
    const auto received = visit.guest.link.receive();
    if (!received) return unexpected(received.error());
    if (!*received) return {};
    const auto& header = **received;
    if (header.formation != visit.guest.formation)
      return fail("formation {} on a connection of {}", header.formation, visit.guest.formation.load());
    Result<void> done = fail("a message of kind {}", static_cast<unsigned>(header.kind));
    if (header.kind == Kind::push) done = take_push(visit, header);
    if (header.kind == Kind::pull) done = answer_pull(visit, header);
    if (header.kind == Kind::fetch) done = answer_fetch(visit.guest, header);
    if (!done) return done;
  }
}

Result<void> TcpShardServer::take_push(Visit& visit, const DataHeader& header) {
  auto& [guest, range, incoming, own] = visit;
  if (!incoming) incoming = Incoming{.lease = header.number, .buffer = staging_.buffer(), .coverage = Coverage(range)};
  if (incoming->lease != header.number)
    return fail("lease {} pushed before all of lease {}", header.number, incoming->lease);
  if (incoming->buffer.size != range.count) return fail("the formation is over");
  if (!incoming->coverage.add({.first = header.first, .count = header.count}))
    return fail("floats {} + {} of lease {}: pushed already, or not in {} + {}", header.first, header.count,
                header.number, range.first, range.count);
  const auto place = incoming->buffer.span().subspan(header.first - range.first, header.count);
  if (auto received = guest.link.receive_into(std::as_writable_bytes(place)); !received) return received;
  if (!incoming->coverage.complete()) return {};
  const auto lease = incoming->lease;
  if (!staging_.keep(header.formation, lease, std::move(incoming->buffer))) return fail("the formation is over");
  incoming.reset();
  return guest.link.send({.kind = Kind::staged, .formation = header.formation, .number = lease});
}

Result<void> TcpShardServer::answer_pull(Visit& visit, const DataHeader& header) {
  auto& link = visit.guest.link;
  const auto gone = [&] { return link.hung_up(); };
  std::unique_ptr<Turns::Turn> turn;
  if (visit.range.count * sizeof(float) >= kWorthATurn) {
    // A guest whose state is not there yet does not stand in the line.
    if (const auto there = held_.read(header.formation, header.number, gone); !there) return unexpected(there.error());
    turn = turns_.take(visit.own, gone);
    if (!turn) return fail("it was not waited for");
  }
  auto reading = held_.read(header.formation, header.number, gone);
  if (!reading) return unexpected(reading.error());
  if (auto said = link.send({.kind = Kind::weights,
                             .formation = header.formation,
                             .number = (*reading)->sample(),
                             .count = visit.range.count});
      !said)
    return said;
  auto sent = send_weights(link, **reading, turn.get());
  reading->reset();  // an update need not spare what the system has taken
  return !sent || !turn ? sent : await_arrival(link, visit.range.count * sizeof(float), *turn);
}

Result<void> TcpShardServer::send_weights(DataLink& link, HeldShard::Reading& state, Turns::Turn* turn) {
  const auto size = state.with([](std::span<const float> weights) { return weights.size_bytes(); });
  // Waiting happens between the pieces, never within with(): an update may be on its way.
  for (std::size_t at = 0; at < size;) {
    const auto sent =
        state.with([&](std::span<const float> weights) { return link.send_some(std::as_bytes(weights).subspan(at)); });
    if (!sent) return unexpected(sent.error());
    at += *sent;
    if (*sent > 0 && options_.network) options_.network->out.pass(*sent);
    if (turn != nullptr) {
      if (auto left = note_arrived(link, at, *turn); !left) return unexpected(left.error());
    }
    if (*sent > 0) continue;
    if (auto room = link.await_room(); !room) return room;
  }
  return {};
}

/// What has not arrived yet of what was sent.
Result<std::size_t> TcpShardServer::note_arrived(DataLink& link, std::size_t sent, Turns::Turn& turn) {
  auto left = link.unsent();
  if (left && *left < sent) turn.arrived(sent - *left);
  return left;
}

/// The system takes megabytes at once; the link is free when they are through. A guest that stands still is not waited
/// for.
Result<void> TcpShardServer::await_arrival(DataLink& link, std::size_t size, Turns::Turn& turn) {
  auto least = size;
  auto pause = kLookAgain;
  for (auto since = Turns::Clock::now(); Turns::Clock::now() - since < Turns::kStandstill;) {
    const auto left = note_arrived(link, size, turn);
    if (!left) return unexpected(left.error());
    if (*left <= kOnItsWay) break;
    if (*left < std::exchange(least, std::min(least, *left))) since = Turns::Clock::now();
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLookSeldom);
  }
  return {};
}

Result<void> TcpShardServer::answer_fetch(Guest& guest, const DataHeader& header) {
  auto& link = guest.link;
  const auto copy = held_.copy(header.formation, header.number, [&] { return link.hung_up(); });
  if (!copy) return unexpected(copy.error());
  const auto& bytes = (*copy)->bytes;
  if (bytes.size() != header.count) return fail("a state of {} bytes asked for, it has {}", header.count, bytes.size());
  return link.send({.kind = Kind::state, .formation = header.formation, .number = header.number, .count = bytes.size()},
                   bytes);
}

}  // namespace

Result<std::unique_ptr<ShardServer>> ShardServer::open(Options options) {
  auto server = std::make_unique<TcpShardServer>(std::move(options));
  if (auto listens = server->listen(); !listens) return unexpected(listens.error());
  return server;
}

}  // namespace mayfly
