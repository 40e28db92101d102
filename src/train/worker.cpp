#include "train/worker.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "data/elapsed.h"
#include "train/log.h"

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

Worker::Worker(Options options)
    : options_(std::move(options)),
      emulated_(options_.network ? std::make_shared<EmulatedNetwork>(*options_.network) : nullptr),
      served_({.credentials = options_.line.credentials, .network = emulated_, .cpu_share = options_.cpu_share},
              breaker_),
      line_([this] {
        auto line = options_.line;
        line.ended = [this](std::int64_t formation) { breaker_.end(formation); };
        return line;
      }()),
      writer_([this](Message message) { line_.say(std::move(message)); }) {}

Result<void> Worker::obey(Message message) {
  const auto current = [&](std::int64_t formation) { return form_ && form_->formation == formation; };
  if (const auto* welcome = std::get_if<Welcome>(&message)) return load(*welcome);
  if (const auto* wanted = std::get_if<Form>(&message)) return form(*wanted);
  if (const auto* peers = std::get_if<Peers>(&message)) {
    if (current(peers->formation)) meet(*peers);
  } else if (const auto* lease = std::get_if<Proceed>(&message)) {
    if (current(lease->formation)) return proceed(*lease);
  } else if (const auto* servers = std::get_if<Attach>(&message)) {
    attach(*servers);
  } else if (const auto* own = std::get_if<Lease>(&message)) {
    if (served_.formation() == own->formation) return take(*own);
  } else if (const auto* neighbours = std::get_if<Neighbours>(&message)) {
    meet_neighbours(*neighbours);
  } else if (const auto* write = std::get_if<WriteCheckpoint>(&message)) {
    if (current(write->formation)) write_checkpoint();
  } else if (const auto* wanted_look = std::get_if<Measure>(&message)) {
    const bool here = current(wanted_look->formation) ? stands_ : served_.formation() == wanted_look->formation;
    if (here) return measure(*wanted_look);
  } else if (const auto* halt = std::get_if<Halt>(&message)) {
    if (form_ && form_->formation <= halt->formation) leave_formation();
    if (served_.formation() && *served_.formation() <= halt->formation) served_.detach();
  }
  return {};
}

Result<void> Worker::load(const Welcome& welcome) {
  terms_ = welcome;
  log("worker {} of {}", welcome.worker, welcome.job_file);
  if (!job_.trainer) {
    if (!welcome.network.empty())
      return fail("{}: the model is a script: its workers are the job's own program", welcome.job_file);
    auto network = NetworkDevice::open(options_.interface);
    if (!network) return unexpected(network.error());
    if (options_.cpu_share) use_threads(1);  // only one is stretched
    auto job = loaded_job(welcome, [this] { return open_peers(); });
    if (!job) return unexpected(job.error());
    network_ = std::move(*network);
    job_ = std::move(*job);
    if (peers_) {
      peers_->serve(job_.feed.partitioned.get());
      job_.ready.cache = peers_->address();
    }
    hold(0, 0);
  }
  line_.say(job_.ready);
  return {};
}

void Worker::hold(std::int64_t sample, std::int64_t step) {
  sample_ = sample;
  step_ = step;
  line_.holds(sample < 0 ? std::nullopt : std::optional(sample));
}

Result<void> Worker::form(const Form& form) {
  if (!job_.trainer) return {};
  served_.detach();
  leave_formation();
  form_ = form;
  // Where the state is handed to it, the step that counted is another than the one in its hands.
  if (std::find(form.receivers.begin(), form.receivers.end(), form.rank) != form.receivers.end()) pending_.reset();
  settle_pending(form.sample);
  if (form.rank == form.source) {
    if (auto made = make_state(form); !made) return made;
  }
  auto mesh = Mesh::open(*network_, {.formation = form.formation, .rank = form.rank, .size = form.size});
  if (!mesh) {
    break_formation(mesh.error().message);
    return {};
  }
  mesh_ = std::move(*mesh);
  breaker_.install(mesh_, form.formation);
  line_.say(Reachable{.formation = form.formation, .address = mesh_->word()});
  return {};
}

/// As the source of a formation: the weights in hand, a checkpoint, or the first weights.
Result<void> Worker::make_state(const Form& form) {
  if (sample_ == form.sample) return {};
  if (!form.from_checkpoint)
    return fail("formation {}: asked for the state of sample {}, holds {}", form.formation, form.sample, sample_);
  hold(-1, 0);
  const auto restored = restore(*job_.trainer, form.checkpoint, form.sample);
  if (!restored) return fail("formation {}: {}", form.formation, restored.error().message);
  hold(form.sample, restored->step);
  loss_ = restored->loss;
  return {};
}

