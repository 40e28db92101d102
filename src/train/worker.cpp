#include "train/worker.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "train/log.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return Seconds(Clock::now() - start).count(); }

/// The places [first, first + count) of the order.
std::vector<std::int64_t> samples_at(const SampleOrder& order, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  for (auto& sample : samples) sample = order.sample_at(first++);
  return samples;
}

/// This rank's part of a data set that is split evenly.
std::vector<std::int64_t> slice(std::int64_t size, int rank, int ranks) {
  const auto begin = size * rank / ranks, end = size * (rank + 1) / ranks;
  std::vector<std::int64_t> samples(static_cast<std::size_t>(end - begin));
  std::iota(samples.begin(), samples.end(), begin);
  return samples;
}

double state_megabytes(Trainer& trainer) {
  double bytes = 0;
  for (const auto& part : trainer.writable_state()) bytes += static_cast<double>(part.size());
  return in_megabytes(Bytes{bytes});
}

}  // namespace

Worker::Worker(Options options)
    : options_(std::move(options)),
      line_([this] {
        auto line = options_.line;
        line.ended = [this](std::int64_t formation) { breaker_.end(formation); };
        return line;
      }()),
      writer_([this](Message message) {
        if (const auto* failed = std::get_if<CheckpointFailed>(&message)) log("no checkpoint: {}", failed->what);
        if (const auto* written = std::get_if<CheckpointWritten>(&message)) log("wrote {}", written->path);
        line_.say(std::move(message));
      }) {}

int Worker::run() {
  while (true) {
    auto mail = line_.next();
    if (std::holds_alternative<Orphaned>(mail)) return orphaned();
    if (const auto* rejected = std::get_if<Rejected>(&mail)) {
      log("{}:{}: {}", options_.line.host, options_.line.port, rejected->why);
      return kRejected;
    }
    if (std::holds_alternative<Dropped>(mail)) {
      drop();
      continue;
    }
    auto& message = std::get<Message>(mail);
    if (const auto* leave = std::get_if<Leave>(&message)) {
      log("leaving: {}", leave->why);
      writer_.finish();
      return kDone;
    }
    if (const auto obeyed = obey(std::move(message)); !obeyed) {
      log("{}", obeyed.error().message);
      line_.say(Unable{.what = obeyed.error().message});
      return kUnable;
    }
  }
}

Result<void> Worker::obey(Message message) {
  const auto current = [&](std::int64_t formation) { return form_ && form_->formation == formation; };
  if (const auto* welcome = std::get_if<Welcome>(&message)) return load(*welcome);
  if (const auto* wanted = std::get_if<Form>(&message)) return form(*wanted);
  if (const auto* peers = std::get_if<Peers>(&message)) {
    if (current(peers->formation)) meet(*peers);
  } else if (const auto* lease = std::get_if<Proceed>(&message)) {
    if (current(lease->formation)) proceed(*lease);
  } else if (const auto* write = std::get_if<WriteCheckpoint>(&message)) {
    if (current(write->formation)) write_checkpoint();
  } else if (const auto* halt = std::get_if<Halt>(&message)) {
    if (form_ && form_->formation <= halt->formation) {
      breaker_.install(nullptr, -1);
      mesh_.reset();
      stands_ = false;
    }
  }
  return {};
}

Result<void> Worker::load(const Welcome& welcome) {
  terms_ = welcome;
  log("worker {} of {}", welcome.worker, welcome.job_file);
  if (trainer_) {
    line_.say(ready_);
    return {};
  }
  const auto start = Clock::now();
  auto job = parse_job(welcome.job, welcome.job_file);
  if (!job) return unexpected(job.error());
  if (!job->train) return fail("{}: no 'train' block: nothing to train", welcome.job_file);
  job_ = std::move(*job);
  const auto& spec = *job_.train;
  const auto folder = std::filesystem::path(welcome.job_file).parent_path();
  auto network = NetworkDevice::open(options_.interface);
  if (!network) return unexpected(network.error());
  auto data = open_dataset(spec.data, spec.model, folder);
  if (!data) return unexpected(data.error());
  if (spec.validation) {
    auto validation = open_dataset(*spec.validation, spec.model, folder);
    if (!validation) return unexpected(validation.error());
    validation_ = std::move(*validation);
  }
  auto trainer = Trainer::make(spec, **data, folder);
  if (!trainer) return unexpected(trainer.error());
  network_ = std::move(*network);
  data_ = std::move(*data);
  trainer_ = std::move(*trainer);
  order_.emplace(data_->size(), spec.seed);
  hold(0, 0);
  ready_ = {.samples = data_->size(),
            .parameters = trainer_->parameters(),
            .state_mb = state_megabytes(*trainer_),
            .load_s = since(start)};
  log("ready: {} samples, {} parameters, loaded in {:.2f} s", ready_.samples, ready_.parameters, ready_.load_s);
  line_.say(ready_);
  return {};
}

void Worker::hold(std::int64_t sample, std::int64_t step) {
  sample_ = sample;
  step_ = step;
  line_.holds(sample < 0 ? std::nullopt : std::optional(sample));
}

