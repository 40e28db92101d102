#include "train/served.h"

#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "data/elapsed.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;

Result<void> evaluate(LoadedJob& job, Pushed& pushed) {
  if (!job.validation) return {};
  std::vector<std::int64_t> samples(static_cast<std::size_t>(job.validation->size()));
  std::iota(samples.begin(), samples.end(), 0);
  const auto sums = job.trainer->evaluate(*job.validation, samples);
  if (!sums) return unexpected(sums.error());
  if (sums->labels <= 0) return {};
  pushed.validation_loss = sums->loss_sum / sums->labels;
  pushed.accuracy = sums->correct / sums->labels;
  return {};
}

}  // namespace

Result<void> Served::attach(const Attach& attach, std::size_t parameters, int worker) {
  detach();
  client_ = ShardClient::make({.formation = attach.formation,
                               .shards = attach.shards,
                               .addresses = attach.addresses,
                               .credentials = options_.credentials,
                               .size = parameters,
                               .worker = worker,
                               .network = options_.network});
  formation_ = attach.formation;
  breaker_.install(client_, attach.formation);
  auto connected = client_->connect();
  if (!connected) detach();
  return connected;
}

void Served::detach() {
  breaker_.install(nullptr, -1);
  client_.reset();
  formation_.reset();
  done_.reset();
}

Result<Message> Served::work(const Lease& lease, LoadedJob& job) {
  // After a mended line the controller may repeat itself.
  if (done_ && done_->formation == lease.formation && done_->lease == lease.lease) return *done_;
  Pushed pushed{.formation = lease.formation, .lease = lease.lease};
  auto done = pull(lease, *job.trainer, pushed);
  if (done && lease.evaluate) {
    if (const auto evaluated = evaluate(job, pushed); !evaluated) return unexpected(evaluated.error());
  }
  if (done && lease.samples > 0) {
    const auto batch =
        waited_batch(job, {.first = lease.first_sample, .count = lease.samples}, options_.cpu_share, pushed.wait_s);
    if (!batch) return unexpected(batch.error());
    done = train(lease, **batch, job, pushed);
  }
  if (!done) {
    detach();
    return Broken{.formation = lease.formation, .what = done.error().message};
  }
  done_ = pushed;
  return pushed;
}

Result<void> Served::pull(const Lease& lease, Trainer& trainer, Pushed& pushed) {
  const auto start = Clock::now();
  const auto state = client_->pull(lease.sample, trainer.weights());
  if (!state) return unexpected(state.error());
  trainer.weights_written();
  pushed.sample = *state;
  pushed.pull_s = since(start);
  return {};
}

Result<void> Served::train(const Lease& lease, const Batch& batch, LoadedJob& job, Pushed& pushed) {
  auto& trainer = *job.trainer;
  const bool adds_up = job.spec().sum;
  const double share = adds_up ? 1 : lease.share;
  Throttle throttle(options_.cpu_share);
  client_->begin_push(lease.lease, trainer.exchange());
  auto start = Clock::now();
  throttle.begin();
  const double loss = trainer.compute(batch, share, lease.first_sample, [&](std::size_t first, std::size_t count) {
    throttle.hold();  // a slower processor would not have got here yet
    client_->push(first, count);
  });
  trainer.finish_push(share);
  throttle.hold();
  pushed.loss = adds_up ? loss / static_cast<double>(lease.samples) : loss;
  pushed.compute_s = since(start);
  start = Clock::now();
  auto finished = client_->finish_push();
  pushed.push_s = since(start);
  return finished;
}

}  // namespace mayfly
