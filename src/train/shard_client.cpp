#include "train/shard_client.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "base/check.h"
#include "train/coverage.h"
#include "train/data_link.h"
#include "train/state_fetch.h"

namespace mayfly {
namespace {

using Kind = DataHeader::Kind;

struct PullJob {
  std::int64_t sample = 0;
  std::span<float> into{};
};
struct PushJob {
  std::int64_t lease = 0;
  ShardRange part{};
  std::span<const float> values{};
};
struct AckJob {
  std::int64_t lease = 0;
};
using Job = std::variant<PullJob, PushJob, AckJob>;

/// One server and the thread that does everything with it.
struct Peer {
  std::string address{};
  std::unique_ptr<DataLink> link{};
  ShardRange range{};
  bool pulls = false;  ///< of the servers of this shard, the one to pull from

  // Under the client's mutex.
  std::deque<Job> jobs{};
  bool busy = false;
  std::int64_t state = 0;  ///< of the last pull
  std::thread thread{};
};

class TcpShardClient final : public ShardClient {
 public:
  explicit TcpShardClient(Options options);
  ~TcpShardClient() override;

  Result<void> connect() override;
  Result<std::int64_t> pull(std::int64_t sample, std::span<float> weights) override;
  void begin_push(std::int64_t lease, std::span<const float> values) override;
  void push(std::size_t first, std::size_t count) override;
  Result<void> finish_push() override;
  void abort() override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  Result<void> meet(Peer& peer);
  void live(Peer& peer);
  Result<void> carry_out(Peer& peer, const Job& job);
  Result<void> pull_from(Peer& peer, const PullJob& job);
  Result<void> await_ack(Peer& peer, const AckJob& job);
  void queue(Peer& peer, Job job);
  void queue_part(ShardRange part);
  Result<void> await_all();
  void end(const std::string& why);

  const Options options_;
  std::int64_t lease_ = 0;
  std::span<const float> values_{};
  Coverage pushed_{ShardRange{}};

  std::mutex mutex_{};
  std::condition_variable work_{}, done_{};
  bool over_ = false;
  std::string why_{};
  std::vector<Peer> peers_;
};

TcpShardClient::TcpShardClient(Options options) : options_(std::move(options)) {
  for (int shard = 0; shard < options_.shards; ++shard) {
    std::vector<std::string> alike;
    for (std::size_t at = static_cast<std::size_t>(shard); at < options_.addresses.size();
         at += static_cast<std::size_t>(options_.shards)) {
      if (!options_.addresses[at].empty()) alike.push_back(options_.addresses[at]);
    }
    for (std::size_t i = 0; i < alike.size(); ++i)
      peers_.push_back({.address = alike[i],
                        .link = std::make_unique<DataLink>(options_.credentials, options_.network),
                        .range = shard_range(options_.size, shard, options_.shards),
                        .pulls = static_cast<std::size_t>(options_.worker) % alike.size() == i});
  }
}

TcpShardClient::~TcpShardClient() {
  abort();
  for (auto& peer : peers_) {
    if (peer.thread.joinable()) peer.thread.join();
  }
}

Result<void> TcpShardClient::connect() {
  if (peers_.empty() || peers_.size() < static_cast<std::size_t>(options_.shards))
    return fail("{} servers for {} shards", peers_.size(), options_.shards);
  for (auto& peer : peers_) {
    if (auto met = meet(peer); !met) {
      end(met.error().message);
      return met;
    }
  }
  for (auto& peer : peers_) peer.thread = std::thread([this, &peer] { live(peer); });
  return {};
}

Result<void> TcpShardClient::meet(Peer& peer) {
  if (auto connected = peer.link->connect(peer.address, kLinkPatience); !connected) return connected;
  const auto welcome = greet(*peer.link, options_.formation);
  if (!welcome) return fail("{}: {}", peer.address, welcome.error().message);
  if (welcome->first != peer.range.first || welcome->count != peer.range.count)
    return fail("{}: holds floats {} + {}, want {} + {}", peer.address, welcome->first, welcome->count,
                peer.range.first, peer.range.count);
  return {};
}

void TcpShardClient::end(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(over_, true)) why_ = why;
  for (auto& peer : peers_) peer.link->abort();
  work_.notify_all();
  done_.notify_all();
}

void TcpShardClient::abort() { end("the formation is over"); }

void TcpShardClient::live(Peer& peer) {
  while (true) {
    Job job;
    {
      Lock lock(mutex_);
      peer.busy = false;
      if (peer.jobs.empty()) done_.notify_all();
      work_.wait(lock, [&] { return over_ || !peer.jobs.empty(); });
      if (over_) return;
      job = peer.jobs.front();
      peer.jobs.pop_front();
      peer.busy = true;
    }
    if (const auto carried = carry_out(peer, job); !carried)
      return end(fmt::format("{}: {}", peer.address, carried.error().message));
  }
}

Result<void> TcpShardClient::carry_out(Peer& peer, const Job& job) {
  if (const auto* pull = std::get_if<PullJob>(&job)) return pull_from(peer, *pull);
  if (const auto* ack = std::get_if<AckJob>(&job)) return await_ack(peer, *ack);
  const auto& push = std::get<PushJob>(job);
  return peer.link->send({.kind = Kind::push,
                          .formation = options_.formation,
                          .number = push.lease,
                          .first = push.part.first,
                          .count = push.part.count},
                         std::as_bytes(push.values));
}

Result<void> TcpShardClient::pull_from(Peer& peer, const PullJob& job) {
  if (auto asked = peer.link->send({.kind = Kind::pull, .formation = options_.formation, .number = job.sample}); !asked)
    return asked;
  const auto header = peer.link->expect(Kind::weights, options_.formation);
  if (!header) return unexpected(header.error());
  if (header->count != job.into.size() || header->number < job.sample)
    return fail("{} floats at the state {}, want {} at {}", header->count, header->number, job.into.size(), job.sample);
  peer.state = header->number;
  return peer.link->receive_into(std::as_writable_bytes(job.into));
}

Result<void> TcpShardClient::await_ack(Peer& peer, const AckJob& job) {
  const auto header = peer.link->expect(Kind::staged, options_.formation);
  if (!header) return unexpected(header.error());
  if (header->number != job.lease) return fail("lease {} is staged, want {}", header->number, job.lease);
  return {};
}

void TcpShardClient::queue(Peer& peer, Job job) {
  const std::lock_guard lock(mutex_);
  auto* last = peer.jobs.empty() ? nullptr : std::get_if<PushJob>(&peer.jobs.back());
  const auto* next = std::get_if<PushJob>(&job);
  // A backward pass ends with the first layer: its parts come from behind. Those that still wait go as one.
  if (last != nullptr && next != nullptr && next->part.count > 0 && next->part.end() == last->part.first) {
    last->part = {.first = next->part.first, .count = next->part.count + last->part.count};
    last->values = values_.subspan(last->part.first, last->part.count);
  } else {
    peer.jobs.push_back(job);
  }
  work_.notify_all();
}

Result<void> TcpShardClient::await_all() {
  Lock lock(mutex_);
  done_.wait(lock, [&] {
    return over_ ||
           std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.jobs.empty() && !peer.busy; });
  });
  if (over_) return fail("{}", why_);
  return {};
}