Result<void> Worker::form(const Form& form) {
  if (!trainer_) return {};
  breaker_.install(nullptr, -1);
  mesh_.reset();
  stands_ = false;
  form_ = form;
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
  if (form.checkpoint.empty()) {
    if (form.sample != 0) return fail("formation {}: no checkpoint for sample {}", form.formation, form.sample);
    trainer_->reset();
    hold(0, 0);
    return {};
  }
  const auto saved = open_checkpoint(form.checkpoint);
  if (!saved) return unexpected(saved.error());
  if (saved->state.sample != form.sample)
    return fail("{}: holds sample {}, want {}", form.checkpoint, saved->state.sample, form.sample);
  const auto tensors = load_tensors(*saved);
  if (!tensors) return unexpected(tensors.error());
  hold(-1, 0);
  if (auto loaded = trainer_->load(tensors->model, tensors->optimiser); !loaded) return loaded;
  hold(form.sample, saved->state.step);
  loss_ = saved->state.loss;
  log("loaded {}", form.checkpoint);
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
  auto parts = trainer_->writable_state();
  parts.push_back(std::as_writable_bytes(std::span(rest)));
  if (receives) hold(-1, 0);
  if (auto handed = mesh_->hand_over(form_->source, receivers, parts); !handed || !receives) return handed;
  trainer_->loaded();
  hold(form_->sample, static_cast<std::int64_t>(rest[0]));
  loss_ = rest[1];
  return {};
}

void Worker::settle_pending(std::int64_t committed) {
  if (!pending_) return;
  if (pending_->end() == committed && pending_->first == sample_ && pending_->samples > 0) {
    trainer_->apply(pending_->step, pending_->workers);
    loss_ = pending_->done.loss;
    hold(committed, pending_->step + 1);
  }
  pending_.reset();
}

void Worker::proceed(const Proceed& lease) {
  if (!stands_) return;
  // After a mended line the controller may repeat itself. The others will not exchange this step again.
  if (pending_ && pending_->first == lease.committed && pending_->step == lease.step &&
      pending_->samples == std::accumulate(lease.counts.begin(), lease.counts.end(), std::int64_t{0}))
    return line_.say(pending_->done);
  settle_pending(lease.committed);
  if (sample_ != lease.committed)
    return break_formation(fmt::format("told to go on from sample {}, holds {}", lease.committed, sample_));
  if (!lease.counts.empty() && lease.counts.size() != static_cast<std::size_t>(form_->size))
    return break_formation(fmt::format("a lease for {} workers, want {}", lease.counts.size(), form_->size));
  StepDone done{.formation = form_->formation, .first_sample = lease.committed};
  if (lease.evaluate) {
    if (auto evaluated = evaluate(done); !evaluated) return break_formation(evaluated.error().message);
  }
  if (!lease.counts.empty()) {
    if (auto trained = train(lease, done); !trained) return break_formation(trained.error().message);
  } else if (lease.evaluate) {
    pending_ = Pending{.first = lease.committed, .step = lease.step, .done = done};
    line_.say(done);
  }
}

Result<void> Worker::train(const Proceed& lease, StepDone done) {
  const auto& counts = lease.counts;
  const auto own = counts.begin() + form_->rank;
  const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const auto first = std::accumulate(counts.begin(), own, lease.committed);
  const bool adds_up = job_.train->sum;
  const double share = adds_up ? 1 : total > 0 ? static_cast<double>(*own) / static_cast<double>(total) : 0;

  auto start = Clock::now();
  const double loss = trainer_->compute(*data_, samples_at(*order_, first, *own), share, first);
  done.compute_s = since(start);
  start = Clock::now();
  std::array<double, 1> losses = {*own > 0 ? loss * share : 0};
  auto summed = mesh_->sum(trainer_->exchange());
  if (summed) summed = mesh_->sum(std::span<double>(losses));
  if (!summed) return summed;
  done.exchange_s = since(start);
  done.samples = total;
  done.loss = adds_up && total > 0 ? losses[0] / static_cast<double>(total) : losses[0];
  pending_ =
      Pending{.first = lease.committed, .samples = total, .step = lease.step, .workers = form_->size, .done = done};
  line_.say(done);
  return {};
}

Result<void> Worker::evaluate(StepDone& done) {
  if (!validation_) return {};
  const auto part = trainer_->evaluate(*validation_, slice(validation_->size(), form_->rank, form_->size));
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
  breaker_.install(nullptr, -1);
  mesh_.reset();
  stands_ = false;
  line_.say(Broken{.formation = form_->formation, .what = what});
}

TrainerState Worker::state() const {
  TrainerState state{.sample = sample_, .step = step_, .loss = loss_, .seed = job_.train->seed, .job = job_.name};
  if (sample_ > 0) state.ledger = {{.first = 0, .count = sample_}};
  return state;
}

void Worker::write_checkpoint() {
  if (sample_ < 0) return line_.say(CheckpointFailed{.sample = 0, .what = "holds no state"});
  writer_.write(terms_.directory, state(), *trainer_);
}

void Worker::drop() {
  breaker_.forget();
  mesh_.reset();
  stands_ = false;
  form_.reset();
  pending_.reset();
  if (!trainer_) return;
  trainer_->reset();
  hold(0, 0);
}

int Worker::orphaned() {
  log("no word from the controller for {} s", terms_.orphan_s);
  writer_.finish();
  if (!trainer_ || sample_ <= 0 || !form_) return kOrphaned;
  // All orphans hold the same; whoever comes first writes.
  std::this_thread::sleep_for(Seconds(std::min(form_->rank, 10)));
  const auto newest = newest_checkpoint(terms_.directory).checkpoint;
  if (newest && newest->state.sample >= sample_) return kOrphaned;
  write_checkpoint();
  writer_.finish();
  return kOrphaned;
}

}  // namespace mayfly
