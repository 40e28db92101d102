#include "data/loader.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "data/elapsed.h"

// A batch that was begun is a Work, cut into slices. A slice is fetched and prepared by one thread, straight into its
// place in the batch; or, where storage is slow, fetched by one, kept in fetched_, and prepared by another. Not always
// the latter: with files in memory, handing slices over took more than half of the throughput, as their bytes had left
// the processor's cache (docs/benchmarks.md#loader). The thread that finishes the last slice wakes the trainer.
namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;
/// How long this thread waits for something, busy processors excepted: by wall time alone a machine with more to do
/// than cores would be taken for one with slow storage.
class BlockedTime {
 public:
  BlockedTime() : start_(usage()), wall_(Clock::now()) {}
  /// Nothing, where it gave its processor up of itself for less than every eighth of these reads.
  Seconds over(std::size_t reads) const {
    const auto now = usage();
    if (static_cast<std::size_t>(now.ru_nvcsw - start_.ru_nvcsw) * 8 < reads + 7) return Seconds(0);
    return std::max(Seconds(0), Seconds(Clock::now() - wall_) - (processor(now) - processor(start_)));
  }

 private:
  static rusage usage() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage;
  }
  static Seconds processor(const rusage& usage) {
    const auto seconds = [](const timeval& time) {
      return Seconds(static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec));
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  rusage start_;
  Clock::time_point wall_;
};

std::vector<std::int64_t> samples_of(const SampleOrder& order, SampleRange range) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(range.count));
  for (auto& sample : samples) sample = order.sample_at(range.first++);
  return samples;
}

}  // namespace

std::string sentence(const LoaderCounts& counts) {
  auto text = fmt::format(
      "waited {:.2f} s for data; {} samples prepared in {:.2f} s, {} of them in vain; {:.2f} MB fetched in {:.2f} s",
      counts.wait_s, counts.prepared, counts.prep_s, counts.discarded, in_megabytes(Bytes{counts.fetched_bytes}),
      counts.fetch_s);
  const auto asked = static_cast<double>(counts.hits + counts.from_peers + counts.from_storage);
  if (counts.hits > 0) text += fmt::format(", {:.1f} % from the cache", 100 * static_cast<double>(counts.hits) / asked);
  if (counts.from_peers > 0)
    text += fmt::format(", {:.1f} % from peers", 100 * static_cast<double>(counts.from_peers) / asked);
  if (counts.peers_failed > 0) text += fmt::format(", peers asked in vain {} times", counts.peers_failed);
  if (counts.received > 0) text += fmt::format("; {} samples prepared by other jobs", counts.received);
  return text;
}

struct Loader::Work {
  SampleRange range{};
  Batch batch{};
  std::size_t taken = 0;     ///< samples whose slices are with some thread, or done
  std::size_t prepared = 0;  ///< samples
  bool dropped = false;      ///< no caller wants it any more
  std::optional<Error> error{};
  bool done() const { return error.has_value() || prepared == batch.samples.size(); }
};

