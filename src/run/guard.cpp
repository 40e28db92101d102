#include "run/guard.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace mayfly {
namespace {

/// A ratio that has moved by less is no news.
constexpr double kNews = 0.05;
constexpr Seconds kBetweenEstimates{1};
/// Of the run, after which the promise is repeated with what was learnt.
constexpr double kEarly = 0.05;

Seconds length(const RunInputs& inputs) {
  return inputs.forecast.time.value_or(inputs.spec.deadline.value_or(Seconds(3600)));
}

/// CM-DARE's times are for runs of hours; a short run is watched in proportion.
SpeedWatchOptions speed_options(const RunInputs& inputs) {
  SpeedWatchOptions options;
  const double scale = std::clamp(length(inputs) / Seconds(3600), 0.05, 1.0);
  options.warm_up *= scale;
  options.window *= scale;
  options.sustained *= scale;
  return options;
}

LossWatchOptions loss_options(const RunInputs& inputs, std::int64_t epoch) {
  LossWatchOptions options{.epoch = progress_of(epoch), .batch = progress_of(inputs.spec.train->batch)};
  if (inputs.profile != nullptr && inputs.profile->loss) options.form = inputs.profile->loss->form;
  options.predicted = inputs.forecast.samples;
  return options;
}

}  // namespace

Guard::Guard(const RunInputs& inputs, std::int64_t epoch)
    : inputs_(inputs), losses_(loss_options(inputs, epoch)), speed_(speed_options(inputs)) {}

void Guard::begin(int workers) {
  workers_ = workers;
  PredictedSpeed predicted;
  if (inputs_.profile != nullptr) {
    const Shapes& shapes = inputs_.job->shapes;
    const auto shape = shapes.find({workers, 1});
    const auto alone = shapes.find({1, 1});
    if (shape && alone) {
      predicted.samples_per_s = shapes.speed(*shape);
      // One machine exchanges nothing; of several, what their computing does not explain is exchange.
      predicted.compute_s_per_sample = 1 / shapes.speed(*alone) / workers;
      predicted.exchange_s_per_sample = std::max(0.0, 1 / predicted.samples_per_s - *predicted.compute_s_per_sample);
    }
  }
  speed_.begin(predicted);
  named_ = false;
}

Guard::Findings Guard::saw(const Crew::Step& step, Seconds commit, const Standing& standing) {
  Findings findings;
  if (step.validation_loss) validation_ = step.validation_loss;
  if (step.range.count == 0) return findings;
  watch_loss(step, standing, findings);
  watch_speed(step, commit, standing, findings);
  repeat_promise(standing, findings);
  return findings;
}

bool Guard::loss_reached() const {
  const auto seen = inputs_.spec.train->validation ? validation_ : losses_.training_loss();
  return inputs_.spec.loss && seen && *seen <= *inputs_.spec.loss;
}

void Guard::watch_loss(const Crew::Step& step, const Standing& standing, Findings& findings) {
  losses_.saw(progress_of(step.range.end()), step.loss);
  if (!inputs_.spec.loss) return;
  const double committed = progress_of(standing.samples);
  if (loss_reached()) {
    findings.estimated = committed;
    return;
  }
  if (standing.now - estimated_at_ >= kBetweenEstimates) {
    estimated_at_ = standing.now;
    const auto samples = losses_.samples_to(*inputs_.spec.loss);
    if (samples && samples->middle && samples->p90) findings.estimated = samples->middle;
  }
  // Until the loss is there the end stays ahead.
  const double ahead = committed + 10.0 * inputs_.spec.train->batch;
  const double target = findings.estimated.value_or(progress_of(standing.target.value_or(0)));
  if (target < ahead) findings.estimated = ahead;
  if (findings.estimated) findings.estimated = std::ceil(*findings.estimated);
}

void Guard::watch_speed(const Crew::Step& step, Seconds commit, const Standing& standing, Findings& findings) {
  const auto slowest = std::max_element(step.parts.begin(), step.parts.end(), [](const auto& a, const auto& b) {
    return a.compute + a.wait < b.compute + b.wait;
  });
  // Where workers do not wait for each other the others' steps go on meanwhile.
  const double alone = std::min(1.0, static_cast<double>(step.parts.size()) / workers_);
  speed_.saw({.end = standing.now,
              .samples = progress_of(step.range.count),
              .compute = alone * slowest->compute,
              .exchange = alone * slowest->exchange,
              .commit = commit});
  const auto ratio = speed_.ratio();
  const bool news = ratio && (!told_ratio_ || std::abs(*ratio / *told_ratio_ - 1) > kNews);
  if (news && standing.now - told_at_ >= std::clamp(length(inputs_) / 50, kBetweenEstimates, Seconds(60))) {
    told_at_ = standing.now;
    told_ratio_ = ratio;
    findings.ratio = ratio;
  }
  const auto bottleneck = speed_.bottleneck();
  if (!bottleneck || named_) return;
  named_ = true;
  findings.sayings.push_back(sentence(*bottleneck));
}

void Guard::repeat_promise(const Standing& standing, Findings& findings) {
  if (repeated_ || inputs_.profile == nullptr || !standing.target) return;
  const double done = progress_of(standing.samples) / progress_of(*standing.target);
  const auto ratio = speed_.ratio();
  if (done < kEarly || !ratio) return;
  repeated_ = true;
  const Seconds time = standing.now / done;
  std::string text = fmt::format("after {:.0f} % of the samples: {:.2f} of the predicted speed; done in {}", 100 * done,
                                 *ratio, format_duration(Seconds(std::round(time.count()))));
  if (inputs_.forecast.time) text += fmt::format(" (promised {})", format_duration(*inputs_.forecast.time));
  if (inputs_.priced)
    text += fmt::format(" for {:.4f} USD{}", standing.spent.value / done,
                        inputs_.forecast.cost ? fmt::format(" (promised {:.4f})", inputs_.forecast.cost->value) : "");
  if (inputs_.spec.deadline)
    text += time <= *inputs_.spec.deadline ? "; the deadline holds" : "; the deadline is at risk";
  findings.sayings.push_back(text);
}

}  // namespace mayfly
