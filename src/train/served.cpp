#include "train/served.h"

#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "data/elapsed.h"
#include "data/order.h"
#include "train/log.h"
#include "train/throttle.h"

namespace mayfly {

Result<void> Served::attach(const Attach& servers) {
  if (!gear_.job.trainer) return {};
  retire();
  gear_.hold(-1, 0);  // the state is the servers'
  client_ = ShardClient::make({.formation = servers.formation,
                               .shards = servers.shards,
                               .addresses = servers.addresses,
                               .credentials = gear_.options.line.credentials,
                               .size = gear_.job.trainer->layout().size(),
                               .worker = gear_.terms.worker,
                               .network = gear_.emulated});
  formation_ = servers.formation;
  addresses_ = servers.addresses;
  // Before connecting: it may wait for a server that never comes, until the formation is over.
  gear_.breaker.install(client_, servers.formation);
  if (const auto connected = client_->connect(); !connected) {
    break_formation(servers.formation, connected.error().message);
    return {};
  }
  log("formation {}: {} servers", servers.formation, servers.addresses.size());
  gear_.line.say(Formed{.formation = servers.formation});
  return {};
}

Result<void> Served::take(const Lease& lease) {
  if (!stands(lease.formation)) return {};
  // After a mended line the controller may repeat itself.
  const bool again = done_ && done_->formation == lease.formation && done_->lease == lease.lease;
  if (!again) {
    if (auto worked = work(lease); !worked) return worked;
  }
  if (done_) gear_.line.say(*done_);
  gear_.line.doing(nullptr);
  gear_.report_feed(false);
  return {};
}

Result<void> Served::work(const Lease& lease) {
  Pushed pushed{.formation = lease.formation, .lease = lease.lease};
  gear_.line.doing("exchange");
  auto done = pull(lease, pushed);
  if (done && lease.evaluate) {
    gear_.line.doing("compute");
    if (auto evaluated = evaluate(pushed); !evaluated) return evaluated;
  }
  if (done && lease.samples > 0) {
    gear_.line.doing("data");
    const auto batch = waited_batch(gear_.job, {.first = lease.first_sample, .count = lease.samples},
                                    gear_.options.cpu_share, pushed.wait_s);
    if (!batch) return unexpected(batch.error());
    pushed.read = reading_of((*batch)->samples);
    done = train(lease, **batch, pushed);
  }
  done_ = pushed;
  if (!done) break_formation(lease.formation, done.error().message);
  return {};
}

Result<void> Served::pull(const Lease& lease, Pushed& pushed) {
  const auto start = std::chrono::steady_clock::now();
  auto& trainer = *gear_.job.trainer;
  const auto state = client_->pull(lease.sample, trainer.weights());
  if (!state) return unexpected(state.error());
  trainer.weights_written();
  pushed.sample = *state;
  pushed.pull_s = since(start);
  return {};
}

Result<void> Served::evaluate(Pushed& pushed) {
  const auto& validation = gear_.job.validation;
  if (!validation) return {};
  // All of it alone: other workers do not wait, and may hold other states.
  std::vector<std::int64_t> samples(static_cast<std::size_t>(validation->size()));
  std::iota(samples.begin(), samples.end(), 0);
  const auto sums = gear_.job.trainer->evaluate(*validation, samples);
  if (!sums) return unexpected(sums.error());
  if (sums->labels <= 0) return {};
  pushed.validation_loss = sums->loss_sum / sums->labels;
  pushed.accuracy = sums->correct / sums->labels;
  return {};
}

Result<void> Served::train(const Lease& lease, const Batch& batch, Pushed& pushed) {
  auto& trainer = *gear_.job.trainer;
  const bool adds_up = gear_.job.spec().sum;
  const double share = adds_up ? 1 : lease.share;
  Throttle throttle(gear_.options.cpu_share);
  // Before computing: parts that are final go while the backward pass goes on.
  client_->begin_push(lease.lease, trainer.exchange());
  auto start = std::chrono::steady_clock::now();
  throttle.begin();
  gear_.line.doing("compute");
  const double loss = trainer.compute(batch, share, lease.first_sample, [&](std::size_t first, std::size_t count) {
    throttle.hold();  // a slower processor would not have got here yet
    client_->push(first, count);
  });
  trainer.finish_push(share);
  throttle.hold();
  pushed.loss = adds_up ? loss / static_cast<double>(lease.samples) : loss;
  pushed.compute_s = since(start);
  start = std::chrono::steady_clock::now();
  gear_.line.doing("exchange");
  auto finished = client_->finish_push();
  pushed.push_s = since(start);
  return finished;
}

Result<Seconds> Served::exchange_time(std::int64_t /*bytes*/) {
  return fail("exchanges are timed between workers that stand together");
}

void Served::break_formation(std::int64_t formation, const std::string& what) {
  retire();
  gear_.tell_broken(formation, what, addresses_, addresses_);
}

void Served::halt(std::int64_t formation) {
  if (formation_ && *formation_ <= formation) retire();
}

void Served::retire() {
  gear_.breaker.install(nullptr, -1);
  client_.reset();
  formation_.reset();
  done_.reset();
  gear_.work_as_usual();
}

}  // namespace mayfly
