#include "train/meshed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "data/elapsed.h"
#include "data/new_file.h"
#include "data/order.h"
#include "train/log.h"
#include "train/reach.h"
#include "train/throttle.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;

/// This rank's part of a data set that is split evenly.
std::vector<std::int64_t> slice(std::int64_t size, int rank, int ranks) {
  const auto begin = size * rank / ranks, end = size * (rank + 1) / ranks;
  std::vector<std::int64_t> samples(static_cast<std::size_t>(end - begin));
  std::iota(samples.begin(), samples.end(), begin);
  return samples;
}

std::int64_t total(const Proceed& lease) {
  return std::accumulate(lease.counts.begin(), lease.counts.end(), std::int64_t{0});
}

}  // namespace

Result<void> Meshed::form(const Form& form) {
  if (!gear_.job.trainer) return {};
  leave();
  form_ = form;
  words_.clear();
  doorsteps_.clear();
  // Where the state is handed to it, the step that counted is another than the one in its hands.
  if (std::find(form.receivers.begin(), form.receivers.end(), form.rank) != form.receivers.end()) pending_.reset();
  settle_pending(form.sample);
  if (form.rank == form.source) {
    if (auto made = make_state(form); !made) return made;
  }
  auto mesh = Mesh::open(*gear_.network, {.formation = form.formation, .rank = form.rank, .size = form.size});
  if (!mesh) {
    // Weather, not an error of this worker: it waits for the next formation.
    break_formation(mesh.error().message);
    return {};
  }
  mesh_ = std::move(*mesh);
  gear_.breaker.install(mesh_, form.formation);
  gear_.line.say(Reachable{.formation = form.formation, .address = mesh_->word()});
  return {};
}

/// As the source of a formation: the weights in hand, a checkpoint, or the first weights.
Result<void> Meshed::make_state(const Form& form) {
  if (gear_.sample() == form.sample) return {};
  if (!form.from_checkpoint)
    return fail("formation {}: asked for the state of sample {}, holds {}", form.formation, form.sample,
                gear_.sample());
  gear_.hold(-1, 0);
  const auto restored = restore(gear_.job, *gear_.depot, form.checkpoint, form.sample);
  if (!restored) return fail("formation {}: {}", form.formation, restored.error().message);
  gear_.hold(form.sample, restored->step);
  gear_.loss = restored->loss;
  return {};
}

Result<void> Meshed::meet(const Peers& peers) {
  if (!current(peers.formation) || !mesh_ || stands_) return {};
  words_ = peers.addresses;
  doorsteps_ = mesh_->doorsteps(words_);
  ReachWatch watch(doorsteps_, [mesh = mesh_] { mesh->abort(); });
  auto met = mesh_->connect(peers.addresses);
  if (const auto missing = watch.end(); !missing.empty()) {
    leave();
    gear_.tell_broken(form_->formation, "others do not answer", words_, missing);
    return {};
  }
  if (met) met = receive_state();
  if (!met) {
    break_formation(met.error().message);
    return {};
  }
  stands_ = true;
  log("formation {}: rank {} of {} at sample {}", form_->formation, form_->rank, form_->size, gear_.sample());
  gear_.line.say(Formed{.formation = form_->formation});
  return {};
}

Result<void> Meshed::receive_state() {
  const auto& receivers = form_->receivers;
  const bool receives =
      form_->rank != form_->source && std::find(receivers.begin(), receivers.end(), form_->rank) != receivers.end();
  if (!receives && gear_.sample() != form_->sample)
    return fail("holds sample {}, want {}", gear_.sample(), form_->sample);
  std::array<double, 2> rest = {static_cast<double>(gear_.step()), gear_.loss};
  auto parts = gear_.job.trainer->writable_state();
  parts.push_back(std::as_writable_bytes(std::span(rest)));
  // Half written weights are no state: should the line break now, Hello must not offer them.
  if (receives) gear_.hold(-1, 0);
  if (auto handed = mesh_->hand_over(form_->source, receivers, parts); !handed || !receives) return handed;
  gear_.job.trainer->loaded();
  gear_.hold(form_->sample, static_cast<std::int64_t>(rest[0]));
  gear_.loss = rest[1];
  return {};
}

void Meshed::settle_pending(std::int64_t committed) {
  if (!pending_) return;
  // Only onto the weights that it was computed with.
  if (pending_->end() == committed && pending_->first == gear_.sample() && pending_->samples > 0) {
    gear_.job.trainer->apply(pending_->step, pending_->workers);
    gear_.loss = pending_->done.loss;
    gear_.hold(committed, pending_->step + 1);
  }
  pending_.reset();
}

Result<void> Meshed::proceed(const Proceed& lease) {
  if (!stands(lease.formation)) return {};
  // After a mended line the controller may repeat itself. The others will not exchange this step again.
  if (pending_ && pending_->first == lease.committed && pending_->step == lease.step &&
      pending_->samples == total(lease)) {
    gear_.line.say(pending_->done);
    return {};
  }
  settle_pending(lease.committed);
  if (const auto fits = check(lease); !fits) {
    break_formation(fits.error().message);
    return {};
  }
  auto& job = gear_.job;
  StepDone done{.formation = form_->formation, .first_sample = lease.committed};
  const auto own = own_part(lease);
  // Before the look at the validation set: the batch is read meanwhile.
  if (!lease.counts.empty() && !job.synthetic) job.feed.loader->expect(own.first, own.count, total(lease));
  if (lease.evaluate && job.validation) {
    gear_.line.doing("compute");
    const auto part = job.trainer->evaluate(*job.validation, slice(job.validation->size(), form_->rank, form_->size));
    if (!part) return unexpected(part.error());
    if (auto evaluated = add_up(*part, done); !evaluated) {
      break_formation(evaluated.error().message);
      return {};
    }
  }
  if (lease.compare) compare(done);
  if (!lease.counts.empty()) {
    gear_.line.doing("data");
    const auto batch = waited_batch(job, own, gear_.options.cpu_share, done.wait_s);
    if (!batch) return unexpected(batch.error());
    if (auto trained = train(lease, **batch, done); !trained) break_formation(trained.error().message);
  } else if (lease.evaluate) {
    // Never applied, as it has no samples: kept for a Proceed that is repeated.
    pending_ = Pending{.first = lease.committed, .step = lease.step, .done = done};
    gear_.line.say(done);
  }
  gear_.line.doing(nullptr);
  return {};
}