Loader::Loader(const Dataset& data, const SampleOrder& order, RawSamples& source, LoaderOptions options)
    : data_(data),
      order_(order),
      source_(source),
      options_(options),
      length_(data.length()),
      labels_(static_cast<std::size_t>(data.labels())) {
  if (options_.prep_threads == 0) return;
  MAYFLY_CHECK(options_.prep_threads > 0 && options_.fetch_threads > 0 && options_.ahead >= 0, "loader options");
  // A thread that prepares what is shared also fetches it: another job may have prepared it, and then fetching it
  // beforehand would have been for nothing.
  for (int i = 0; i < options_.fetch_threads && options_.shared == nullptr; ++i)
    threads_.emplace_back([this] { fetch_slices(); });
  for (int i = 0; i < options_.prep_threads; ++i) threads_.emplace_back([this] { prepare_slices(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  // Threads that wait for other jobs hear none of our conditions.
  if (options_.shared != nullptr) options_.shared->stop();
  to_fetch_.notify_all();
  to_prepare_.notify_all();
  for (auto& thread : threads_) thread.join();
}

Result<Batch> Loader::batch(std::int64_t first, std::int64_t count) {
  MAYFLY_CHECK(first >= 0 && count >= 0, "places of the run");
  const SampleRange range{.first = first, .count = count};
  if (options_.prep_threads == 0 || count == 0) return read_here(range);
  const auto start = Clock::now();
  std::unique_lock lock(mutex_);
  note_stride(range);
  plan(guessed(range));
  const auto work = works_.front();  // the range asked for is the first of those guessed
  ready_.wait(lock, [&] { return work->done(); });
  works_.pop_front();
  counts_.wait_s += since(start);
  if (work->error) {
    const Error error = *work->error;
    // Other threads may still be at slices of it: they hold it too, and find it dropped.
    drop(*work);
    return unexpected(error);
  }
  return std::move(work->batch);
}

void Loader::expect(std::int64_t first, std::int64_t count, std::int64_t stride) {
  MAYFLY_CHECK(first >= 0 && count >= 0 && stride >= count, "places of the run");
  if (options_.prep_threads == 0 || count == 0) return;
  const std::lock_guard lock(mutex_);
  told_ = true;
  told_stride_ = stride;
  plan(guessed({.first = first, .count = count}));
}

LoaderCounts Loader::counts() const {
  const std::lock_guard lock(mutex_);
  auto counts = counts_;
  const auto source = source_.counts();
  counts.hits = source.hits;
  counts.from_peers = source.from_peers;
  counts.from_storage = source.from_storage;
  counts.peers_failed = source.peers_failed;
  counts.storage_bytes = source.storage_bytes;
  if (options_.shared != nullptr) counts.received = options_.shared->received();
  return counts;
}

bool Loader::expected(SampleRange range) const {
  return std::any_of(works_.begin(), works_.end(), [&](const auto& work) { return work->range == range; });
}

void Loader::note_stride(SampleRange range) {
  // The trainer does something else than was told; what it does now says more.
  if (!expected(range)) told_ = false;
  if (last_) {
    const auto stride = range.first - last_->first;
    steady_ = !stride_ || *stride_ == stride;
    stride_ = stride;
  }
  last_ = range;
}

/// This batch and those that will follow it. A stride that keeps changing foretells nothing.
std::vector<SampleRange> Loader::guessed(SampleRange range) const {
  std::vector<SampleRange> ranges{range};
  const auto stride = told_ ? told_stride_ : stride_ && steady_ ? *stride_ : 0;
  // Shorter than the batch: not known, or the run goes back to samples that it had.
  if (stride < range.count) return ranges;
  for (int i = 1; i <= options_.ahead; ++i) ranges.push_back({range.first + i * stride, range.count});
  return ranges;
}

void Loader::plan(const std::vector<SampleRange>& ranges) {
  auto before = std::exchange(works_, {});
  for (const auto& range : ranges) {
    const auto found =
        std::find_if(before.begin(), before.end(), [&](const auto& work) { return work && work->range == range; });
    works_.push_back(found != before.end() ? std::exchange(*found, nullptr) : begun(range));
  }
  for (const auto& work : before) {
    if (work) drop(*work);
  }
  if (apart_) {
    to_fetch_.notify_all();
  } else {
    to_prepare_.notify_all();
  }
}

std::shared_ptr<Loader::Work> Loader::begun(SampleRange range) {
  auto work = std::make_shared<Work>();
  work->range = range;
  work->batch = empty_batch(data_, samples_of(order_, range), memory_);
  return work;
}

void Loader::drop(Work& work) {
  work.dropped = true;
  counts_.discarded += static_cast<std::int64_t>(work.prepared);
  std::erase_if(fetched_, [&](const Slice& slice) { return slice.work.get() == &work; });
}

Result<Batch> Loader::read_here(SampleRange range) {
  const auto start = Clock::now();
  Slice slice{.work = std::make_shared<Work>(), .count = static_cast<std::size_t>(range.count)};
  slice.work->range = range;
  auto& batch = slice.work->batch;
  batch = empty_batch(data_, samples_of(order_, range), memory_);
  LoaderCounts spent;
  const auto read = fetch_and_prepare(slice, spent);
  const std::lock_guard lock(mutex_);
  spent.wait_s = since(start);
  add(spent);
  if (!read) return unexpected(read.error());
  return std::move(batch);
}

Result<void> Loader::fetch_and_prepare(Slice& slice, LoaderCounts& spent) {
  if (options_.shared != nullptr) return prepare_shared(slice, spent);
  // One buffer for all samples: each is prepared while its bytes are in the processor's cache.
  slice.raws.resize(std::max<std::size_t>(1, slice.raws.size()));
  auto& raw = slice.raws[0];
  Result<void> done;
  auto start = Clock::now();
  for (std::size_t i = slice.first; i < slice.first + slice.count && done; ++i) {
    done = source_.raw(slice.work->batch.samples[i], raw);
    const auto fetched = Clock::now();
    if (done) done = prepare(slice.work->batch, i, raw);
    const auto prepared = Clock::now();
    spent.fetch_s += Seconds(fetched - start).count();
    spent.prep_s += Seconds(prepared - fetched).count();
    start = prepared;
    if (!done) break;
    spent.fetched_bytes += static_cast<double>(raw.size());
    ++spent.prepared;
  }
  return done;
}

bool Loader::has_unfetched() const {
  return std::any_of(works_.begin(), works_.end(),
                     [](const auto& work) { return !work->error && work->taken < work->batch.samples.size(); });
}

/// Without a bound, threads that fetch faster than the others prepare would fill the memory with raw samples.
bool Loader::has_room() const {
  return fetched_.size() + fetching_ < static_cast<std::size_t>(2 * (options_.prep_threads + options_.fetch_threads));
}

/// Small enough that all threads take part in a batch, large enough that handing over costs little.
std::size_t Loader::slice_size(std::size_t batch) const {
  constexpr double kWorthwhile = 2e-4;  // s
  const auto threads = static_cast<std::size_t>(options_.prep_threads);
  const auto largest = (batch + threads - 1) / threads;
  const auto quick = busy_ > 0 ? static_cast<std::size_t>(std::min(kWorthwhile / busy_, 1e6)) : 0;
  return std::clamp(std::max(batch / (4 * threads), quick), std::size_t{1}, largest);
}

Loader::Slice Loader::next_to_fetch() {
  const auto& work = *std::find_if(works_.begin(), works_.end(), [](const auto& one) {
    return !one->error && one->taken < one->batch.samples.size();
  });
  Slice slice{.work = work, .first = work->taken};
  const auto place = work->range.first + static_cast<std::int64_t>(work->taken);
  const auto most = options_.shared == nullptr ? slice_size(work->batch.samples.size())
                                               : static_cast<std::size_t>(options_.shared->rest_of_chunk(place));
  slice.count = std::min(most, work->batch.samples.size() - work->taken);
  work->taken += slice.count;
  if (!spare_.empty()) {
    slice.raws = std::move(spare_.back());
    spare_.pop_back();
  }
  return slice;
}

/// Fetching is worth threads of its own where waiting for storage takes a good part of the time.
void Loader::note_pace(const LoaderCounts& spent, Seconds blocked) {
  constexpr double kSmoothing = .2, kWorthwhile = .25;
  const auto samples = static_cast<double>(spent.prepared);
  // What is shared with other jobs has no fetch threads that could take over.
  if (samples == 0 || options_.shared != nullptr) return;
  const double rest = std::max(0.0, spent.fetch_s + spent.prep_s - blocked.count());
  blocked_ += kSmoothing * (blocked.count() / samples - blocked_);
  busy_ += kSmoothing * (rest / samples - busy_);
  const bool apart = blocked_ > kWorthwhile * busy_;
  if (apart == apart_) return;
  apart_ = apart;
  to_fetch_.notify_all();
  to_prepare_.notify_all();
}

void Loader::fetch_slices() {
  std::unique_lock lock(mutex_);
  while (true) {
    to_fetch_.wait(lock, [&] { return stopping_ || (apart_ && has_room() && has_unfetched()); });
    if (stopping_) return;
    auto slice = next_to_fetch();
    slice.raws.resize(std::max(slice.raws.size(), slice.count));
    ++fetching_;
    lock.unlock();
    LoaderCounts spent;
    const BlockedTime timer;
    const auto done = fetch(slice, spent);
    slice.blocked = timer.over(slice.count);
    slice.fetch_s = spent.fetch_s;
    lock.lock();
    --fetching_;
    add(spent);
    if (!done || slice.work->dropped) {
      finish(std::move(slice), done);
    } else {
      fetched_.push_back(std::move(slice));
      to_prepare_.notify_one();
    }
  }
}

void Loader::prepare_slices() {
  std::unique_lock lock(mutex_);
  while (true) {
    to_prepare_.wait(lock, [&] { return stopping_ || !fetched_.empty() || (!apart_ && has_unfetched()); });
    if (stopping_) return;
    // What is fetched goes first, also when fetching is with the prep threads again: it holds memory.
    const bool fetched = !fetched_.empty();
    auto slice = fetched ? std::move(fetched_.front()) : next_to_fetch();
    if (fetched) fetched_.pop_front();
    if (fetched) to_fetch_.notify_one();
    lock.unlock();
    LoaderCounts spent;
    const BlockedTime timer;
    const auto done = fetched ? prepare(slice, spent) : fetch_and_prepare(slice, spent);
    if (!fetched) slice.blocked = timer.over(slice.count);
    lock.lock();
    add(spent);
    if (!slice.work->dropped) {
      slice.work->prepared += done ? slice.count : 0;
    } else if (options_.shared == nullptr) {  // other jobs may take what was prepared with them
      counts_.discarded += spent.prepared;
    }
    spent.fetch_s += slice.fetch_s;
    note_pace(spent, slice.blocked);
    finish(std::move(slice), done);
  }
}

void Loader::finish(Slice slice, const Result<void>& done) {
  if (!done && !slice.work->error) slice.work->error = done.error();
  // Used again: the kernel would clear fresh memory first.
  spare_.push_back(std::move(slice.raws));
  if (slice.work->done()) ready_.notify_all();
}

Result<void> Loader::fetch(Slice& slice, LoaderCounts& spent) {
  const auto start = Clock::now();
  Result<void> done;
  for (std::size_t i = 0; i < slice.count && done; ++i) {
    done = source_.raw(slice.work->batch.samples[slice.first + i], slice.raws[i]);
    if (done) spent.fetched_bytes += static_cast<double>(slice.raws[i].size());
  }
  spent.fetch_s += since(start);
  return done;
}

Result<void> Loader::prepare(const Slice& slice, LoaderCounts& spent) {
  const auto start = Clock::now();
  Result<void> done;
  for (std::size_t i = 0; i < slice.count && done; ++i) {
    done = prepare(slice.work->batch, slice.first + i, slice.raws[i]);
    if (done) ++spent.prepared;
  }
  spent.prep_s += since(start);
  return done;
}

Result<void> Loader::prepare_shared(const Slice& slice, LoaderCounts& spent) {
  const auto& batch = slice.work->batch;
  PrepSpent own;
  auto done = options_.shared->read({.first = slice.work->range.first + static_cast<std::int64_t>(slice.first),
                                     .count = static_cast<std::int64_t>(slice.count)},
                                    batch.inputs.span().subspan(slice.first * length_, slice.count * length_),
                                    batch.labels.span().subspan(slice.first * labels_, slice.count * labels_), own);
  spent.fetch_s += own.fetch_s;
  spent.prep_s += own.prep_s;
  spent.fetched_bytes += own.fetched_bytes;
  spent.prepared += own.prepared;
  return done;
}

Result<void> Loader::prepare(const Batch& batch, std::size_t i, std::span<const std::byte> raw) const {
  return data_.prepare(batch.samples[i], raw, batch.inputs.span().subspan(i * length_, length_),
                       batch.labels.span().subspan(i * labels_, labels_));
}

void Loader::add(const LoaderCounts& spent) {
  counts_.fetch_s += spent.fetch_s;
  counts_.prep_s += spent.prep_s;
  counts_.wait_s += spent.wait_s;
  counts_.fetched_bytes += spent.fetched_bytes;
  counts_.prepared += spent.prepared;
}

}  // namespace mayfly
