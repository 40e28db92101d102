#pragma once

#include <optional>
#include <string_view>

#include "base/document.h"

// How a network is trained, as far as it decides what memory it takes and how fast other GPUs are at it.
namespace mayfly {

/// Of the products of matrices. tf32 is what fp32 code computes with on GPUs that have it.
enum class Precision { fp32, tf32, fp16, bf16, fp8 };
/// What the layers mostly are.
enum class Network { unknown, convolutions, transformer, recurrent, audio, recommender };
/// fp32 also where a framework computes in half precision of its own accord (autocast).
enum class Weights { fp32, half_with_master, half };
enum class Optimiser { sgd, momentum, adam, lamb, lion, adafactor, adam_8bit, adam_paged };
/// What of the forward pass is computed again in the backward pass.
enum class Recompute { none, selective, full };
/// What workers keep a part of instead of the whole (ZeRO 1, 2 and 3).
enum class Shard { none, optimiser, gradients, parameters };

std::string_view name(Precision precision);
std::string_view name(Network network);
std::string_view name(Weights weights);
std::string_view name(Optimiser optimiser);
std::string_view name(Recompute recompute);
std::string_view name(Shard shard);

/// 16 bits and fewer; with the others products are of 32 bits.
bool is_half(Precision precision);

struct Recipe {
  std::optional<Precision> precision{};
  Network network = Network::unknown;
  std::optional<bool> tuned{};  ///< fused kernels and compiled code, as in what trains large language models
  std::optional<double> parameters{};
  Weights weights = Weights::fp32;
  std::optional<Optimiser> optimiser{};
  Shard shard = Shard::none;
  Recompute recompute = Recompute::none;
  // Of transformers; a sample is a sequence.
  std::optional<double> sequence{};  ///< tokens
  std::optional<double> layers{};
  std::optional<double> hidden{};
  std::optional<double> vocabulary{};
  bool flash = true;                         ///< attention that keeps no matrix of sequence x sequence
  std::optional<double> tflop_per_sample{};  ///< 10^12 operations of both passes, nothing recomputed
  bool operator==(const Recipe&) const = default;

  /// Unless told: both passes of a transformer, 6 operations a parameter and token.
  std::optional<double> work() const;
};

/// Keys of a profile's block `job`.
Recipe read_recipe(Section& job);

}  // namespace mayfly
