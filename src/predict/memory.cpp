#include "predict/memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace mayfly {
namespace {

constexpr double kGb = 1e9;
constexpr double kGbPerGib = 1.073741824;
/// Of the memory on paper: what the driver shows, and what runs tuned to the limit took.
constexpr double kShown = 0.992;
constexpr double kUsable = 0.94;
/// The context, libraries and their workspaces.
constexpr double kBase = 1.25;

/// Bytes a parameter.
struct StateBytes {
  double weights = 0;
  double gradients = 0;
  double optimiser = 0;  ///< and a master copy of the weights
};

StateBytes state_bytes(const Recipe& recipe) {
  struct PerOptimiser {
    double full = 0, half = 0;
  };
  constexpr std::array<PerOptimiser, 8> kOptimisers{
      {{0, 0}, {4, 2}, {8, 4}, {24, 14}, {4, 2}, {0.1, 0.1}, {2.1, 2.1}, {0, 0}}};
  const auto& own = kOptimisers[static_cast<std::size_t>(recipe.optimiser.value_or(Optimiser::sgd))];
  switch (recipe.weights) {
    case Weights::fp32:
      return {4, 4, own.full};
    case Weights::half_with_master:
      return {2, 2, 4 + own.full};
    case Weights::half:
      break;
  }
  return {2, 2, own.half};
}

/// Activations of one token in one layer of width 1: 34 bytes in half precision (Korthikanti et al., 2022); 18 where
/// attention and what is cheap is computed again, 2 where only the layer's input is kept.
double layer_bytes(const Recipe& recipe, const TransformerShape& shape) {
  const double heads = std::max(1.0, shape.hidden / 64);
  const double scores = recipe.flash ? 0 : 5 * heads * *recipe.sequence;
  switch (recipe.recompute) {
    case Recompute::none:
      return shape.layers * (34 * shape.hidden + scores);
    case Recompute::selective:
      return shape.layers * 18 * shape.hidden;
    case Recompute::full:
      break;
  }
  return shape.layers * 2 * shape.hidden + 34 * shape.hidden + scores;
}

/// How frugal code is: a factor on what layers keep, and bytes for each word of the vocabulary and token.
struct Code {
  double factor = 0;
  double logits = 0;
};
constexpr Code kEager{1.15, 14};
constexpr Code kTuned{0.95, 6};

double transformer_activations(const Recipe& recipe, double batch, const Code& code) {
  const double vocabulary = recipe.vocabulary.value_or(kUsualVocabulary);
  TransformerShape shape = transformer_shape(*recipe.parameters, vocabulary);
  if (recipe.layers && recipe.hidden) shape = {*recipe.layers, *recipe.hidden};
  const double wide = is_half(recipe.precision.value_or(Precision::fp32)) ? 1 : 2;
  const double token = layer_bytes(recipe, shape) * wide + code.logits * vocabulary;
  return code.factor * batch * *recipe.sequence * token / kGb;
}

/// A peak measured on one of so many GPUs.
struct Peak {
  double batch = 0;
  double memory = 0;
  int gpus = 1;
};

/// What of the peak does not grow with the batch, by what the states take; never nearly all of it.
double fixed_part(const Recipe& recipe, const Peak& peak, double factor) {
  const double state = recipe.parameters ? state_memory(recipe, peak.gpus) : 0;
  return std::min(factor * (kBase + state), 0.85 * peak.memory);
}

/// How far what is fixed may be off: optimisers keep copies, and libraries differ with the card.
constexpr double kFixedLeast = 0.6;
constexpr double kFixedMost = 1.5;

/// By one point the rest grows with the batch. Where states are shared by another number of GPUs, they change with it,
/// and no fewer samples take less than them.
MemoryNeed need_by_one(const Recipe& recipe, const Peak& seen, double batch, int gpus) {
  const double states = recipe.parameters ? state_memory(recipe, gpus) : 0;
  const double other = recipe.parameters ? states - state_memory(recipe, seen.gpus) : 0;
  const auto peak = [&](double factor) {
    const double fixed = fixed_part(recipe, seen, factor);
    const double all = fixed + (seen.memory - fixed) * batch / seen.batch + other;
    return other == 0 ? all : std::max(all, states);
  };
  const double least = peak(kFixedLeast), most = peak(kFixedMost);
  return {.low = std::min(least, most), .high = std::max(least, most), .peak = peak(1), .basis = MemoryBasis::measured};
}

/// The line through two peaks; where it would start far from what the states take, it is bent there.
MemoryNeed need_by_two(const Recipe& recipe, const Peak& a, const Peak& b, double batch) {
  const double most = 0.85 * std::min(a.memory, b.memory);
  const double state = fixed_part(recipe, a.memory < b.memory ? a : b, 1);
  const double slope = (b.memory - a.memory) / (b.batch - a.batch);
  const double fixed = std::clamp(a.memory - slope * a.batch, std::min(0.5 * state, most),
                                  std::min(std::max(2 * state, state + 3), most));
  const Peak& near = std::abs(batch - a.batch) < std::abs(batch - b.batch) ? a : b;
  const double peak = fixed + (near.memory - fixed) * batch / near.batch;
  return {.low = peak, .high = peak, .peak = peak, .basis = MemoryBasis::measured};
}

/// Peaks of one GPU that the profile has; of the type with the most.
std::vector<Peak> peaks_of(const Profile& profile, const Catalog& catalog) {
  std::vector<Peak> most;
  for (const auto& [name, measured] : profile.types) {
    const InstanceType* type = catalog.find(name);
    if (type == nullptr || !type->gpu) continue;
    std::vector<Peak> peaks;
    for (const BatchPoint& point : measured.batches) {
      if (point.peak_mb) peaks.push_back({point.batch / type->gpu_count, *point.peak_mb / 1e3, type->gpu_count});
    }
    if (peaks.size() > most.size()) most = std::move(peaks);
  }
  return most;
}

/// The nearest first.
std::vector<Peak> peaks_about(const Profile& profile, const Catalog& catalog, double batch) {
  auto peaks = peaks_of(profile, catalog);
  std::stable_sort(peaks.begin(), peaks.end(),
                   [&](const Peak& a, const Peak& b) { return std::abs(a.batch - batch) < std::abs(b.batch - batch); });
  return peaks;
}

/// Below the states that its GPU would have held: recipe and measurement contradict each other.
bool is_impossible(const Recipe& recipe, const Peak& peak) {
  return recipe.parameters && peak.memory < state_memory(recipe, peak.gpus);
}

/// Requires peaks.
MemoryNeed measured_need(const Recipe& recipe, const std::vector<Peak>& peaks, double batch, int gpus) {
  // The two nearest that differ.
  const auto other =
      std::find_if(peaks.begin(), peaks.end(), [&](const Peak& peak) { return peak.batch != peaks.front().batch; });
  const bool shared_otherwise = recipe.shard != Shard::none && peaks.front().gpus != gpus;
  if (other == peaks.end() || shared_otherwise) return need_by_one(recipe, peaks.front(), batch, gpus);
  return need_by_two(recipe, peaks.front(), *other, batch);
}

/// Factors on a need before "it fits" and "it does not" are said, and the spread of its logarithm.
struct Margin {
  double yes = 1, no = 1, sd = 0;
};
Margin margin(MemoryBasis basis) {
  switch (basis) {
    case MemoryBasis::measured:
      return {1.30, 1.20, 0.10};
    case MemoryBasis::transformer:
      return {2.00, 1.12, 0.25};
    case MemoryBasis::state_alone:
      break;
  }
  return {1.9, 1.0, 0.5};
}

}  // namespace

