#include "plan/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace mayfly {

const double SuffixSums::kNone = std::numeric_limits<double>::infinity();

void SuffixSums::store(std::size_t suffix, const std::vector<double>& sorted) {
  double total = 0;
  sums_[suffix * stride()] = 0;
  for (std::size_t r = 0; r < sorted.size(); ++r) {
    total += sorted[r];
    sums_[suffix * stride() + r + 1] = total;
  }
}

void SuffixSums::merge(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& out) const {
  out.clear();
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  if (out.size() > static_cast<std::size_t>(most_)) out.resize(static_cast<std::size_t>(most_));
}

Metric metric_of(const Problem& problem) {
  return std::holds_alternative<ForEpochs>(problem.target) ? Metric::samples : Metric::updates;
}

namespace {

double homogeneous_updates(const Problem& problem, const ServerChoice& server, const Kind& kind, int workers) {
  const Group group{.worker = &kind.worker, .count = workers};
  return cluster_speed(problem.predictor, problem.job, {&group, 1}, server.pool).updates_per_s;
}

/// Cynthia with the server's CPU never in the way, which the mix of machines decides.
double cynthia_updates(const Problem& problem, const ServerChoice& server, const Kind& kind, int workers) {
  const double work = problem.job.cynthia->work_gflop;
  const double link = server.pool.nic * server.pool.count;
  if (problem.job.sync == Sync::asp) {
    const double exchange = 2 * problem.job.parameters / std::min(kind.worker.nic, link / workers);
    return 1 / (work / kind.worker.gflops + exchange);
  }
  return 1 / std::max(work / (workers * kind.worker.gflops), 2 * workers * problem.job.parameters / link);
}

/// No slower than either, however long GPUs compute.
Interconnect faster_of(const Interconnect& a, const Interconnect& b) {
  const double always = std::min(a.always, b.always);
  const double all_hidden = std::min(a.always - a.hideable, b.always - b.hideable);
  return {.always = always,
          .waiting = std::min(a.waiting, b.waiting),
          .hideable = always - all_hidden,
          .hides = std::max(a.hides, b.hides)};
}

/// What a synchronous cluster whose step grows with it gains from faster machines. Work is dealt out by speed, so its
/// updates per second are a concave function f of the mean pace, 1 / (compute - fixed), weighted with the batches; a
/// tangent of f, at the fastest kind, is above f everywhere and linear in the machines. Links, copies and fixed times
/// are those of the best kind there is. Where the step may grow no further, it is shorter by as much as the largest
/// batches would be above that.
class SharedStep {
 public:
  SharedStep(const Problem& problem, const ServerChoice& server, int workers) {
    Worker best = problem.kinds.front().worker;
    double largest = 0;
    best.ring = ring_of(problem.job, best);
    for (const Kind& kind : problem.kinds) {
      top_ = std::max(top_, pace_of(kind.worker));
      largest = std::max(largest, kind.worker.batch);
      best.fixed = std::min(best.fixed, kind.worker.fixed);
      best.pcie = std::min(best.pcie, kind.worker.pcie);
      best.interconnect = faster_of(best.interconnect, kind.worker.interconnect);
      best.rate = std::max(best.rate, kind.worker.rate);
      best.nic = std::max(best.nic, kind.worker.nic);
      best.ring = faster_links(*best.ring, ring_of(problem.job, kind.worker));
      least_batch_ = least_batch_ > 0 ? std::min(least_batch_, kind.worker.batch) : kind.worker.batch;
    }
    Workload job = problem.job;
    const double share = std::min(1.0, job.most_batch / (workers * largest));
    job.most_batch = INFINITY;
    const auto updates = [&](double pace) {
      best.compute = best.fixed + share / pace;
      const Group group{.worker = &best, .count = workers};
      return cluster_speed(problem.predictor, job, {&group, 1}, server.pool).updates_per_s;
    };
    const double pace = top_;
    constexpr double kSmall = 1e-4;  // the slope to the right of the point is no steeper than the tangent's
    at_top_ = updates(pace);
    slope_ = std::max(0.0, (updates(pace * (1 + kSmall)) - at_top_) / (pace * kSmall));
  }
  /// No mix is faster than the mean of this over its machines, weighted with their batches.
  double updates(const Worker& worker) const { return at_top_ + slope_ * (pace_of(worker) - top_); }
  double least_batch() const { return least_batch_; }

 private:
  static double pace_of(const Worker& worker) { return 1 / (worker.compute - worker.fixed); }

  double top_ = 0;
  double at_top_ = 0;
  double slope_ = 0;
  double least_batch_ = 0;
};

}  // namespace