void Meshed::compare(StepDone& done) {
  gear_.line.doing("compute");
  const auto start = Clock::now();
  auto& state = done.state.emplace();
  for (const auto& tensors : {gear_.job.trainer->model_state(), gear_.job.trainer->optimiser_state()}) {
    for (const TensorView& tensor : tensors)
      state.push_back(fmt::format("{} {:016x}", tensor.name, xxh3_of(tensor.bytes)));
  }
  // The rate follows from it.
  state.push_back(fmt::format("step {}", gear_.step()));
  done.compare_s = since(start);
}

Result<void> Meshed::check(const Proceed& lease) const {
  if (gear_.sample() != lease.committed)
    return fail("told to go on from sample {}, holds {}", lease.committed, gear_.sample());
  if (!lease.counts.empty() && lease.counts.size() != static_cast<std::size_t>(form_->size))
    return fail("a lease for {} workers, want {}", lease.counts.size(), form_->size);
  return {};
}

SampleRange Meshed::own_part(const Proceed& lease) const {
  if (lease.counts.empty()) return {};
  const auto own = lease.counts.begin() + form_->rank;
  return {.first = std::accumulate(lease.counts.begin(), own, lease.committed), .count = *own};
}

Result<void> Meshed::train(const Proceed& lease, const Batch& batch, StepDone done) {
  const auto samples = total(lease);
  const bool adds_up = gear_.job.spec().sum;
  const double share = adds_up ? 1 : samples > 0 ? static_cast<double>(batch.size()) / static_cast<double>(samples) : 0;

  auto start = Clock::now();
  Throttle throttle(gear_.options.cpu_share);
  throttle.begin();
  gear_.line.doing("compute");
  const double loss = gear_.job.trainer->compute(batch, share, own_part(lease).first);
  throttle.hold();
  done.compute_s = since(start);
  start = Clock::now();
  std::array<double, 1> losses = {batch.size() > 0 ? loss * share : 0};
  if (auto summed = exchange(losses); !summed) return summed;
  done.exchange_s = since(start);
  done.samples = samples;
  done.read = reading_of(batch.samples);
  done.loss = adds_up && samples > 0 ? losses[0] / static_cast<double>(samples) : losses[0];
  pending_ =
      Pending{.first = lease.committed, .samples = samples, .step = lease.step, .workers = form_->size, .done = done};
  gear_.line.say(done);
  // Behind the report that the commit waits for.
  gear_.report_feed(false);
  return {};
}

Result<void> Meshed::exchange(std::span<double> losses) {
  const auto start = Clock::now();
  gear_.line.doing("exchange");
  const auto gradients = gear_.job.trainer->exchange();
  auto summed = mesh_->sum(gradients);
  if (summed) summed = mesh_->sum(losses);
  if (!summed || !gear_.options.network) return summed;
  // The mesh goes as fast as it can: what the emulated network would take is waited for afterwards.
  const Bytes size{static_cast<double>(gradients.size_bytes())};
  std::this_thread::sleep_until(start + ring_time(size, form_->size, *gear_.options.network));
  return {};
}

Result<void> Meshed::add_up(const Evaluation& part, StepDone& done) {
  gear_.line.doing("exchange");
  std::array<double, 3> sums = {part.loss_sum, part.correct, part.labels};
  if (auto summed = mesh_->sum(std::span<double>(sums)); !summed) return summed;
  if (form_->rank == 0 && sums[2] > 0) {
    done.validation_loss = sums[0] / sums[2];
    done.accuracy = sums[1] / sums[2];
  }
  return {};
}

Result<void> Meshed::write_checkpoint(const WriteCheckpoint& word) {
  if (current(word.formation)) gear_.write_checkpoint();
  return {};
}

Result<Seconds> Meshed::exchange_time(std::int64_t bytes) {
  constexpr int kTimes = 5;
  std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
  Seconds fastest = Seconds::max();
  for (int i = 0; i < kTimes; ++i) {
    const auto start = Clock::now();
    if (auto summed = mesh_->sum(values); !summed) return unexpected(summed.error());
    fastest = std::min<Seconds>(fastest, Clock::now() - start);
  }
  return fastest;
}

std::optional<int> Meshed::turn_to_save() const { return form_ ? std::optional(form_->rank) : std::nullopt; }

void Meshed::break_formation(const std::string& what) {
  // Whoever waits for this worker is not to wait while it looks.
  leave();
  gear_.tell_broken(form_->formation, what, words_, doorsteps_);
}

void Meshed::leave() {
  gear_.breaker.install(nullptr, -1);
  mesh_.reset();
  stands_ = false;
  gear_.work_as_usual();
}

void Meshed::halt(std::int64_t formation) {
  if (form_ && form_->formation <= formation) leave();
}

void Meshed::retire() {
  leave();
  form_.reset();
  pending_.reset();
}

}  // namespace mayfly