double memory_there(double memory_gib) { return memory_gib * kGbPerGib * kShown; }
double memory_usable(double memory_gib) { return memory_gib * kGbPerGib * kUsable; }

double state_memory(const Recipe& recipe, int workers) {
  const StateBytes bytes = state_bytes(recipe);
  const auto among = [&](Shard from) { return recipe.shard >= from ? workers : 1; };
  return *recipe.parameters *
         (bytes.weights / among(Shard::parameters) + bytes.gradients / among(Shard::gradients) +
          bytes.optimiser / among(Shard::optimiser)) /
         kGb;
}

TransformerShape transformer_shape(double parameters, double vocabulary) {
  const double ratio = std::clamp(64 * std::pow(parameters / 0.4e9, 0.25), 64.0, 128.0);
  double hidden = 0;
  // hidden = ratio * layers and 12 layers hidden^2 + vocabulary hidden = parameters: halfway to the solution each time.
  for (int i = 0; i < 20; ++i) {
    const double body = std::max(parameters - vocabulary * hidden, 0.3 * parameters);
    hidden = 0.5 * hidden + 0.5 * ratio * std::cbrt(body / (12 * ratio * ratio));
  }
  return {hidden / ratio, hidden};
}

std::optional<MemoryNeed> memory_need(const Profile& profile, const Recipe& recipe, const Catalog& catalog,
                                      double batch, int gpus) {
  std::optional<double> impossible;
  if (recipe == profile.recipe) {
    const auto peaks = peaks_about(profile, catalog, batch);
    const bool shared_otherwise = !peaks.empty() && recipe.shard != Shard::none && peaks.front().gpus != gpus;
    // What GPUs hold that share the states otherwise cannot be told from such a peak; the recipe tells more.
    if (shared_otherwise && is_impossible(recipe, peaks.front())) impossible = peaks.front().memory;
    if (!peaks.empty() && !impossible) return measured_need(recipe, peaks, batch, gpus);
  }
  if (!recipe.parameters) return std::nullopt;
  double fixed = kBase + state_memory(recipe, gpus);
  if (recipe.network != Network::transformer || !recipe.sequence || !recipe.optimiser)
    return MemoryNeed{
        .low = fixed, .high = fixed, .peak = fixed, .basis = MemoryBasis::state_alone, .impossible_peak = impossible};
  // Two layers' weights in half precision are gathered at a time.
  if (recipe.shard == Shard::parameters) {
    const double layers = recipe.layers.value_or(
        transformer_shape(*recipe.parameters, recipe.vocabulary.value_or(kUsualVocabulary)).layers);
    fixed += 4 * *recipe.parameters / layers / kGb;
  }
  MemoryNeed need{.low = fixed + transformer_activations(recipe, batch, kTuned),
                  .high = fixed + transformer_activations(recipe, batch, kEager),
                  .basis = MemoryBasis::transformer,
                  .impossible_peak = impossible};
  if (recipe.tuned) (*recipe.tuned ? need.high : need.low) = *recipe.tuned ? need.low : need.high;
  need.peak = std::sqrt(need.low * need.high);
  return need;
}

