#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "predict/loss_fit.h"

// Model: docs/models.md#watch
namespace mayfly {

struct LossWatchOptions {
  double epoch = 0;                                      ///< samples of one
  double batch = 1;                                      ///< samples of one step, over all workers
  LossCurve::Form form = LossCurve::Form::common_start;  ///< the profile's
  std::optional<double> predicted{};                     ///< samples to the promised loss, as planned
};

/// Samples from the start of the run to a loss. Nothing where the curve never gets there: its floor is above, or its
/// band too wide to say.
struct SamplesToLoss {
  std::optional<double> middle{};
  std::optional<double> p10{};
  std::optional<double> p90{};
  bool operator==(const SamplesToLoss&) const = default;
};

/// Keeps the losses of committed steps, and says how many samples a loss will take by the curve they follow. Its memory
/// does not grow with the run.
class LossWatch {
 public:
  explicit LossWatch(const LossWatchOptions& options) : options_(options) {}

  /// A committed step that ends at sample `end`. Steps come in order.
  void saw(double end, double loss);
  /// The run is back at this sample; what was seen beyond will be seen again.
  void roll_back(double sample);

  /// The training loss of the promise: the mean over the last 1 % of an epoch, or the last five steps where that is
  /// more. Nothing before so much was seen.
  std::optional<double> training_loss() const;
  /// By a fit to what was seen; never fewer samples than were trained. Nothing before 5 % of the predicted samples (of
  /// an epoch, where nothing was predicted) and 20 points, or where the fit fails.
  std::optional<SamplesToLoss> samples_to(double loss) const;

 private:
  struct Step {
    double end = 0;
    double loss = 0;
  };
  /// Successive steps, summed up.
  struct Bin {
    int steps = 0;
    double ends = 0;
    double losses = 0;
    double last = 0;  ///< end of the last one
  };
  std::size_t averaged_steps() const;
  std::optional<LossFit> fit() const;

  LossWatchOptions options_;
  double end_ = 0;
  std::deque<Step> recent_{};
  std::vector<Bin> bins_{};
  int bin_steps_ = 1;  ///< of a full bin
};

}  // namespace mayfly