void Worker::meet(const Peers& peers) {
  if (!mesh_ || stands_) return;
  auto met = mesh_->connect(peers.addresses);
  if (met) met = receive_state();
  if (!met) return break_formation(met.error().message);
  stands_ = true;
  log("formation {}: rank {} of {} at sample {}", form_->formation, form_->rank, form_->size, sample_);
  line_.say(Formed{.formation = form_->formation});
}

Result<void> Worker::receive_state() {
  const auto& receivers = form_->receivers;
  const bool receives =
      form_->rank != form_->source && std::find(receivers.begin(), receivers.end(), form_->rank) != receivers.end();
  if (!receives && sample_ != form_->sample) return fail("holds sample {}, want {}", sample_, form_->sample);
  std::array<double, 2> rest = {static_cast<double>(step_), loss_};
  auto parts = job_.trainer->writable_state();
  parts.push_back(std::as_writable_bytes(std::span(rest)));
  if (receives) hold(-1, 0);
  if (auto handed = mesh_->hand_over(form_->source, receivers, parts); !handed || !receives) return handed;
  job_.trainer->loaded();
  hold(form_->sample, static_cast<std::int64_t>(rest[0]));
  loss_ = rest[1];
  return {};
}

void Worker::settle_pending(std::int64_t committed) {
  if (!pending_) return;
  if (pending_->end() == committed && pending_->first == sample_ && pending_->samples > 0) {
    job_.trainer->apply(pending_->step, pending_->workers);
    loss_ = pending_->done.loss;
    hold(committed, pending_->step + 1);
  }
  pending_.reset();
}

Result<void> Worker::proceed(const Proceed& lease) {
  if (!stands_) return {};
  // After a mended line the controller may repeat itself. The others will not exchange this step again.
  if (pending_ && pending_->first == lease.committed && pending_->step == lease.step &&
      pending_->samples == total(lease)) {
    line_.say(pending_->done);
    return {};
  }
  settle_pending(lease.committed);
  if (const auto fits = check(lease); !fits) {
    break_formation(fits.error().message);
    return {};
  }
  StepDone done{.formation = form_->formation, .first_sample = lease.committed};
  const auto own = own_part(lease);
  if (!lease.counts.empty() && !job_.synthetic) job_.feed.loader->expect(own.first, own.count, total(lease));
  if (lease.evaluate && job_.validation) {
    const auto part =
        job_.trainer->evaluate(*job_.validation, slice(job_.validation->size(), form_->rank, form_->size));
    if (!part) return unexpected(part.error());
    if (auto evaluated = add_up(*part, done); !evaluated) {
      break_formation(evaluated.error().message);
      return {};
    }
  }
  if (!lease.counts.empty()) {
    const auto batch = waited_batch(job_, own, options_.cpu_share, done.wait_s);
    if (!batch) return unexpected(batch.error());
    if (auto trained = train(lease, **batch, done); !trained) break_formation(trained.error().message);
  } else if (lease.evaluate) {
    pending_ = Pending{.first = lease.committed, .step = lease.step, .done = done};
    line_.say(done);
  }
  return {};
}

Result<void> Worker::check(const Proceed& lease) const {
  if (sample_ != lease.committed) return fail("told to go on from sample {}, holds {}", lease.committed, sample_);
  if (!lease.counts.empty() && lease.counts.size() != static_cast<std::size_t>(form_->size))
    return fail("a lease for {} workers, want {}", lease.counts.size(), form_->size);
  return {};
}

SampleRange Worker::own_part(const Proceed& lease) const {
  if (lease.counts.empty()) return {};
  const auto own = lease.counts.begin() + form_->rank;
  return {.first = std::accumulate(lease.counts.begin(), own, lease.committed), .count = *own};
}

