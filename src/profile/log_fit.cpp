#include "profile/log_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/text.h"
#include "profile/spread.h"

namespace mayfly {
namespace {

/// Of the intervals, at the beginning: caches fill and kernels are chosen.
constexpr double kWarmUpShare = 0.1;
constexpr int kMostWarmUp = 20;
/// An interval so many times longer than the median is a stall: an evaluation, a checkpoint, a machine that was away.
constexpr double kStall = 5;

/// Some steps and the time they took.
struct Interval {
  double steps = 0;
  double time = 0;
  double step() const { return time / steps; }
};

std::vector<Interval> by_clock(const TrainingLog& log, StepTime& found) {
  std::vector<Interval> intervals;
  const LogPoint* before = nullptr;
  for (const LogPoint& point : log.points) {
    if (!point.step || !point.clock) continue;
    if (before != nullptr) {
      const double steps = *point.step - *before->step;
      const double time = *point.clock - *before->clock;
      if (steps < 0 || time < 0) ++found.restarts;
      // Several lines of one step, such as those of an evaluation, are one moment.
      if (steps == 0 && time >= 0) continue;
      if (steps > 0 && time > 0) intervals.push_back({steps, time});
    }
    before = &point;
  }
  return intervals;
}

std::vector<Interval> by_line(const TrainingLog& log, const LogScale& scale) {
  std::vector<Interval> intervals;
  for (const LogPoint& point : log.points) {
    if (point.step_s) intervals.push_back({1, *point.step_s});
    const auto batch = point.batch ? point.batch : scale.batch;
    if (!point.step_s && point.samples_per_s && batch) intervals.push_back({1, *batch / *point.samples_per_s});
  }
  return intervals;
}

void leave_out(std::vector<Interval>& intervals, StepTime& found) {
  const auto size = static_cast<double>(intervals.size());
  if (intervals.size() >= 5) found.warm_up = std::min(kMostWarmUp, std::max(1, static_cast<int>(kWarmUpShare * size)));
  intervals.erase(intervals.begin(), intervals.begin() + found.warm_up);
  std::vector<double> sorted;
  for (const Interval& interval : intervals) sorted.push_back(interval.step());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double longest = kStall * *middle;
  found.stalls = static_cast<int>(std::erase_if(intervals, [&](const Interval& i) { return i.step() > longest; }));
  found.intervals = static_cast<int>(intervals.size());
}

Seconds mean_step(std::span<const Interval> intervals) {
  double steps = 0;
  double time = 0;
  for (const Interval& interval : intervals) {
    steps += interval.steps;
    time += interval.time;
  }
  return Seconds(time / steps);
}

/// Neighbouring intervals share what made them slow, so the spread is taken between long stretches, not single lines.
void spread(std::span<const Interval> intervals, StepTime& found) {
  const std::size_t count = std::min(kStretches, intervals.size() / 2);
  if (count < 3) return;
  std::vector<double> means;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * intervals.size() / count;
    const std::size_t end = (i + 1) * intervals.size() / count;
    means.push_back(mean_step(intervals.subspan(begin, end - begin)).count());
  }
  const double middle = std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  for (const double value : means) squares += (value - middle) * (value - middle);
  found.relative_sd = std::sqrt(squares / static_cast<double>(count - 1)) / middle;
  std::sort(means.begin(), means.end());
  const auto at = [&](double share) {
    return Seconds(means[static_cast<std::size_t>(std::lround(share * static_cast<double>(count - 1)))]);
  };
  found.p10 = at(0.1);
  found.p90 = at(0.9);
}

/// The last quarter lies below the first.
bool falls(const std::vector<LossPoint>& points) {
  const std::size_t quarter = points.size() / 4;
  double first = 0;
  double last = 0;
  for (std::size_t i = 0; i < quarter; ++i) {
    first += points[i].loss;
    last += points[points.size() - 1 - i].loss;
  }
  return last < first;
}

Json loss_json(const LossFit& fit) {
  const LossCurve& curve = fit.curve;
  return {{"form", "common-start"}, {"initial", curve.initial}, {"batch_slope", curve.batch_slope},
          {"scale", curve.scale},   {"floor", curve.floor},     {"relative_sd", curve.relative_sd}};
}

Json make_profile(const FromLog& asked, const TrainingLog& log, const LogScale& scale, const LogProfile& found) {
  Json job{{"model", asked.name}};
  if (scale.samples) job["samples"] = *scale.samples;
  if (asked.parameters) job["parameters_mb"] = *asked.parameters * kBytesPerParameter / 1e6;
  job["sync"] = "bsp";
  job["exchange"] = "all-reduce";
  Json type{{"batch", found.batch}, {"step_s", found.step.mean.count()}};
  if (found.step.relative_sd > 0) type["relative_sd"] = found.step.relative_sd;
  type["basis"] = "measured";
  Json profile{{"format", "mayfly-profile/1"},
               {"name", asked.name},
               {"origin",
                {{"basis", "measured"},
                 {"source", fmt::format("{}: {} of a training log ({})", asked.file,
                                        log.points.size() == 1 ? std::string("1 line")
                                                               : fmt::format("{} lines", log.points.size()),
                                        log.kind)}}},
               {"job", std::move(job)},
               {"types", {{asked.type, std::move(type)}}}};
  if (found.fit) profile["loss"] = loss_json(*found.fit);
  return profile;
}

void add_notes(const FromLog& asked, const LogScale& scale, LogProfile& found) {
  if (asked.type == "local")
    found.notes.emplace_back("'local' is no type of a catalogue: predict and plan need one; give --type");
  if (!asked.parameters)
    found.notes.emplace_back(
        "the size of the parameters is not known: predict and plan will ask for it; give --parameters");
  if (!scale.samples)
    found.notes.emplace_back("the samples of an epoch are not known: --epochs cannot be predicted; give --samples");
  if (found.step.relative_sd == 0)
    found.notes.emplace_back(
        "one figure for the speed: its spread is not known, so predictions of time have no bands from it");
  if (found.fit)
    found.notes.push_back(fmt::format(
        "the log has one batch, {:g}: with others the loss is taken to need as many steps, which nobody has measured",
        found.batch));
  if (!found.fit) found.notes.emplace_back("no loss curve: --loss cannot be predicted");
}

}  // namespace

