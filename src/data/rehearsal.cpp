#include "data/rehearsal.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "data/batch.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;
using Raws = std::vector<std::vector<std::byte>>;

/// Several threads take what is next until nothing is left.
Result<Seconds> read_all(RawSamples& source, const std::vector<std::int64_t>& samples, int readers, Raws& raws) {
  const auto start = Clock::now();
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  Result<void> done{};
  std::vector<std::thread> threads;
  for (int i = 0; i < readers; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < samples.size(); at = next++) {
        auto read = source.raw(samples[at], raws[at]);
        if (read) continue;
        const std::lock_guard lock(mutex);
        done = std::move(read);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!done) return unexpected(done.error());
  return Seconds(Clock::now() - start);
}

Result<Seconds> prepare_all(const Dataset& data, const Raws& raws, Batch& batch) {
  const auto start = Clock::now();
  const std::size_t length = batch.inputs.size() / raws.size(), labels = batch.labels.size() / raws.size();
  for (std::size_t i = 0; i < raws.size(); ++i) {
    auto prepared = data.prepare(batch.samples[i], raws[i], batch.inputs.span().subspan(i * length, length),
                                 batch.labels.span().subspan(i * labels, labels));
    if (!prepared) return unexpected(prepared.error());
  }
  return Seconds(Clock::now() - start);
}

}  // namespace

Result<Rehearsal> rehearse(const Dataset& data, const SampleOrder& order, std::optional<BytesPerSecond> storage,
                           std::int64_t count, int readers) {
  Rehearsal found{.samples = std::min(count, data.size())};
  if (found.samples <= 0) return found;
  std::vector<std::int64_t> samples(static_cast<std::size_t>(found.samples));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = order.sample_at(static_cast<std::int64_t>(i));
  Raws raws(samples.size());
  Storage slow(data, storage), quick(data);
  const auto read = read_all(slow, samples, readers, raws);
  if (!read) return unexpected(read.error());
  const auto reread = read_all(quick, samples, readers, raws);
  if (!reread) return unexpected(reread.error());
  for (const auto& raw : raws) found.bytes += static_cast<double>(raw.size());
  Batch batch = empty_batch(data, std::move(samples));
  const auto prepared = prepare_all(data, raws, batch);
  if (!prepared) return unexpected(prepared.error());
  found.read = *read;
  found.reread = *reread;
  found.prepare = *prepared;
  return found;
}

}  // namespace mayfly