Result<std::int64_t> TcpShardClient::pull(std::int64_t sample, std::span<float> weights) {
  if (weights.size() != options_.size) return fail("{} floats to pull into, want {}", weights.size(), options_.size);
  for (auto& peer : peers_) {
    if (peer.pulls) queue(peer, PullJob{.sample = sample, .into = weights.subspan(peer.range.first, peer.range.count)});
  }
  if (auto pulled = await_all(); !pulled) return unexpected(pulled.error());
  auto oldest = std::numeric_limits<std::int64_t>::max();
  for (const auto& peer : peers_) {
    if (peer.pulls) oldest = std::min(oldest, peer.state);
  }
  return oldest;
}

void TcpShardClient::begin_push(std::int64_t lease, std::span<const float> values) {
  MAYFLY_CHECK(values.size() == options_.size, "what is pushed has a value for each parameter");
  lease_ = lease;
  values_ = values;
  pushed_ = Coverage({.first = 0, .count = values.size()});
}

void TcpShardClient::queue_part(ShardRange part) {
  for (auto& peer : peers_) {
    const auto own = common_part(part, peer.range);
    if (own.count > 0)
      queue(peer, PushJob{.lease = lease_, .part = own, .values = values_.subspan(own.first, own.count)});
  }
}

void TcpShardClient::push(std::size_t first, std::size_t count) {
  MAYFLY_CHECK(pushed_.add({.first = first, .count = count}), "each part is pushed once");
  queue_part({.first = first, .count = count});
}

Result<void> TcpShardClient::finish_push() {
  for (const auto part : pushed_.missing()) queue_part(part);
  for (auto& peer : peers_) {
    // A shard without parameters: more servers than there is to hold. The server hears of the lease all the same.
    if (peer.range.count == 0) queue(peer, PushJob{.lease = lease_, .part = peer.range, .values = {}});
    queue(peer, AckJob{.lease = lease_});
  }
  return await_all();
}

}  // namespace

std::unique_ptr<ShardClient> ShardClient::make(Options options) {
  return std::make_unique<TcpShardClient>(std::move(options));
}

}  // namespace mayfly