std::string_view name(MemoryBasis basis) {
  return basis == MemoryBasis::measured ? "measured" : basis == MemoryBasis::transformer ? "shape" : "states-alone";
}
std::string_view name(Fits fits) { return fits == Fits::yes ? "yes" : fits == Fits::no ? "no" : "unsure"; }

Fits fits(const MemoryNeed& need, double memory_gib) {
  if (need.impossible_peak) return Fits::unsure;
  const Margin allowed = margin(need.basis);
  if (need.low > allowed.no * memory_there(memory_gib)) return Fits::no;
  if (need.basis != MemoryBasis::state_alone && need.high * allowed.yes <= memory_usable(memory_gib)) return Fits::yes;
  return Fits::unsure;
}

double chance_to_fit(const MemoryNeed& need, double memory_gib) {
  return 0.5 * std::erfc(std::log(need.peak / memory_there(memory_gib)) / (margin(need.basis).sd * std::sqrt(2.0)));
}

namespace {

/// A machine of no more GPUs, that may share states, with no more memory trained as many samples on each of them.
bool trained_as_many(const Profile& profile, const Catalog& catalog, const InstanceType& type, double batch) {
  return std::any_of(profile.types.begin(), profile.types.end(), [&](const auto& entry) {
    const auto& [name, measured] = entry;
    const InstanceType* there = name == type.name ? &type : catalog.find(name);
    if (!(measured.step || measured.compute) || there == nullptr || !there->gpu || there->gpu_count == 0) return false;
    return there->gpu_count <= type.gpu_count && there->gpu->memory_gib <= type.gpu->memory_gib &&
           measured.batch / there->gpu_count >= batch / type.gpu_count * (1 - 1e-9);
  });
}

}  // namespace

