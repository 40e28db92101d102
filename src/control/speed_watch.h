#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

// Model: docs/models.md#watch
namespace mayfly {

/// What the shape at hand should do. Parts of a step that are not predicted count as nothing but computing.
struct PredictedSpeed {
  double samples_per_s = 0;
  std::optional<double> compute_s_per_sample{};  ///< of one step, over the samples of all workers
  std::optional<double> exchange_s_per_sample{};
};

/// A step that was committed, and where its time went. The worker meant is the slowest in computing: the others' time
/// of exchange holds their waiting for it.
struct WatchedStep {
  Seconds end{};
  double samples = 0;
  Seconds compute{};
  Seconds exchange{};
  Seconds commit{};  ///< from the last worker's word to the controller's answer
};

/// The part of a step that costs most beyond its prediction.
struct Bottleneck {
  enum class Part {
    compute,
    worker_network,  ///< exchange of gradients
    controller,      ///< the commit
    fetch,           ///< what is left: waiting for data, or for messages
  };
  Part part = Part::compute;
  double ratio = 1;  ///< measured speed over the predicted
  Seconds seen{};    ///< of the part, in a mean step
  Seconds predicted{};
  bool operator==(const Bottleneck&) const = default;
};
std::string_view name(Bottleneck::Part part);
/// "measured speed is 0.62 of the predicted: worker-network takes 0.41 s of a step, predicted 0.12 s"
std::string sentence(const Bottleneck& bottleneck);

struct SpeedWatchOptions {
  Seconds warm_up{30};    ///< CM-DARE
  double gap = 0.067;     ///< CM-DARE: slower by more is a bottleneck
  Seconds window{30};     ///< the ratio is of the steps that ended in it
  Seconds sustained{60};  ///< slow so long before anything is said; a hiccup leaves the window sooner
};

/// Compares the speed of a generation with its prediction. Told of each step in order; keeps one window of them.
class SpeedWatch {
 public:
  explicit SpeedWatch(SpeedWatchOptions options = {}) : options_(options) {}

  /// Another generation: what was seen says nothing of it, and it warms up again from the end of its first step.
  void begin(const PredictedSpeed& predicted);
  void saw(const WatchedStep& step);

  /// Measured speed over the predicted one; nothing before the warm-up and a window after it are over, or where
  /// nothing was predicted.
  std::optional<double> ratio() const;
  /// Where the time goes when the speed has been well below the prediction all the time asked for.
  std::optional<Bottleneck> bottleneck() const;

 private:
  /// Sums over steps.
  struct Totals {
    double steps = 0;
    double samples = 0;
    Seconds whole{};
    Seconds compute{};
    Seconds exchange{};
    Seconds commit{};
  };
  struct Timed {
    WatchedStep step{};
    Seconds whole{};
  };
  Totals totals() const;

  SpeedWatchOptions options_;
  PredictedSpeed predicted_{};
  std::optional<Seconds> first_{};  ///< end of the generation's first step
  Seconds last_{};
  std::deque<Timed> window_{};
  double window_samples_ = 0;
  bool full_ = false;  ///< the window has been filled once
  std::optional<Seconds> slow_since_{};
};

}  // namespace mayfly
