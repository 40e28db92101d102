#include "profile/stalls.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;

/// Of one segment at most; many rounds are worth more than long ones.
constexpr double kSegment_s = 0.8;
constexpr int kFewestSegmentSteps = 6, kMostSegmentSteps = 400;
/// Steps at the beginning of a segment while queues fill and caches of the processor warm up.
constexpr int kSegmentWarmUp = 3;
/// An interval of 95 % needs six.
constexpr double kRoundsWanted = 8;
constexpr double kSegmentsInARound = 5;
/// Steps' worth of samples for a look at each stage of the data's way by itself, in each round.
constexpr int kRehearsedSteps = 2;

enum class Condition { one, all, cold, warm };

Segment segment_of(Condition condition, int batch, int steps) {
  Segment segment{.steps = steps + kSegmentWarmUp, .batch = batch};
  segment.data = condition == Condition::cold   ? SampleSource::cold
                 : condition == Condition::warm ? SampleSource::warm
                                                : SampleSource::synthetic;
  return segment;
}

double mean_step(const SegmentResult& result) {
  const auto& steps = result.step_s;
  const auto skipped = std::min<std::size_t>(kSegmentWarmUp, steps.size() / 2);
  const double sum = std::accumulate(steps.begin() + static_cast<std::ptrdiff_t>(skipped), steps.end(), 0.0);
  return sum / static_cast<double>(steps.size() - skipped);
}

/// What was seen beside the times of steps, added up over all rounds.
struct Seen {
  double samples = 0, bytes = 0, read_s = 0, reread_s = 0, prepare_s = 0;  ///< of rehearsals
  double cpu_s = 0, trained = 0;                                           ///< of training alone, and its samples
  int threads = 0;                                                         ///< that prepare, of one device

