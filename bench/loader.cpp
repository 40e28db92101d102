// loader [ROUNDS]: what the loader costs beside a bare loop that reads and copies, from files in the page cache; and
// epochs over data larger than the cache, where storage is emulated at a fixed rate: mayfly's cache, which replaces
// nothing, beside one that replaces what was used longest ago, as a page cache would. For the first, rounds alternate
// and processor time of all threads is taken, so that a busy machine slows all alike.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "data/byte_file.h"
#include "data/feed.h"
#include "data/loader.h"

namespace {

using namespace mayfly;
using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Samples of equal size in a file; preparing copies them.
class CopiedDataset final : public Dataset {
 public:
  CopiedDataset(ByteFile file, std::size_t bytes) : file_(std::move(file)), bytes_(bytes) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(file_.size() / bytes_); }
  std::vector<int> shape() const override { return {static_cast<int>(bytes_ / sizeof(float))}; }
  int labels() const override { return 1; }
  int classes() const override { return 2; }
  bool in_files() const override { return true; }
  Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const override {
    raw.resize(bytes_);
    return file_.read(static_cast<std::uint64_t>(sample) * bytes_, raw);
  }
  Result<void> prepare(std::int64_t, std::span<const std::byte> raw, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    std::memcpy(inputs.data(), raw.data(), raw.size());
    labels[0] = 0;
    return {};
  }

 private:
  ByteFile file_;
  std::size_t bytes_;
};

constexpr std::int64_t kBatch = 64;
constexpr std::size_t kAlive = 3;  ///< batches in memory at a time, as many as the loader has

/// Whatever was used longest ago makes room.
class LruSamples final : public RawSamples {
 public:
  LruSamples(std::size_t samples, RawSamples& below) : room_(samples), below_(below) {}
  Result<void> raw(std::int64_t sample, std::vector<std::byte>& out) override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = places_.find(sample);
      if (found != places_.end()) {
        order_.splice(order_.begin(), order_, found->second);
        out = found->second->second;
        ++hits_;
        return {};
      }
    }
    if (auto got = below_.raw(sample, out); !got) return got;
    const std::lock_guard lock(mutex_);
    order_.emplace_front(sample, out);
    places_[sample] = order_.begin();
    if (order_.size() > room_) {
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    return {};
  }
  SourceCounts counts() const override {
    auto counts = below_.counts();
    counts.hits = hits_;
    return counts;
  }

 private:
  using Held = std::list<std::pair<std::int64_t, std::vector<std::byte>>>;
  std::size_t room_;
  RawSamples& below_;
  std::mutex mutex_{};
  Held order_{};
  std::unordered_map<std::int64_t, Held::iterator> places_{};
  std::int64_t hits_ = 0;
};

/// Samples in a file that is gone at the end.
struct Files {
  Files(std::int64_t samples, std::size_t bytes)
      : path(std::filesystem::temp_directory_path() / fmt::format("mayfly-loader-{}", ::getpid())) {
    const auto saved = save_text(path, std::string(static_cast<std::size_t>(samples) * bytes, 'x'));
    if (!saved) fmt::print(stderr, "{}\n", saved.error().message);
    if (!saved) std::exit(1);
    data.emplace(std::move(*ByteFile::open(path)), bytes);
  }
  ~Files() { std::filesystem::remove(path); }
  std::filesystem::path path;
  std::optional<CopiedDataset> data{};
};

/// Of all threads.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

using Batches = std::array<AlignedArray<float>, kAlive>;
void bare_epoch(const ByteFile& file, const Dataset& data, const SampleOrder& order, const Batches& batches,
                std::int64_t epoch) {
  const auto bytes = data.length() * sizeof(float);
  std::vector<std::byte> raw(bytes);
  for (std::int64_t at = 0; at < data.size(); at += kBatch) {
    const auto& inputs = batches[static_cast<std::size_t>(at / kBatch) % kAlive];
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const auto sample = order.sample_at(epoch * data.size() + at + i);
      if (!file.read(static_cast<std::uint64_t>(sample) * bytes, raw)) std::exit(1);
      std::memcpy(inputs.data() + static_cast<std::size_t>(i) * data.length(), raw.data(), bytes);
    }
  }
}

