#include "train/server.h"

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <utility>

#include "base/overloaded.h"
#include "nn/shard.h"
#include "train/data_link.h"
#include "train/log.h"
#include "train/state_fetch.h"
#include "wire/interface.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kNetworkLook{50};

/// Pairs of first and count.
std::vector<SampleRange> ranges_of(const std::vector<std::int64_t>& numbers) {
  std::vector<SampleRange> ranges;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
    ranges.push_back({.first = numbers[i], .count = numbers[i + 1]});
  return ranges;
}

}  // namespace

Server::Server(Options options)
    : options_(std::move(options)),
      network_(options_.network ? std::make_shared<EmulatedNetwork>(*options_.network) : nullptr),
      line_([this] {
        auto line = options_.line;
        line.role = "server";
        line.ended = [this](std::int64_t formation) {
          breaker_.end(formation);
          saving_.end(formation);
        };
        return line;
      }()),
      writer_([this](FromMember message) { line_.say(std::move(message)); }) {}

Result<void> Server::obey(const ToMember& message) {
  return std::visit(
      Overloaded{
          [&](const Welcome& welcome) { return load(welcome); }, [&](const Serve& wanted) { return serve(wanted); },
          [&](const Commit& counts) { return commit(counts); }, [&](const Forget& lost) { return forget(lost); },
          [&](const Save& wanted) { return save(wanted); },
          // Nothing moves here without a word, and the state stays in hand. Waits have ended in the line's thread.
          Ignoring<Result<void>, Halt>{},
          Ignoring<Result<void>, Form, Peers, Proceed, WriteCheckpoint, Attach, Lease, Neighbours,
                   Measure>{},                                              // for workers
          Ignoring<Result<void>, Refused, Alive, Watch, Explain, Leave>{},  // heard by then
      },
      message);
}

Result<void> Server::load(const Welcome& told) {
  const auto home = job_.trainer ? Result<Welcome>(told) : at_home(told, options_.own);
  if (!home) return unexpected(home.error());
  const Welcome& welcome = *home;
  if (!depot_ || terms_.directory != welcome.directory) {
    writer_.finish();
    auto opened = run_depot(welcome.directory, options_.around, options_.own);
    if (!opened) return unexpected(opened.error());
    depot_ = *std::move(opened);
  }
  terms_ = welcome;
  log("server {} of {}", welcome.worker, welcome.job_file);
  std::error_code ignored;
  if (!job_.trainer && !welcome.network.empty() && !std::filesystem::exists(welcome.network, ignored)) {
    await_network(welcome);
    return {};
  }
  if (!job_.trainer) {
    const auto address = interface_address(options_.interface);
    if (!address) return unexpected(address.error());
    auto opened =
        ShardServer::open({.address = *address, .credentials = options_.line.credentials, .network = network_});
    if (!opened) return unexpected(opened.error());
    auto job = loaded_job(welcome, {.trust = options_.trust});
    if (!job) return unexpected(job.error());
    shards_ = std::move(*opened);
    job_ = std::move(*job);
    job_.ready.address = shards_->address();
  }
  line_.say(job_.ready);
  return {};
}

/// The first worker of a script says what is trained. Until then there is other mail to read.
void Server::await_network(const Welcome& welcome) {
  log("waiting for a worker to write {}", welcome.network);
  waiting_ = std::jthread([this, welcome](const std::stop_token& over) {
    std::error_code ignored;
    while (!std::filesystem::exists(welcome.network, ignored)) {
      if (over.stop_requested()) return;
      std::this_thread::sleep_for(kNetworkLook);
    }
    line_.remind(welcome);
  });
}

void Server::hold(std::int64_t sample) {
  sample_ = sample;
  line_.holds(sample < 0 ? std::nullopt : std::optional(sample));
}

Result<void> Server::serve(const Serve& serve) {
  if (!job_.trainer) return {};
  if (stands(serve.formation)) {  // said again after the line was mended
    line_.say(Formed{.formation = serve.formation});
    return {};
  }
  const auto start = Clock::now();
  // Those who come early for the new formation wait; the others are turned out.
  auto shard = shards_->begin(serve.formation, nullptr, -1);
  const bool same = shard && serve_ && serve_->shard == serve.shard && serve_->shards == serve.shards;
  stands_ = false;
  serve_ = serve;
  if (!same) shard = Shard::make(job_.spec(), job_.trainer->layout(), serve.shard, serve.shards);
  if (!same || sample_ != serve.sample) {
    hold(-1);
    const auto made = make_state(serve, *shard);
    if (!made) return unexpected(made.error());
    if (!*made) return {};
  }
  shards_->begin(serve.formation, std::move(shard), serve.sample);
  hold(serve.sample);
  stands_ = true;
  log("formation {}: shard {} of {} at sample {}, in {:.3f} s", serve.formation, serve.shard, serve.shards,
      serve.sample, Seconds(Clock::now() - start).count());
  line_.say(Formed{.formation = serve.formation});
  return {};
}