Result<StepTime> step_time(const TrainingLog& log, const LogScale& scale) {
  StepTime found;
  std::vector<Interval> intervals = by_clock(log, found);
  if (intervals.empty()) intervals = by_line(log, scale);
  if (intervals.empty() && log.runtime) {
    std::optional<double> steps = log.steps;
    for (const LogPoint& point : log.points) {
      if (point.step && (!steps || *point.step > *steps)) steps = point.step;
    }
    if (steps && *steps > 0) intervals.push_back({*steps, log.runtime->count()});
  }
  if (intervals.empty())
    return fail(
        "the log tells no speed: want two lines with a step and a time, a step's time such as '0.12 s/it', or "
        "train_runtime{}",
        scale.batch ? "" : "; lines that count samples or samples per second also need --batch");
  leave_out(intervals, found);
  found.mean = mean_step(intervals);
  if (!std::isfinite(found.mean.count()) || found.mean.count() <= 0) return fail("the log's times make no speed");
  spread(intervals, found);
  return found;
}

std::vector<LossPoint> loss_points(const TrainingLog& log, double batch) {
  std::map<double, double> losses;
  for (const LogPoint& point : log.points) {
    if (point.step && point.loss) losses[*point.step] = *point.loss;
  }
  const std::size_t stretch = 1 + losses.size() / kMostLosses;
  std::vector<LossPoint> points;
  std::size_t count = 0;
  for (const auto& [step, loss] : losses) {
    if (count++ % stretch == 0) points.push_back({.batch = batch});
    points.back().step += step;
    points.back().loss += loss;
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto size = static_cast<double>(std::min(stretch, losses.size() - i * stretch));
    points[i].step /= size;
    points[i].loss /= size;
  }
  return points;
}

Result<LogProfile> profile_from_log(TrainingLog log, const FromLog& asked) {
  LogScale scale{.batch = asked.batch, .samples = asked.samples};
  count_steps(log, scale);
  if (!scale.batch) return fail("{}: the log does not tell the samples of a step: give --batch", asked.file);
  auto step = step_time(log, scale);
  if (!step) return fail("{}: {}", asked.file, step.error().message);
  LogProfile found{.step = *step, .batch = *scale.batch};
  if (asked.loss) {
    const auto points = loss_points(log, found.batch);
    found.losses = points.size();
    if (points.size() < kLeastLosses)
      return fail("{}: {} lines with a step and a loss, want at least {} for a loss curve (or --no-loss)", asked.file,
                  points.size(), kLeastLosses);
    if (!falls(points)) return fail("{}: the loss does not fall: no curve (or --no-loss)", asked.file);
    auto fit = fit_loss(LossCurve::Form::common_start, points, Sync::bsp);
    if (!fit) return fail("{}: no loss curve fits: {} (or --no-loss)", asked.file, fit.error().message);
    found.fit = *std::move(fit);
  }
  add_notes(asked, scale, found);
  found.profile = make_profile(asked, log, scale, found);
  return found;
}

}  // namespace mayfly
