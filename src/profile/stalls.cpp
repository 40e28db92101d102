#include "profile/stalls.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;

/// Of one segment at most; many rounds are worth more than long ones.
constexpr double kSegment_s = 0.8;
constexpr int kFewestSteps = 6, kMostSteps = 400;
/// Steps at the beginning of a segment while queues fill and caches of the processor warm up.
constexpr int kWarmUp = 3;
/// An interval of 95 % needs six.
constexpr double kRoundsWanted = 8;
constexpr double kSegmentsInARound = 5;

enum class Condition { one, all, cold, warm };

Segment segment_of(Condition condition, int batch, int steps) {
  Segment segment{.steps = steps + kWarmUp, .batch = batch};
  segment.data = condition == Condition::cold   ? SampleFeed::cold
                 : condition == Condition::warm ? SampleFeed::warm
                                                : SampleFeed::synthetic;
  return segment;
}

double mean_step(const SegmentResult& result) {
  const auto& steps = result.step_s;
  const auto skipped = std::min<std::size_t>(kWarmUp, steps.size() / 2);
  const double sum = std::accumulate(steps.begin() + static_cast<std::ptrdiff_t>(skipped), steps.end(), 0.0);
  return sum / static_cast<double>(steps.size() - skipped);
}

/// What the workers of a segment used, added up.
struct Used {
  double prep_s = 0, fetch_s = 0, fetched_bytes = 0, cpu_s = 0, steps = 0, seconds = 0;
  double prepared = 0, fetched = 0;
  int threads = 0;

  void add(const SegmentResult& result) {
    int now = 0;
    for (const WorkerSteps& worker : result.workers) {
      const Measurement& used = worker.used;
      prep_s += used.prep_s;
      fetch_s += used.fetch_s;
      fetched_bytes += used.fetched_mb * 1e6;
      cpu_s += used.cpu_s;
      prepared += static_cast<double>(used.prepared);
      fetched += static_cast<double>(used.hits + used.from_peers + used.from_storage);
      now += used.prep_threads;
    }
    threads = now;
    steps += static_cast<double>(result.step_s.size());
    seconds += std::accumulate(result.step_s.begin(), result.step_s.end(), 0.0);
  }
};

class Examination {
 public:
  explicit Examination(const StallQuestion& question) : question_(question), start_(Clock::now()) {}
  Result<StallReport> run();

 private:
  double elapsed() const { return Seconds(Clock::now() - start_).count(); }
  Result<void> open();
  Result<void> calibrate();
  Result<void> round();
  Result<double> step(Condition condition);
  StallReport report(bool interrupted) const;
  DataPath path(const Stalls& found) const;

  const StallQuestion& question_;
  const Clock::time_point start_;
  std::unique_ptr<Workshop> shop_{}, spread_{};
  StallRuns runs_{};
  Used synthetic_{}, cold_{}, warm_{};
  int steps_ = kFewestSteps;
};

Result<void> Examination::open() {
  auto shop = Workshop::open(question_.shop);
  if (!shop) return unexpected(shop.error());
  shop_ = *std::move(shop);
  if (!question_.network) return {};
  Workshop::Options apart = question_.shop;
  apart.directory /= "apart";
  apart.limits.network = question_.network;
  auto spread = Workshop::open(std::move(apart));
  if (!spread) return unexpected(spread.error());
  spread_ = *std::move(spread);
  return {};
}

Result<void> Examination::calibrate() {
  const auto first = shop_->measure(segment_of(Condition::all, question_.batch, kFewestSteps));
  if (!first) return unexpected(first.error());
  const double step = std::max(1e-6, mean_step(*first));
  const double segment_s = std::min(kSegment_s, question_.time.count() / (kRoundsWanted * kSegmentsInARound));
  steps_ = std::clamp(static_cast<int>(segment_s / step), kFewestSteps, kMostSteps);
  // A segment must not meet its own samples again.
  const double samples = static_cast<double>(shop_->ready().front().samples);
  const int most = static_cast<int>(samples / (question_.batch * question_.shop.workers)) - kWarmUp;
  if (most < 2)
    return fail("{:g} samples are too few: {} devices with batches of {} take more in a few steps", samples,
                question_.shop.workers, question_.batch);
  steps_ = std::min(steps_, most);
  return {};
}

Result<double> Examination::step(Condition condition) {
  auto result = shop_->measure(segment_of(condition, question_.batch, steps_), condition == Condition::one ? 1 : 0);
  if (!result) return unexpected(result.error());
  if (condition == Condition::all) synthetic_.add(*result);
  if (condition == Condition::cold) cold_.add(*result);
  if (condition == Condition::warm) warm_.add(*result);
  return mean_step(*result);
}