Result<void> Worker::train(const Proceed& lease, const Batch& batch, StepDone done) {
  const auto samples = total(lease);
  const bool adds_up = job_.spec().sum;
  const double share = adds_up ? 1 : samples > 0 ? static_cast<double>(batch.size()) / static_cast<double>(samples) : 0;

  auto start = Clock::now();
  Throttle throttle(options_.cpu_share);
  throttle.begin();
  const double loss = job_.trainer->compute(batch, share, own_part(lease).first);
  throttle.hold();
  done.compute_s = since(start);
  start = Clock::now();
  std::array<double, 1> losses = {batch.size() > 0 ? loss * share : 0};
  if (auto summed = exchange(losses); !summed) return summed;
  done.exchange_s = since(start);
  done.samples = samples;
  done.loss = adds_up && samples > 0 ? losses[0] / static_cast<double>(samples) : losses[0];
  pending_ =
      Pending{.first = lease.committed, .samples = samples, .step = lease.step, .workers = form_->size, .done = done};
  line_.say(done);
  report_feed(false);
  return {};
}

Result<void> Worker::exchange(std::span<double> losses) {
  const auto start = Clock::now();
  auto summed = mesh_->sum(job_.trainer->exchange());
  if (summed) summed = mesh_->sum(losses);
  if (!summed || !options_.network) return summed;
  const Bytes size{static_cast<double>(job_.trainer->exchange().size_bytes())};
  std::this_thread::sleep_until(start + ring_time(size, form_->size, *options_.network));
  return {};
}

Result<void> Worker::add_up(const Evaluation& part, StepDone& done) {
  std::array<double, 3> sums = {part.loss_sum, part.correct, part.labels};
  if (auto summed = mesh_->sum(std::span<double>(sums)); !summed) return summed;
  if (form_->rank == 0 && sums[2] > 0) {
    done.validation_loss = sums[0] / sums[2];
    done.accuracy = sums[1] / sums[2];
  }
  return {};
}

void Worker::break_formation(const std::string& what) {
  log("formation {} broken: {}", form_->formation, what);
  leave_formation();
  line_.say(Broken{.formation = form_->formation, .what = what});
}

void Worker::leave_formation() {
  breaker_.install(nullptr, -1);
  mesh_.reset();
  stands_ = false;
  job_.synthetic.reset();
  cool_down(job_);
}

void Worker::attach(const Attach& servers) {
  if (!job_.trainer) return;
  leave_formation();
  form_.reset();
  pending_.reset();
  hold(-1, 0);  // the state is the servers'
  const auto attached = served_.attach(servers, job_.trainer->layout().size(), terms_.worker);
  if (!attached) {
    log("formation {} broken: {}", servers.formation, attached.error().message);
    return line_.say(Broken{.formation = servers.formation, .what = attached.error().message});
  }
  log("formation {}: {} servers", servers.formation, servers.addresses.size());
  line_.say(Formed{.formation = servers.formation});
}

Result<void> Worker::take(const Lease& lease) {
  const auto pushed = served_.work(lease, job_);
  if (!pushed) return unexpected(pushed.error());
  if (const auto* broken = std::get_if<Broken>(&*pushed)) log("formation {} broken: {}", lease.formation, broken->what);
  line_.say(*pushed);
  report_feed(false);
  return {};
}

TrainerState Worker::state() const {
  TrainerState state{.sample = sample_, .step = step_, .loss = loss_, .seed = job_.spec().seed, .job = job_.job.name};
  if (sample_ > 0) state.ledger = {{.first = 0, .count = sample_}};
  return state;
}

void Worker::write_checkpoint() {
  if (sample_ < 0) return line_.say(CheckpointFailed{.sample = 0, .what = "holds no state"});
  writer_.write(terms_.directory, state(), *job_.trainer);
}

void Worker::drop() {
  served_.detach();
  breaker_.forget();
  mesh_.reset();
  stands_ = false;
  form_.reset();
  pending_.reset();
  if (!job_.trainer) return;
  job_.trainer->reset();
  hold(0, 0);
}

void Worker::finish() {
  report_feed(true);
  writer_.finish();
  if (job_.feed.loader) log("{}", sentence(job_.feed.loader->counts()));
}

void Worker::save_what_it_has() {
  if (!job_.trainer || sample_ <= 0 || !form_) return;
  // All orphans hold the same; whoever comes first writes.
  std::this_thread::sleep_for(Seconds(std::min(form_->rank, 10)));
  save_if_newest();
}

/// What stops one worker may stop all of them; the first saves for all.
void Worker::save_what_others_lack() {
  if (job_.trainer && sample_ > 0 && form_ && form_->rank == 0) save_if_newest();
}

void Worker::save_if_newest() {
  const auto newest = newest_checkpoint(terms_.directory).checkpoint;
  if (newest && newest->state.sample >= sample_) return;
  write_checkpoint();
  writer_.finish();
}

}  // namespace mayfly
