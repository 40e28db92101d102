#include "control/speed_watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace mayfly {

std::string_view name(Bottleneck::Part part) {
  static constexpr std::array<std::string_view, 4> kNames{"compute", "worker-network", "controller", "fetch"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string sentence(const Bottleneck& bottleneck) {
  return fmt::format("measured speed is {:.2f} of the predicted: {} takes {:.3g} s of a step, predicted {:.3g} s",
                     bottleneck.ratio, name(bottleneck.part), bottleneck.seen.count(), bottleneck.predicted.count());
}

void SpeedWatch::begin(const PredictedSpeed& predicted) {
  *this = SpeedWatch(options_);
  predicted_ = predicted;
}

void SpeedWatch::saw(const WatchedStep& step) {
  if (!first_) first_ = last_ = step.end;
  const Seconds whole = step.end - last_;
  last_ = step.end;
  // A step counts if all of it lies behind the warm-up.
  if (whole.count() <= 0 || step.end - whole < *first_ + options_.warm_up) return;
  window_.push_back({step, whole});
  window_samples_ += step.samples;
  while (window_.size() > 1 && window_.front().step.end <= step.end - options_.window) {
    full_ = true;
    window_samples_ -= window_.front().step.samples;
    window_.pop_front();
  }
  const auto now = ratio();
  if (!now || *now >= 1 - options_.gap) {
    slow_since_.reset();
  } else if (!slow_since_) {
    slow_since_ = step.end;
  }
}

std::optional<double> SpeedWatch::ratio() const {
  if (!full_ || predicted_.samples_per_s <= 0) return std::nullopt;
  const Seconds span = window_.back().step.end - window_.front().step.end + window_.front().whole;
  return window_samples_ / span.count() / predicted_.samples_per_s;
}

SpeedWatch::Totals SpeedWatch::totals() const {
  Totals sum;
  for (const auto& [step, whole] : window_) {
    sum.steps += 1;
    sum.samples += step.samples;
    sum.whole += whole;
    sum.compute += step.compute;
    sum.exchange += step.exchange;
    sum.commit += step.commit;
  }
  return sum;
}

std::optional<Bottleneck> SpeedWatch::bottleneck() const {
  if (!slow_since_ || last_ - *slow_since_ < options_.sustained) return std::nullopt;
  const Totals sum = totals();
  const Seconds exchange(predicted_.exchange_s_per_sample.value_or(0) * sum.samples);
  const Seconds rest = Seconds(sum.samples / predicted_.samples_per_s) - exchange;
  const Seconds compute =
      predicted_.compute_s_per_sample ? Seconds(*predicted_.compute_s_per_sample * sum.samples) : rest;
  const Seconds left = sum.whole - sum.compute - sum.exchange - sum.commit;
  const Seconds spare = std::max(Seconds(0), rest - compute);
  const std::array<Bottleneck, 4> parts{{
      {.part = Bottleneck::Part::compute, .seen = sum.compute, .predicted = compute},
      {.part = Bottleneck::Part::worker_network, .seen = sum.exchange, .predicted = exchange},
      {.part = Bottleneck::Part::controller, .seen = sum.commit},
      {.part = Bottleneck::Part::fetch, .seen = left, .predicted = spare},
  }};
  Bottleneck worst = *std::max_element(parts.begin(), parts.end(), [](const Bottleneck& a, const Bottleneck& b) {
    return a.seen - a.predicted < b.seen - b.predicted;
  });
  worst.ratio = *ratio();
  worst.seen /= sum.steps;
  worst.predicted /= sum.steps;
  return worst;
}

}  // namespace mayfly
