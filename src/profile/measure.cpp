#include "profile/measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "profile/log_fit.h"

namespace mayfly {
namespace {

constexpr int kEndless = 100'000;
/// Exchanges that tell latency from rate, in bytes.
const std::vector<std::int64_t> kExchanges{4 << 10, 64 << 10, 1 << 20, 8 << 20};
constexpr std::size_t kFewestLosses = 8;

/// Means over stretches, so that no curve is fitted to thousands of points.
void add_losses(const std::vector<double>& losses, double batch, int workers, std::vector<LossPoint>& points) {
  const std::size_t stretch = 1 + losses.size() / kMostLosses;
  for (std::size_t at = 0; at + stretch <= losses.size(); at += stretch) {
    const std::vector<double> part(losses.begin() + static_cast<std::ptrdiff_t>(at),
                                   losses.begin() + static_cast<std::ptrdiff_t>(at + stretch));
    const double step = static_cast<double>(at) + (static_cast<double>(stretch) + 1) / 2;
    points.push_back({.step = step, .loss = mean(part), .batch = batch, .workers = workers});
  }
}

/// Losses that fall along a line can be fitted with any floor, the deepest below zero; a curve that leaves the number
/// of steps open by more than itself says nothing.
bool bends(const LossCurve& curve) { return curve.floor >= 0 && curve.floor < curve.initial && curve.relative_sd <= 1; }

/// Measures one thing after the other, each with its share of the time.
class Measuring {
 public:
  Measuring(const ProfileRequest& request, Workshop& shop) : request_(request), shop_(shop) {
    found_.workers = request.workers;
    found_.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / request.workers);
    found_.ready = shop.ready().front();
    found_.start_s = shop.start_time().count();
  }

  Result<JobMeasurement> all();

 private:
  /// False: something went wrong, or a signal came; the rest is left out.
  bool look();
  bool step_times();
  bool work_together();
  bool loader();
  bool losses();
  bool checkpoint();
  bool waits() const { return workers_wait(*request_.spec.train); }
  /// A worker's part of a step where all of them are at work.
  int batch() const { return batch_of_each(*request_.spec.train, request_.workers); }

  std::optional<SegmentResult> measure(Segment segment, int workers, double share, const std::string& what);
  MeasuredBatch summary(const SegmentResult& result, int batch) const;

