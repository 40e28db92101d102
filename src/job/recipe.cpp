#include "job/recipe.h"

#include <array>

#include "base/text.h"

namespace mayfly {
namespace {

/// The words of a kind of choice, in the order of its values.
template <class Choice>
struct ChoiceWords;
template <>
struct ChoiceWords<Precision> {
  static constexpr std::array<std::string_view, 5> kAll{"fp32", "tf32", "fp16", "bf16", "fp8"};
};
template <>
struct ChoiceWords<Network> {
  static constexpr std::array<std::string_view, 6> kAll{"unknown",   "convolutions", "transformer",
                                                        "recurrent", "audio",        "recommender"};
};
template <>
struct ChoiceWords<Weights> {
  static constexpr std::array<std::string_view, 3> kAll{"fp32", "half-with-master", "half"};
};
template <>
struct ChoiceWords<Optimiser> {
  static constexpr std::array<std::string_view, 8> kAll{"sgd",  "momentum",  "adam",      "lamb",
                                                        "lion", "adafactor", "adam-8bit", "adam-paged"};
};
template <>
struct ChoiceWords<Recompute> {
  static constexpr std::array<std::string_view, 3> kAll{"none", "selective", "full"};
};
template <>
struct ChoiceWords<Shard> {
  static constexpr std::array<std::string_view, 4> kAll{"none", "optimiser", "gradients", "parameters"};
};

template <class Choice>
std::string_view word(Choice choice) {
  return ChoiceWords<Choice>::kAll[static_cast<std::size_t>(choice)];
}

template <class Choice>
std::optional<Choice> maybe_choice(Section& section, std::string_view key) {
  const auto text = section.maybe_text(key);
  if (!text) return std::nullopt;
  const auto& words = ChoiceWords<Choice>::kAll;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == *text) return static_cast<Choice>(i);
  }
  section.reject(key, fmt::format("'{}', want one of {}", *text, fmt::join(words, ", ")));
  return std::nullopt;
}

}  // namespace

std::string_view name(Precision precision) { return word(precision); }
std::string_view name(Network network) { return word(network); }
std::string_view name(Weights weights) { return word(weights); }
std::string_view name(Optimiser optimiser) { return word(optimiser); }
std::string_view name(Recompute recompute) { return word(recompute); }
std::string_view name(Shard shard) { return word(shard); }

bool is_half(Precision precision) { return precision != Precision::fp32 && precision != Precision::tf32; }

std::optional<double> Recipe::work() const {
  if (tflop_per_sample) return tflop_per_sample;
  if (network != Network::transformer || !parameters || !sequence) return std::nullopt;
  return 6 * *parameters * *sequence / 1e12;
}

Recipe read_recipe(Section& job) {
  Recipe recipe{.precision = maybe_choice<Precision>(job, "precision"),
                .network = maybe_choice<Network>(job, "network").value_or(Network::unknown),
                .tuned = job.maybe_flag("tuned"),
                .weights = maybe_choice<Weights>(job, "weights").value_or(Weights::fp32),
                .optimiser = maybe_choice<Optimiser>(job, "optimiser"),
                .shard = maybe_choice<Shard>(job, "shard").value_or(Shard::none),
                .recompute = maybe_choice<Recompute>(job, "recompute").value_or(Recompute::none)};
  if (const auto millions = job.maybe_number("parameters_millions", Range::positive))
    recipe.parameters = *millions * 1e6;
  recipe.sequence = job.maybe_number("sequence", Range::positive);
  recipe.layers = job.maybe_number("layers", Range::positive);
  recipe.hidden = job.maybe_number("hidden", Range::positive);
  recipe.vocabulary = job.maybe_number("vocabulary", Range::positive);
  recipe.flash = job.maybe_flag("flash").value_or(true);
  recipe.tflop_per_sample = job.maybe_number("tflop_per_sample", Range::positive);
  return recipe;
}

}  // namespace mayfly
