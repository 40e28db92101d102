#include "train/shard_server.h"

#include <cstring>
#include <limits>
#include <utility>

#include "train/coverage.h"
#include "train/held_shard.h"
#include "train/staging.h"

namespace mayfly {
namespace {

using Kind = DataHeader::Kind;

/// For a guest to say what it wants.
constexpr Seconds kHello{5};

/// A push that is not whole.
struct Incoming {
  std::int64_t lease = 0;
  PushBuffer buffer{};
  Coverage coverage{ShardRange{}};
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
  Result<void> talk(Guest& guest, ShardRange range, std::optional<Incoming>& incoming);
  Result<void> take_push(Guest& guest, ShardRange range, const DataHeader& header, std::optional<Incoming>& incoming);
  Result<void> answer_pull(Guest& guest, const DataHeader& header);
  Result<void> answer_fetch(Guest& guest, const DataHeader& header);

  const Options options_;
  std::int64_t formation_ = -1;  ///< of the owner's thread
  HeldShard held_{};
  Staging staging_{};
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
  // Nobody reads the old shard any more. Who has not spoken yet may be of the formation that begins.
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
  std::optional<Incoming> incoming;
  auto range = meet(guest);
  auto talked = range ? talk(guest, *range, incoming) : Result<void>(unexpected(range.error()));
  // What it did not finish is lost with it; what it finished stays.
  if (incoming) staging_.give_back(std::move(incoming->buffer));
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

Result<void> TcpShardServer::talk(Guest& guest, ShardRange range, std::optional<Incoming>& incoming) {
  while (true) {
    const auto received = guest.link.receive();
    if (!received) return unexpected(received.error());
    if (!*received) return {};
    const auto& header = **received;
    if (header.formation != guest.formation)
      return fail("formation {} on a connection of {}", header.formation, guest.formation.load());
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
  if (auto received = guest.link.receive_into(std::as_writable_bytes(place)); !received) return received;
  if (!incoming->coverage.complete()) return {};
  const auto lease = incoming->lease;
  if (!staging_.keep(header.formation, lease, std::move(incoming->buffer))) return fail("the formation is over");
  incoming.reset();
  return guest.link.send({.kind = Kind::staged, .formation = header.formation, .number = lease});
}

Result<void> TcpShardServer::answer_pull(Guest& guest, const DataHeader& header) {
  auto& link = guest.link;
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