  void rehearsed(const Measurement& look) {
    samples += static_cast<double>(look.rehearsed);
    bytes += 1e6 * look.rehearsed_mb;
    read_s += look.read_s;
    reread_s += look.reread_s;
    prepare_s += look.prepare_s;
  }
  void trained_by(const SegmentResult& result, int batch) {
    threads = 0;
    for (const WorkerSteps& worker : result.workers) {
      cpu_s += worker.used.cpu_s;
      trained += static_cast<double>(worker.step_s.size()) * batch;
      threads += worker.used.prep_threads;
    }
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
  DataPath path() const;

  const StallQuestion& question_;
  const Clock::time_point start_;
  std::unique_ptr<Workshop> shop_{}, spread_{};
  StallRuns runs_{};
  Seen seen_{};
  int steps_ = kFewestSegmentSteps;
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
  const auto first = shop_->measure(segment_of(Condition::all, question_.batch, kFewestSegmentSteps));
  if (!first) return unexpected(first.error());
  const double step = std::max(1e-6, mean_step(*first));
  const double segment_s = std::min(kSegment_s, question_.time.count() / (kRoundsWanted * kSegmentsInARound));
  steps_ = std::clamp(static_cast<int>(segment_s / step), kFewestSegmentSteps, kMostSegmentSteps);
  // A segment must not meet its own samples again.
  const double samples = static_cast<double>(shop_->ready().front().samples);
  const int most = static_cast<int>(samples / (question_.batch * question_.shop.workers)) - kSegmentWarmUp;
  if (most < 2)
    return fail("{:g} samples are too few: {} devices with batches of {} take more in a few steps", samples,
                question_.shop.workers, question_.batch);
  steps_ = std::min(steps_, most);
  return {};
}

Result<double> Examination::step(Condition condition) {
  const bool alone = condition == Condition::one;
  Segment segment = segment_of(condition, question_.batch, steps_);
  if (alone) segment.rehearse = question_.batch * kRehearsedSteps;
  auto result = shop_->measure(segment, alone ? 1 : 0);
  if (!result) return unexpected(result.error());
  if (alone) seen_.rehearsed(result->looks.front());
  if (alone) seen_.trained_by(*result, question_.batch);
  return mean_step(*result);
}

/// With a single device `one` and `all` are the same condition.
Result<void> Examination::round() {
  const bool several = question_.shop.workers > 1;
  std::map<Condition, double> times;
  for (const Condition condition : {Condition::one, Condition::all, Condition::cold, Condition::warm}) {
    if (condition == Condition::all && !several) continue;
    const auto time = step(condition);
    if (!time) return unexpected(time.error());
    times[condition] = *time;
  }
  std::optional<double> apart;
  if (spread_) {
    const auto result = spread_->measure(segment_of(Condition::all, question_.batch, steps_));
    if (!result) return unexpected(result.error());
    apart = mean_step(*result);
  }
  runs_.one.push_back(times[Condition::one]);
  runs_.all.push_back(times[several ? Condition::all : Condition::one]);
  runs_.cold.push_back(times[Condition::cold]);
  runs_.warm.push_back(times[Condition::warm]);
  if (apart) runs_.machines.push_back(*apart);
  return {};
}

DataPath Examination::path() const {
  const auto& loader = question_.shop.spec.train->data.loader;
  const double devices = question_.shop.workers;
  const double one = signed_rank_interval(runs_.one).value, all = signed_rank_interval(runs_.all).value;
  DataPath path{.device = question_.batch * devices / one};
  path.exchange_s = std::max(0.0, all - one) / (question_.batch * devices);
  path.cores = std::thread::hardware_concurrency();
  if (seen_.trained > 0) path.device_core_s = seen_.cpu_s / seen_.trained;
  if (seen_.samples <= 0) return path;
  path.prep = seen_.samples / seen_.prepare_s;
  path.threads = devices * std::max(1, seen_.threads);
  path.sample = {seen_.bytes / seen_.samples};
  // An emulated rate is each worker's own.
  path.storage = loader.storage ? devices * *loader.storage : BytesPerSecond{seen_.bytes / seen_.read_s};
  path.memory = {seen_.bytes / seen_.reread_s};
  path.partitioned = loader.partitioned;
  if (question_.network) path.network = *question_.network;
  const double data_set = path.sample.value * static_cast<double>(shop_->ready().front().samples);
  if (data_set > 0) path.cached = std::min(1.0, megabytes(loader.cache_mb).value / data_set);
  return path;
}

StallReport Examination::report(bool interrupted) const {
  StallReport report{.devices = question_.shop.workers,
                     .batch = question_.batch,
                     .rounds = static_cast<int>(runs_.one.size()),
                     .steps = steps_,
                     .stalls = *stalls(runs_),
                     .interrupted = interrupted};
  report.path = path();
  const double together = question_.batch * question_.shop.workers;
  if (report.path.prep > 0) report.busy.prep_s = together / (report.path.prep * report.path.threads);
  if (report.path.storage.value > 0)
    report.busy.fetch_s = together * report.path.sample.value / report.path.storage.value;
  return report;
}

Result<StallReport> Examination::run() {
  auto ready = open();
  if (ready) ready = calibrate();
  if (!ready && shop_ && shop_->interrupted()) return StallReport{.interrupted = true};
  if (!ready) return unexpected(ready.error());
  double longest = 0;
  while (runs_.one.empty() || elapsed() + longest < question_.time.count()) {
    const double begin = elapsed();
    auto done = round();
    const bool interrupted = shop_->interrupted() || (spread_ && spread_->interrupted());
    // A round that was cut off counts for nothing; those before it do.
    if (!done && !interrupted) return unexpected(done.error());
    if (interrupted) return runs_.one.empty() ? StallReport{.interrupted = true} : report(true);
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
  Json json{{"devices", report.devices},
            {"batch", report.batch},
            {"step_s", report.stalls.step.value},
            {"interconnect", stall_json(report.stalls.interconnect)},
            {"prep", stall_json(report.stalls.prep)},
            {"fetch", stall_json(report.stalls.fetch)}};
  if (report.stalls.network) json["network"] = stall_json(*report.stalls.network);
  return json;
}

Json path_json(const StallReport& report) {
  const DataPath& path = report.path;
  return {{"rounds", report.rounds},
          {"steps", report.steps},
          {"prep_busy_s", report.busy.prep_s},
          {"fetch_busy_s", report.busy.fetch_s},
          {"device_samples_per_s", path.device},
          {"device_core_s", path.device_core_s},
          {"exchange_s_per_sample", path.exchange_s},
          {"prep_samples_per_s_per_thread", path.prep},
          {"prep_threads", path.threads},
          {"cores", path.cores},
          {"sample_bytes", path.sample.value},
          {"storage_mb_per_s", in_megabytes(path.storage)},
          {"memory_mb_per_s", in_megabytes(path.memory)},
          {"cached", path.cached}};
}

}  // namespace mayfly
