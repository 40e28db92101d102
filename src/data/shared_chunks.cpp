#include "data/shared_chunks.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "data/elapsed.h"
#include "data/new_file.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;
// Both follow from the data set alone, so that jobs with other batches can share.
constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::size_t kMemberBytes = 64 << 20;

std::size_t sample_bytes(const Dataset& data) {
  return data.length() * sizeof(float) + static_cast<std::size_t>(data.labels()) * sizeof(std::int64_t);
}

/// Few enough that preparing a chunk takes a part of a batch's time, in many that handing over costs little.
std::int64_t chunk_samples(const Dataset& data) {
  return static_cast<std::int64_t>(std::clamp<std::size_t>(kChunkBytes / sample_bytes(data), 4, 16));
}

}  // namespace

Result<std::unique_ptr<SharedChunks>> SharedChunks::join(const Dataset& data, const SampleOrder& order,
                                                         RawSamples& source, const Options& options) {
  const auto samples = chunk_samples(data);
  const auto size = static_cast<std::size_t>(samples);
  const auto buffers = std::clamp<std::size_t>(kMemberBytes / (size * sample_bytes(data)), 4, 32);
  const auto key = fmt::format("{} {} {} {}", options.identity, options.seed, data.size(), samples);
  auto prep = SharedPrep::join(
      {.name = options.name,
       .key = xxh3_of(key),
       .inputs = size * data.length(),
       .labels = size * static_cast<std::size_t>(data.labels()),
       .buffers = static_cast<int>(buffers),
       .ahead = static_cast<int>(std::min(options.ahead / samples + 1, static_cast<std::int64_t>(buffers))),
       .patience = options.patience});
  if (!prep) return unexpected(prep.error());
  return std::unique_ptr<SharedChunks>(new SharedChunks(data, order, source, samples, std::move(*prep)));
}

SharedChunks::SharedChunks(const Dataset& data, const SampleOrder& order, RawSamples& source, std::int64_t samples,
                           std::unique_ptr<SharedPrep> prep)
    : data_(data),
      order_(order),
      source_(source),
      samples_(samples),
      length_(data.length()),
      labels_(static_cast<std::size_t>(data.labels())),
      prep_(std::move(prep)) {}

Result<void> SharedChunks::read(SampleRange places, std::span<float> inputs, std::span<std::int64_t> labels,
                                PrepSpent& spent) {
  for (auto place = places.first; place < places.end();) {
    const auto number = place / samples_;
    const auto count = std::min(rest_of_chunk(place), places.end() - place);
    auto taken = chunk(number, spent);
    if (!taken) return unexpected(taken.error());
    auto& rest = **taken;
    const auto from = static_cast<std::size_t>(place - number * samples_),
               to = static_cast<std::size_t>(place - places.first);
    const auto n = static_cast<std::size_t>(count);
    std::copy_n(rest.inputs.data() + from * length_, n * length_, inputs.data() + to * length_);
    std::copy_n(rest.labels.data() + from * labels_, n * labels_, labels.data() + to * labels_);
    rest.unread -= count;
    if (rest.unread > 0) put_back(number, std::move(*taken));
    place += count;
  }
  return {};
}

Result<std::shared_ptr<SharedChunks::Rest>> SharedChunks::chunk(std::int64_t number, PrepSpent& spent) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = rests_.extract(number); !found.empty()) return std::move(found.mapped());
  }
  const auto size = static_cast<std::size_t>(samples_);
  auto rest = std::make_shared<Rest>(Rest{.inputs = AlignedArray<float>(size * length_),
                                          .labels = AlignedArray<std::int64_t>(size * labels_),
                                          .unread = samples_});
  auto taken = prep_->take(
      number,
      [&](std::int64_t other, std::span<float> inputs, std::span<std::int64_t> labels) {
        return prepare(other, inputs, labels, spent);
      },
      rest->inputs.span(), rest->labels.span());
  if (!taken) return unexpected(taken.error());
  return rest;
}

/// For the batch behind, which begins within the chunk. What no batch came for goes: the batches took another course.
void SharedChunks::put_back(std::int64_t number, std::shared_ptr<Rest> rest) {
  constexpr std::size_t kMost = 16;
  const std::lock_guard lock(mutex_);
  rests_[number] = std::move(rest);
  if (rests_.size() > kMost) rests_.erase(rests_.begin());
}

Result<void> SharedChunks::prepare(std::int64_t number, std::span<float> inputs, std::span<std::int64_t> labels,
                                   PrepSpent& spent) {
  std::vector<std::byte> raw;
  for (std::int64_t i = 0; i < samples_; ++i) {
    const auto sample = order_.sample_at(number * samples_ + i);
    auto start = Clock::now();
    if (auto fetched = source_.raw(sample, raw); !fetched) return fetched;
    spent.fetch_s += since(start);
    spent.fetched_bytes += static_cast<double>(raw.size());
    start = Clock::now();
    const auto at = static_cast<std::size_t>(i);
    auto prepared =
        data_.prepare(sample, raw, inputs.subspan(at * length_, length_), labels.subspan(at * labels_, labels_));
    spent.prep_s += since(start);
    if (!prepared) return prepared;
    ++spent.prepared;
  }
  return {};
}

}  // namespace mayfly