RateBounds rate_bounds(const Problem& problem, const ServerChoice& server, int workers) {
  const bool samples = metric_of(problem) == Metric::samples;
  const bool pipeline = problem.job.exchange == Exchange::pipeline;
  const bool cynthia = problem.predictor == Predictor::cynthia;
  const bool queue = problem.predictor == Predictor::queue;
  // Every worker goes at its own pace, or all make one step together. Cynthia's step has the pace of the slowest, and
  // as a mean is never below the least, each of n workers contributes an n-th of the updates it could make among
  // equals.
  const bool together =
      !pipeline && (problem.job.sync == Sync::bsp || (queue && server.pool.count == 0)) && (queue || cynthia);
  RateBounds bounds{.cap = INFINITY, .exact = !together && !queue && !cynthia, .cap_beyond = INFINITY};
  const Kind* fastest = nullptr;
  double fastest_updates = 0;
  double largest_batch = 0;
  std::optional<SharedStep> step;
  if (together && queue) step.emplace(problem, server, workers);
  for (const Kind& kind : problem.kinds) {
    const bool shared = queue && !together && !pipeline;
    const double all = cynthia ? cynthia_updates(problem, server, kind, workers)
                       : step  ? step->updates(kind.worker) * (samples ? 1 : kind.worker.batch / step->least_batch())
                               : homogeneous_updates(problem, server, kind, shared ? 1 : workers);
    double updates = all;
    if (together || (!cynthia && !shared)) updates /= workers;
    bounds.updates.push_back(updates);
    // At worst a worker finds all the others at the server.
    bounds.slowed.push_back(shared ? 1 / (1 / updates + (workers - 1) / queue_server_limit(problem.job, server.pool))
                                   : updates);
    const double batch = pipeline ? problem.job.global_batch : kind.worker.batch * (together ? workers : 1);
    bounds.rate.push_back(samples ? updates * batch : updates);
    largest_batch = std::max(largest_batch, kind.worker.batch);
    if (shared && updates > fastest_updates) {
      fastest = &kind;
      fastest_updates = updates;
    }
  }
  if (fastest != nullptr) {
    // The shared server slows every worker; a cluster of only the fastest kind bounds every mix.
    const double unit = (samples ? largest_batch : 1) * (1 + 1e-12);
    bounds.cap = homogeneous_updates(problem, server, *fastest, workers) * unit;
    bounds.cap_beyond = queue_server_limit(problem.job, server.pool) * unit;
  }
  if (problem.predictor == Predictor::spotdnn && spotdnn_contention(*problem.job.contention, workers) >= 1 &&
      !samples) {
    // Fully contended, the exchange alone takes n 2S / B_ps, however fast the machines are.
    const double link = server.pool.nic * server.pool.count;
    bool contended = true;
    for (const Kind& kind : problem.kinds) contended = contended && kind.worker.rate > link / workers;
    if (contended) bounds.cap_beyond = link / (2 * problem.job.parameters);
  }
  return bounds;
}

double least_work(const Problem& problem, int workers, double low_batch, double high_batch, double least_cc) {
  if (const auto* epochs = std::get_if<ForEpochs>(&problem.target)) {
    double left = epochs->epochs;
    if (problem.progress) left = std::max(0.0, left - std::get<ForEpochs>(problem.progress->reached).epochs);
    return left * problem.profile->samples->value;
  }
  if (const auto* loss = std::get_if<ToLoss>(&problem.target)) {
    const LossCurve& curve = *problem.profile->loss;
    low_batch = std::max(low_batch, curve.batch_min);
    high_batch = std::min(high_batch, curve.batch_max);
    if (loss->loss <= curve.floor || low_batch > high_batch * (1 + 1e-9)) return INFINITY;
  }
  // The amplitude of every loss curve is linear in the batch, so one of the ends gives the least; where the form breaks
  // down at an end, nothing is known.
  const Evaluator evaluator(problem);
  const auto at = [&](double batch) { return evaluator.work({.batch = batch, .cc = least_cc}, workers).value_or(0); };
  return std::min(at(low_batch), at(std::max(low_batch, high_batch)));
}

std::optional<LinearWork> linear_work(const Problem& problem, int workers) {
  if (!std::holds_alternative<ToLoss>(problem.target) || problem.job.sync != Sync::asp) return {};
  if (problem.job.exchange != Exchange::server) return {};
  double low = INFINITY;
  double high = 0;
  for (const Kind& kind : problem.kinds) {
    if (kind.limit() == 0) continue;
    low = std::min(low, kind.worker.batch);
    high = std::max(high, kind.worker.batch);
  }
  const Evaluator evaluator(problem);
  const auto near = evaluator.work({.batch = low}, workers);
  const auto far = evaluator.work({.batch = high}, workers);
  // Every worker's own share of the work must be positive, or the sums below are no bounds.
  if (!near || !far || *near <= 0 || *far <= 0) return {};
  const double slope = high > low ? (*far - *near) / (high - low) : 0;
  return LinearWork{.intercept = *near - slope * low, .slope = slope};
}

}  // namespace mayfly