Result<void> Examination::round() {
  StallRuns now;
  for (const auto& [condition, times] : {std::pair{Condition::one, &now.one}, {Condition::all, &now.all},
                                         {Condition::cold, &now.cold}, {Condition::warm, &now.warm}}) {
    const auto time = step(condition);
    if (!time) return unexpected(time.error());
    times->push_back(*time);
  }
  if (spread_) {
    const auto result = spread_->measure(segment_of(Condition::all, question_.batch, steps_));
    if (!result) return unexpected(result.error());
    runs_.machines.push_back(mean_step(*result));
  }
  runs_.one.push_back(now.one.front());
  runs_.all.push_back(now.all.front());
  runs_.cold.push_back(now.cold.front());
  runs_.warm.push_back(now.warm.front());
  return {};
}

DataPath Examination::path(const Stalls& found) const {
  const auto& loader = question_.shop.spec.train->data.loader;
  const double together = question_.batch * question_.shop.workers;
  DataPath path{.device = together / signed_rank_interval(runs_.all).value};
  if (warm_.prep_s > 0) path.prep = warm_.prepared / warm_.prep_s;
  path.threads = std::max(1, warm_.threads);
  path.cores = std::thread::hardware_concurrency();
  if (synthetic_.steps > 0) path.device_core_s = synthetic_.cpu_s / (synthetic_.steps * together);
  if (cold_.fetched > 0) path.sample = {cold_.fetched_bytes / cold_.fetched};
  // Where training waited for storage, it took what storage gave; elsewhere each thread's reads tell.
  if (loader.storage)
    path.storage = *loader.storage;
  else if (found.fetch.certain() && cold_.seconds > 0)
    path.storage = {cold_.fetched_bytes / cold_.seconds};
  else if (cold_.fetch_s > 0)
    path.storage = {cold_.fetched_bytes / cold_.fetch_s};
  if (warm_.fetch_s > 0) path.memory = {warm_.fetched_bytes / warm_.fetch_s};
  const double data_set = path.sample.value * static_cast<double>(shop_->ready().front().samples);
  if (data_set > 0) path.cached = std::min(1.0, megabytes(loader.cache_mb).value / data_set);
  path.partitioned = loader.partitioned;
  if (question_.network) path.network = *question_.network;
  return path;
}

StallReport Examination::report(bool interrupted) const {
  StallReport report{.devices = question_.shop.workers,
                     .batch = question_.batch,
                     .rounds = static_cast<int>(runs_.one.size()),
                     .steps = steps_,
                     .stalls = *stalls(runs_),
                     .sample_count = static_cast<double>(shop_->ready().front().samples),
                     .interrupted = interrupted};
  report.path = path(report.stalls);
  const double together = question_.batch * question_.shop.workers;
  if (report.path.prep > 0) report.busy.prep_s = together / (report.path.prep * report.path.threads);
  if (report.path.storage.value > 0)
    report.busy.fetch_s = together * report.path.sample.value / report.path.storage.value;
  return report;
}

Result<StallReport> Examination::run() {
  if (auto opened = open(); !opened) return unexpected(opened.error());
  if (auto calibrated = calibrate(); !calibrated) return unexpected(calibrated.error());
  double longest = 0;
  while (runs_.one.empty() || elapsed() + longest < question_.time.count()) {
    const double begin = elapsed();
    auto done = round();
    const bool interrupted = shop_->interrupted() || (spread_ && spread_->interrupted());
    // A round that was cut off counts for nothing; those before it do.
    if (!done && (!interrupted || runs_.one.empty())) return unexpected(done.error());
    if (interrupted) return report(true);
    longest = std::max(longest, elapsed() - begin);
    if (question_.progress) question_.progress(std::min(1.0, elapsed() / question_.time.count()));
  }
  return report(false);
}

Json stall_json(const Stall& stall) {
  return {{"seconds", stall.seconds.value},
          {"seconds_low", stall.seconds.low},
          {"seconds_high", stall.seconds.high},
          {"share", stall.share}};
}

}  // namespace

Result<StallReport> find_stalls(const StallQuestion& question) { return Examination(question).run(); }

Json stalls_json(const StallReport& report) {
  const DataPath& path = report.path;
  Json json{{"devices", report.devices},
            {"batch", report.batch},
            {"rounds", report.rounds},
            {"steps", report.steps},
            {"step_s", report.stalls.step.value},
            {"interconnect", stall_json(report.stalls.interconnect)},
            {"prep", stall_json(report.stalls.prep)},
            {"fetch", stall_json(report.stalls.fetch)},
            {"prep_busy_s", report.busy.prep_s},
            {"fetch_busy_s", report.busy.fetch_s}};
  if (report.stalls.network) json["network"] = stall_json(*report.stalls.network);
  json["path"] = {{"device_samples_per_s", path.device},
                  {"device_core_s", path.device_core_s},
                  {"prep_samples_per_s_per_thread", path.prep},
                  {"prep_threads", path.threads},
                  {"cores", path.cores},
                  {"sample_bytes", path.sample.value},
                  {"storage_mb_per_s", in_megabytes(path.storage)},
                  {"memory_mb_per_s", in_megabytes(path.memory)},
                  {"cached", path.cached}};
  return json;
}

}  // namespace mayfly