double loaded_epoch(Loader& loader, std::int64_t samples, std::int64_t epoch) {
  const auto start = Clock::now();
  for (std::int64_t at = 0; at < samples; at += kBatch) {
    if (!loader.batch(epoch * samples + at, kBatch)) std::exit(1);
  }
  return since(start);
}

void print_throughput(int rounds) {
  fmt::print("| sample | bare read and copy | loader, no threads | loader, 1 prep thread | 2 prep threads |\n");
  fmt::print("| --- | --- | --- | --- | --- |\n");
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{32768}, std::size_t{131072}}) {
    const auto samples = static_cast<std::int64_t>(std::size_t{256} << 20) / static_cast<std::int64_t>(bytes);
    const Files files(samples, bytes);
    const auto& data = *files.data;
    const auto file = *ByteFile::open(files.path);
    const SampleOrder order(samples, 1);
    Storage storage(data);
    Batches batches;
    for (auto& batch : batches) batch = AlignedArray<float>(static_cast<std::size_t>(kBatch) * data.length());
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int threads = 0; threads < 3; ++threads)
      loaders.push_back(std::make_unique<Loader>(data, order, storage, LoaderOptions{.prep_threads = threads}));
    std::vector<double> rates;
    std::array<std::vector<double>, 3> ratios;
    for (int round = 0; round < rounds; ++round) {
      auto start = processor_seconds();
      bare_epoch(file, data, order, batches, round);
      const double bare = processor_seconds() - start;
      rates.push_back(static_cast<double>(samples) * static_cast<double>(bytes) / 1e6 / bare);
      for (std::size_t i = 0; i < loaders.size(); ++i) {
        start = processor_seconds();
        loaded_epoch(*loaders[i], samples, round);
        ratios[i].push_back(bare / (processor_seconds() - start));
      }
    }
    fmt::print("| {} kB | {:.0f} MB/s | {:.2f} | {:.2f} | {:.2f} |\n", bytes / 1024, median(rates), median(ratios[0]),
               median(ratios[1]), median(ratios[2]));
  }
}

struct Epochs {
  double seconds = 0;  ///< of one, after the first
  double hits = 0;     ///< share
};

Epochs epochs(const Dataset& data, RawSamples& source, std::int64_t count) {
  const SampleOrder order(data.size(), 1);
  Loader loader(data, order, source, {.prep_threads = 1});
  loaded_epoch(loader, data.size(), 0);
  const auto before = source.counts();
  Epochs result;
  for (std::int64_t epoch = 1; epoch <= count; ++epoch) result.seconds += loaded_epoch(loader, data.size(), epoch);
  const auto after = source.counts();
  const auto hits = static_cast<double>(after.hits - before.hits);
  result.hits = hits / (hits + static_cast<double>(after.from_storage - before.from_storage));
  result.seconds /= static_cast<double>(count);
  return result;
}

void print_caches() {
  constexpr std::int64_t kSamples = 4096;
  constexpr std::size_t kBytes = 32768;
  constexpr BytesPerSecond kRate{300e6};
  const Files files(kSamples, kBytes);
  const double whole = static_cast<double>(kSamples * static_cast<std::int64_t>(kBytes)) / kRate.value;
  fmt::print("\n| cached | mayfly: hits | epoch | by formula | LRU: hits | by formula | epoch | by formula |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const double share : {.25, .35, .5, .65, .8, .9}) {
    const auto room = static_cast<std::size_t>(share * kSamples);
    Storage storage(*files.data, kRate), other(*files.data, kRate);
    SampleCache cache(room * kBytes);
    CachedSamples cached(cache, storage);
    LruSamples lru(room, other);
    const auto own = epochs(*files.data, cached, 3), theirs = epochs(*files.data, lru, 3);
    const double a = 1 - share, lru_hits = 1 - a + a * std::log(a);
    fmt::print("| {:.0f} % | {:.1f} % | {:.3f} s | {:.3f} s | {:.1f} % | {:.1f} % | {:.3f} s | {:.3f} s |\n",
               100 * share, 100 * own.hits, own.seconds, (1 - share) * whole, 100 * theirs.hits, 100 * lru_hits,
               theirs.seconds, (1 - lru_hits) * whole);
  }
}

}  // namespace

int main(int argc, char** argv) {
  print_throughput(argc > 1 ? std::atoi(argv[1]) : 9);
  print_caches();
}