  const ProfileRequest& request_;
  Workshop& shop_;
  JobMeasurement found_{};
  std::vector<LossPoint> points_{};
  double done_ = 0;  ///< share of the time
  std::optional<std::string> failure_{};
};

std::optional<SegmentResult> Measuring::measure(Segment segment, int workers, double share, const std::string& what) {
  if (request_.progress) request_.progress(done_, what);
  const double limit = share * request_.time.count();
  double spent = 0;
  if (!segment.enough) {
    // Looked at now and then: it costs more than a short step.
    segment.enough = [&, looked = std::size_t{0}](const SegmentResult& so_far) mutable {
      spent += so_far.step_s.back();
      if (spent > limit) return true;
      if (so_far.step_s.size() < 20 || so_far.step_s.size() < looked + looked / 4) return false;
      looked = so_far.step_s.size();
      return tight(estimated(so_far.step_s));
    };
  }
  auto result = shop_.measure(segment, workers);
  done_ += share;
  if (result) return *std::move(result);
  failure_ = result.error().message;
  return std::nullopt;
}

MeasuredBatch Measuring::summary(const SegmentResult& result, int size) const {
  const WorkerSteps& steps = result.workers.front();
  MeasuredBatch found{.batch = size, .step = estimated(steps.step_s), .peak_mb = steps.used.peak_mb};
  const auto warm = static_cast<std::ptrdiff_t>(found.step.warm_up);
  found.wait_s = mean({steps.wait_s.begin() + warm, steps.wait_s.end()});
  found.exchange_s = mean({steps.exchange_s.begin() + warm, steps.exchange_s.end()});
  std::vector<double> compute = steps.step_s;
  for (std::size_t i = 0; i < compute.size(); ++i) {
    compute[i] -= steps.exchange_s[i];
    if (steps.used.prep_threads > 0) compute[i] -= steps.wait_s[i];
  }
  found.compute = estimated(compute);
  return found;
}

bool Measuring::look() {
  Segment segment{.steps = 3, .batch = batch(), .layers = true};
  if (!request_.spec.train->servers && request_.workers > 1) segment.exchanges = kExchanges;
  const auto result = measure(segment, 0, 0.03, "the network and its links");
  if (!result) return false;
  found_.look = result->looks.front();
  found_.form_s = result->form_s;
  found_.exchange_bytes = segment.exchanges;
  std::vector<double> bytes;
  // Around a ring of n, 2 (n - 1) / n of the bytes cross each link.
  const double n = request_.workers;
  for (const std::int64_t size : segment.exchanges) bytes.push_back(2 * (n - 1) / n * static_cast<double>(size));
  found_.ring = link_fit(bytes, found_.look.exchanges_s);
  return true;
}

bool Measuring::step_times() {
  std::vector<std::pair<int, double>> wanted{{batch(), 0.25}};
  for (const int size : {batch() * 2, batch() * 4, batch() / 2, batch() / 4}) {
    if (size > 0) wanted.emplace_back(size, 0.06);
  }
  for (const auto& [size, share] : wanted) {
    const auto result = measure({.steps = kEndless, .batch = size}, 1, share, fmt::format("steps of {} samples", size));
    if (!result) return false;
    found_.batches.push_back(summary(*result, size));
    // What an earlier, larger batch has left with the process would count for this one.
    const bool largest = std::all_of(found_.batches.begin(), found_.batches.end(),
                                     [&](const MeasuredBatch& one) { return one.batch <= size; });
    if (!largest) found_.batches.back().peak_mb = 0;
    if (size != batch() || !request_.spec.train->servers) continue;
    const auto updates = static_cast<double>(result->losses.size());
    found_.server_cpu_s = result->server_cpu_s / updates;
    const double exchange = found_.batches.front().exchange_s;
    if (exchange > 0) found_.request_mb_per_s = 2 * static_cast<double>(found_.ready.parameters) * 4 / 1e6 / exchange;
  }
  return true;
}

bool Measuring::work_together() {
  if (request_.workers < 2) return true;
  const auto result = measure({.steps = kEndless, .batch = batch()}, 0, 0.15,
                              fmt::format("{} workers with {} samples each", request_.workers, batch()));
  if (!result) return false;
  found_.together = summary(*result, batch());
  found_.form_s = result->form_s;
  // Where they wait for each other their steps are those of one worker with the samples of all.
  if (!waits()) add_losses(result->losses, batch(), request_.workers, points_);
  return true;
}

/// First a batch, to see how many samples the time is enough for.
bool Measuring::loader() {
  if (request_.spec.train->data.files.empty()) return true;
  constexpr double kShare = 0.05;
  constexpr int kMostSamples = 10'000;
  int samples = batch();
  for (int turn = 0; turn < 2; ++turn) {
    const auto result = measure({.steps = 1, .batch = batch(), .rehearse = samples}, 1, turn * kShare,
                                "the data's way, stage by stage");
    if (!result) return false;
    found_.stages = result->looks.front();
    const double each = (found_.stages->read_s + found_.stages->reread_s + found_.stages->prepare_s) /
                        static_cast<double>(std::max<std::int64_t>(1, found_.stages->rehearsed));
    if (each > 0)
      samples = static_cast<int>(std::clamp<double>(kShare * request_.time.count() / each, samples, kMostSamples));
  }
  return true;
}

bool Measuring::losses() {
  const double share = std::max(0.05, 1 - done_);
  double spent = 0;
  const double limit = share * request_.time.count();
  const int all = request_.spec.train->batch;
  const auto result = measure({.steps = kEndless,
                               .batch = all,
                               .enough =
                                   [&](const SegmentResult& so_far) {
                                     spent += so_far.step_s.back();
                                     return spent > limit;
                                   }},
                              1, share, "losses");
  if (!result) return false;
  add_losses(result->losses, all, 1, points_);
  found_.loss_steps = static_cast<double>(result->losses.size());
  found_.losses = points_.size();
  if (points_.size() < kFewestLosses) {
    found_.notes.push_back(fmt::format("{} losses, want {}: no loss curve", points_.size(), kFewestLosses));
    return true;
  }
  auto fit = fit_loss(LossCurve::Form::common_start, points_, waits() ? Sync::bsp : Sync::asp);
  if (!fit) {
    found_.notes.push_back("no loss curve: " + fit.error().message);
  } else if (!bends(fit->curve)) {
    found_.notes.push_back(
        fmt::format("the losses of {:.0f} steps do not tell where they lead: no loss curve; give more time with --for",
                    found_.loss_steps));
  } else {
    found_.loss = *std::move(fit);
  }
  return true;
}

bool Measuring::checkpoint() {
  auto written = shop_.checkpoint();
  if (!written) {
    failure_ = written.error().message;
    return false;
  }
  found_.checkpoint = *std::move(written);
  return true;
}

Result<JobMeasurement> Measuring::all() {
  const bool complete = look() && step_times() && work_together() && loader() && losses() && checkpoint();
  found_.interrupted = shop_.interrupted();
  if (found_.batches.empty() || found_.batches.front().step.counted == 0)
    return fail("{}", found_.interrupted ? "interrupted before a step was measured" : failure_.value_or("no step"));
  if (!complete) found_.notes.push_back(fmt::format("not everything was measured: {}", failure_.value_or("")));
  if (request_.progress) request_.progress(1, "done");
  found_.profile = profile_of(found_, request_);
  return std::move(found_);
}

}  // namespace

Result<JobMeasurement> measure_job(const ProfileRequest& request) {
  Workshop::Options options{.spec = request.spec,
                            .job_text = request.job_text,
                            .job_file = request.job_file,
                            .program = request.program,
                            .directory = request.directory,
                            .workers = request.workers};
  if (request.spec.train && request.spec.train->servers)
    options.servers = std::max(1, request.spec.train->servers->count);
  if (request.progress) request.progress(0, "starting workers");
  auto shop = Workshop::open(std::move(options));
  if (!shop) return unexpected(shop.error());
  return Measuring(request, **shop).all();
}

}  // namespace mayfly
