#pragma once

#include <optional>
#include <string>

#include "cloud/catalog.h"
#include "job/profile.h"

// What training takes of a GPU's memory: docs/models.md#memory. Sizes in 10^9 bytes, as the driver counts them.
namespace mayfly {

/// What of a GPU of so many GiB on paper there is, and what a framework gets of it before it fails.
double memory_there(double memory_gib);
double memory_usable(double memory_gib);

/// Weights, gradients and the optimiser's state of one GPU, where `workers` share what the recipe shards.
/// Requires recipe.parameters. Without an optimiser: of plain SGD, the least there is.
double state_memory(const Recipe& recipe, int workers);

/// Layers and width of a transformer of so many parameters, by the proportions that such networks have.
struct TransformerShape {
  double layers = 0;
  double hidden = 0;
};
TransformerShape transformer_shape(double parameters, double vocabulary);
/// Where a job does not tell its own.
inline constexpr double kUsualVocabulary = 50368;

/// What the need for memory rests on, the surest first.
enum class MemoryBasis { measured, transformer, state_alone };

/// The most memory of one GPU. Of `state_alone` only the lower end is known.
struct MemoryNeed {
  double low = 0;   ///< where the code is tuned
  double high = 0;  ///< where it is not
  double peak = 0;  ///< between the two
  MemoryBasis basis = MemoryBasis::state_alone;
  /// Was measured, and is less than the states that the recipe speaks of: one of the two is wrong, and nothing certain.
  std::optional<double> impossible_peak{};
};
/// For `batch` samples on each of so many GPUs. Nothing where the profile has neither peaks of machines with GPUs nor a
/// number of parameters. The profile's recipe may be another one than what the peaks were measured with.
std::optional<MemoryNeed> memory_need(const Profile& profile, const Recipe& recipe, const Catalog& catalog,
                                      double batch, int gpus);

enum class Fits { yes, unsure, no };
std::string_view name(Fits fits);
std::string_view name(MemoryBasis basis);
/// `no` only where it is all but certain, so that nothing is withheld that would run.
Fits fits(const MemoryNeed& need, double memory_gib);
/// Of `unsure`, how likely.
double chance_to_fit(const MemoryNeed& need, double memory_gib);

/// A job on a machine with GPUs.
struct MemoryFit {
  MemoryNeed need{};  ///< of each GPU
  double have = 0;    ///< there is, likewise
  Fits fits = Fits::unsure;
  double chance = 1;  ///< that it fits
  bool seen = false;  ///< as many samples were trained there, or with no more memory
};
/// With `batch` samples a step on the whole machine. Nothing where the machine has no GPU or the need is not known.
std::optional<MemoryFit> memory_fit(const Profile& profile, const Catalog& catalog, const InstanceType& type,
                                    double batch);
/// What would make it fit there, in words: smaller micro-batches, recomputation, sharing; empty: none of them would.
std::string what_would_fit(const Profile& profile, const Catalog& catalog, const InstanceType& type, double batch);

}  // namespace mayfly
