#include "control/loss_watch.h"

#include <algorithm>
#include <cmath>

namespace mayfly {
namespace {

constexpr double kAveraged = 0.01;       ///< of an epoch
constexpr std::size_t kFewestSteps = 5;  ///< in an average
constexpr double kEnough = 0.05;         ///< of the predicted samples
constexpr std::size_t kFewestBins = 20;  ///< in a fit
constexpr std::size_t kMostBins = 256;   ///< then they are joined two by two
constexpr double kHorizon = 1000;        ///< times the steps seen: nothing is said beyond

/// The first step at which `band` is below the loss; it need not fall for ever.
template <class Band>
std::optional<double> crossing(const Band& band, double loss, double from, double to) {
  constexpr double kStride = 1.02;
  double above = from;
  if (band(above) <= loss) return above;
  for (double below = from * kStride; below < to; above = below, below *= kStride) {
    if (band(below) > loss) continue;
    for (int halved = 0; halved < 30; ++halved) {
      const double middle = (above + below) / 2;
      (band(middle) > loss ? above : below) = middle;
    }
    return below;
  }
  return std::nullopt;
}

}  // namespace

std::size_t LossWatch::averaged_steps() const {
  return std::max(kFewestSteps, static_cast<std::size_t>(std::ceil(kAveraged * options_.epoch / options_.batch)));
}

void LossWatch::saw(double end, double loss) {
  end_ = end;
  recent_.push_back({end, loss});
  if (recent_.size() > averaged_steps()) recent_.pop_front();
  if (bins_.empty() || bins_.back().steps >= bin_steps_) bins_.emplace_back();
  Bin& bin = bins_.back();
  ++bin.steps;
  bin.ends += end;
  bin.losses += loss;
  bin.last = end;
  if (bins_.size() < kMostBins || bin.steps < bin_steps_) return;
  for (std::size_t at = 0; 2 * at < kMostBins; ++at) {
    const Bin& one = bins_[2 * at];
    const Bin& other = bins_[2 * at + 1];
    bins_[at] = {one.steps + other.steps, one.ends + other.ends, one.losses + other.losses, other.last};
  }
  bins_.resize(kMostBins / 2);
  bin_steps_ *= 2;
}

void LossWatch::roll_back(double sample) {
  end_ = std::min(end_, sample);
  while (!recent_.empty() && recent_.back().end > sample) recent_.pop_back();
  while (!bins_.empty() && bins_.back().last > sample) bins_.pop_back();
}

std::optional<double> LossWatch::training_loss() const {
  if (recent_.size() < averaged_steps()) return std::nullopt;
  double sum = 0;
  for (const Step& step : recent_) sum += step.loss;
  return sum / static_cast<double>(recent_.size());
}

std::optional<LossFit> LossWatch::fit() const {
  if (end_ < kEnough * options_.predicted.value_or(options_.epoch)) return std::nullopt;
  std::vector<LossPoint> points;
  for (const Bin& bin : bins_) {
    if (bin.steps < bin_steps_) continue;  // noisier than the others
    points.push_back({.step = bin.ends / bin.steps / options_.batch, .loss = bin.losses / bin.steps});
  }
  if (points.size() < kFewestBins) return std::nullopt;
  // One batch size and one crowd, as the run sees it: the curve is this run's own.
  auto found = fit_loss(options_.form, points, Sync::bsp);
  if (!found) return std::nullopt;
  // The band is that of the curve: where the noise of an average is below the loss by chance cannot be known.
  found->residual_sd = 0;
  return *std::move(found);
}

std::optional<SamplesToLoss> LossWatch::samples_to(double loss) const {
  const auto found = fit();
  if (!found) return std::nullopt;
  const double seen = end_ / options_.batch;
  const auto samples = [&](std::optional<double> steps) -> std::optional<double> {
    if (!steps || *steps > kHorizon * seen) return std::nullopt;
    return std::max(*steps, seen) * options_.batch;
  };
  const auto low = [&](double step) { return loss_band(*found, {}, step).p10; };
  const auto high = [&](double step) { return loss_band(*found, {}, step).p90; };
  return SamplesToLoss{.middle = samples(steps_to_loss(found->curve, {}, loss)),
                       .p10 = samples(crossing(low, loss, seen, kHorizon * seen)),
                       .p90 = samples(crossing(high, loss, seen, kHorizon * seen))};
}

}  // namespace mayfly