std::optional<MemoryFit> memory_fit(const Profile& profile, const Catalog& catalog, const InstanceType& type,
                                    double batch) {
  if (!type.gpu || type.gpu_count == 0) return std::nullopt;
  const double each = batch / type.gpu_count;
  const auto need = memory_need(profile, profile.recipe, catalog, each, type.gpu_count);
  if (!need) return std::nullopt;
  const double memory = type.gpu->memory_gib;
  if (trained_as_many(profile, catalog, type, batch))
    return MemoryFit{.need = *need, .have = memory_there(memory), .fits = Fits::yes, .chance = 1, .seen = true};
  MemoryFit fit{.need = *need, .have = memory_there(memory), .fits = fits(*need, memory)};
  fit.chance = fit.fits == Fits::no ? 0 : fit.fits == Fits::yes ? 1 : chance_to_fit(*need, memory);
  return fit;
}

std::string what_would_fit(const Profile& profile, const Catalog& catalog, const InstanceType& type, double batch) {
  const double each = batch / type.gpu_count;
  // Advice that fails more often than not is none.
  const auto helps = [&](const Recipe& recipe, double samples, int gpus) {
    auto need = memory_need(profile, recipe, catalog, samples, gpus);
    const auto own = memory_need(profile, profile.recipe, catalog, samples, type.gpu_count);
    // Activations are what was measured beside the states.
    if (need && need->basis == MemoryBasis::state_alone && own && own->basis == MemoryBasis::measured) {
      const double states = state_memory(recipe, gpus);
      const double saved = state_memory(profile.recipe, type.gpu_count) - states;
      if (own->peak - saved < states) return false;  // the peak contradicts the recipe
      need = MemoryNeed{own->low - saved, own->high - saved, own->peak - saved, own->basis};
    }
    return need && fits(*need, type.gpu->memory_gib) != Fits::no && chance_to_fit(*need, type.gpu->memory_gib) >= 0.5;
  };
  std::vector<std::string> ways;
  for (double samples = each / 2; samples >= 1; samples /= 2) {
    if (!helps(profile.recipe, samples, type.gpu_count)) continue;
    ways.push_back(fmt::format("gradient accumulation, {:g} samples at a time", std::floor(samples)));
    break;
  }
  Recipe recomputing = profile.recipe;
  recomputing.recompute = Recompute::full;
  const bool transformer = profile.recipe.network == Network::transformer && profile.recipe.sequence;
  if (transformer && recomputing != profile.recipe && helps(recomputing, each, type.gpu_count))
    ways.emplace_back("full recomputation");
  Recipe sharing = profile.recipe;
  sharing.shard = Shard::parameters;
  // Smaller batches only where nothing helps by itself.
  for (double samples = each; samples >= 1 && (samples == each || ways.empty()); samples /= 2) {
    for (const int gpus : {type.gpu_count, 2, 4, 8, 16, 32, 64}) {
      if (gpus < std::max(2, type.gpu_count)) continue;
      if (sharing == profile.recipe || !helps(sharing, samples, gpus)) continue;
      ways.push_back(fmt::format("parameters shared by {} GPUs (ZeRO 3)", gpus));
      if (samples < each) ways.back() += fmt::format(" and {:g} samples at a time on each", std::floor(samples));
      break;
    }
  }
  return fmt::format("{}", fmt::join(ways, ", or "));
}

}  // namespace mayfly