Result<bool> Server::make_state(const Serve& serve, Shard& shard) {
  if (!serve.source.empty()) {
    const auto fetch = std::make_shared<StateFetch>(options_.line.credentials, network_);
    breaker_.install(fetch, serve.formation);
    const auto fetched = fetch->fetch(serve.source, serve.formation, serve.sample, shard.state());
    breaker_.install(nullptr, -1);
    if (!fetched) break_formation(fetched.error().message);
    return fetched.has_value();
  }
  if (!serve.from_checkpoint) {
    break_formation(fmt::format("told to go on from sample {}, which it does not hold", serve.sample));
    return false;
  }
  writer_.finish();  // it uses the trainer too
  const auto restored = restore(job_, *depot_, serve.checkpoint, serve.sample);
  if (!restored) return unexpected(restored.error());
  shard.take(*job_.trainer);
  return true;
}

Result<void> Server::commit(const Commit& commit) {
  if (!stands(commit.formation)) return {};
  // After a mended line the controller may repeat itself. A formation has one state of each number of samples.
  if (commit.sample <= sample_) return {};
  if (const auto applied = shards_->commit(commit); !applied) {
    break_formation(applied.error().message);
  } else {
    hold(commit.sample);
  }
  return {};
}

Result<void> Server::forget(const Forget& forget) {
  if (stands(forget.formation)) shards_->forget(forget);
  return {};
}

Result<void> Server::save(const Save& save) {
  if (!stands(save.formation)) return {};
  const auto start = Clock::now();
  const bool writes = !save.addresses.empty();
  if (save.sample != sample_ || (writes && save.addresses.size() != static_cast<std::size_t>(serve_->shards))) {
    if (writes)
      line_.say(CheckpointFailed{.sample = save.sample,
                                 .what = fmt::format("asked for sample {} from {} servers, this one holds {} of {}",
                                                     save.sample, save.addresses.size(), sample_, serve_->shards)});
    return {};
  }
  shards_->keep_copy();
  if (!writes) return {};
  const Seconds stall = Clock::now() - start;
  const auto fetch = std::make_shared<StateFetch>(options_.line.credentials, network_);
  writer_.write([this, save, held = *serve_, fetch, stall] { return gathered(save, held, *fetch, stall); });
  saving_.install(fetch, save.formation);
  return {};
}

/// In the writer's thread: the trainer is the writer's until it is done.
FromMember Server::gathered(const Save& save, const Serve& held, StateFetch& fetch, Seconds stall) {
  auto& trainer = *job_.trainer;
  for (int index = 0; index < held.shards; ++index) {
    const auto shard = Shard::make(job_.spec(), trainer.layout(), index, held.shards);
    const auto got = index == held.shard
                         ? shards_->read_copy(save.formation, save.sample, shard->state())
                         : fetch.fetch(save.addresses[index], save.formation, save.sample, shard->state());
    if (!got) return CheckpointFailed{.sample = save.sample, .what = got.error().message};
    shard->put(trainer);
  }
  const TrainerState state{.sample = save.sample,
                           .step = save.step,
                           .loss = save.loss,
                           .lineage = job_.lineage,
                           .ledger = ranges_of(save.ledger),
                           .job = job_.job.name};
  return checkpoint_written(*depot_, state, trainer, stall);
}

void Server::break_formation(const std::string& what) {
  log("formation {} broken: {}", serve_->formation, what);
  line_.say(Broken{.formation = serve_->formation, .what = what});
}

void Server::drop() {
  breaker_.forget();
  saving_.forget();
  if (shards_) shards_->begin(-1, nullptr, -1);
  stands_ = false;
  serve_.reset();
  hold(-1);
}

/// Nothing: which samples its state holds only the controller knows, as leases may count in any order, and a checkpoint
/// with a ledger that is not true would have samples trained twice or never. The run goes on from the last checkpoint.
void Server::save_what_it_has() {}

}  // namespace mayfly
