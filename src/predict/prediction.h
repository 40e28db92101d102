#pragma once

#include <optional>
#include <span>
#include <variant>

#include "predict/loss.h"
#include "predict/speed.h"

namespace mayfly {

/// How far to train.
struct ToLoss {
  double loss = 0;
  bool operator==(const ToLoss&) const = default;
};
struct ForEpochs {
  double epochs = 0;
  bool operator==(const ForEpochs&) const = default;
};
struct ForSteps {
  double steps = 0;
  bool operator==(const ForSteps&) const = default;
};
using Target = std::variant<ToLoss, ForEpochs, ForSteps>;

/// What the profile lacks for this target, in words; nothing if it can be computed.
std::optional<std::string_view> missing_for(const Target& target, const Profile& profile);

/// Normalized iterations a cluster needs for the target; nothing where the loss is out of its reach.
std::optional<double> iterations_for(const Target& target, const Profile& profile, const Speed& speed, int workers,
                                     Sync sync);

/// Nothing is left to train. Both speak of the same thing.
bool reached(const Target& target, const Target& so_far);
/// The lowest loss before the first step that the profile's curve has for one of its machines; several begin no lower.
/// Requires a curve; nothing without machines.
std::optional<double> loss_at_start(const Profile& profile, Sync sync);

/// What was reached when re-planning, in the words of the target.
struct Progress {
  Target reached{};
  Seconds elapsed{0};
  bool operator==(const Progress&) const = default;
};

/// The middle value with the band 8 of 10 runs should fall into; the band is absent where no error is known.
struct Estimate {
  double middle = 0;
  std::optional<double> p10{};
  std::optional<double> p90{};
};
/// Log-normal: a prediction errs by factors.
Estimate with_band(double middle, double relative_sd);

/// Relative error of a predictor's speed on measurements it was not fitted to (docs/models.md#accuracy); 0 = not
/// measured.
double model_sd(Predictor predictor);

/// Error of a whole prediction: model, machines (by their share of the work) and, towards a loss, the loss curve.
double relative_sd(Predictor predictor, const Target& target, const Profile& profile, std::span<const Group> groups,
                   const Speed& speed);
/// The same without the machines' own.
double common_sd(Predictor predictor, const Target& target, const Profile& profile);

/// The weakest basis among the machines.
Basis weakest_basis(std::span<const Group> groups);

}  // namespace mayfly
