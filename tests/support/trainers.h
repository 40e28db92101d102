#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "data/dataset.h"
#include "nn/trainer.h"

// Small networks to train in tests of nn/ and train/.
namespace mayfly::support {

inline std::unique_ptr<Dataset> open(const TrainSpec& spec) {
  auto data = open_dataset(spec.data, spec.model, ".");
  EXPECT_TRUE(data.has_value()) << data.error().message;
  return std::move(*data);
}

inline std::unique_ptr<Trainer> make(const TrainSpec& spec, const Dataset& data) {
  auto trainer = Trainer::make(spec, data, ".");
  EXPECT_TRUE(trainer.has_value()) << trainer.error().message;
  return std::move(*trainer);
}

inline TrainSpec pictures(const ModelSpec& model) {
  TrainSpec spec;
  spec.model = model;
  spec.data = {.name = "synthetic", .samples = 64, .shape = {2, 12, 12}, .classes = 4};
  spec.optimiser = {.rate = .05, .momentum = .9, .weight_decay = 1e-3};
  return spec;
}
inline TrainSpec small_mlp() { return pictures({.name = "mlp", .hidden = {32}}); }
inline TrainSpec small_resnet() { return pictures({.name = "resnet", .depth = 8, .width = 4}); }

/// Which samples step `step` trains: a walk through the data set.
inline std::vector<std::int64_t> batch_of(const Dataset& data, std::int64_t step, std::int64_t size) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) samples[static_cast<std::size_t>(i)] = (step * size + i) % data.size();
  return samples;
}

/// Copies of all tensors, model then optimiser.
inline std::vector<std::vector<std::byte>> state_of(Trainer& trainer) {
  std::vector<std::vector<std::byte>> result;
  for (const auto& view : trainer.model_state()) result.emplace_back(view.bytes.begin(), view.bytes.end());
  for (const auto& view : trainer.optimiser_state()) result.emplace_back(view.bytes.begin(), view.bytes.end());
  return result;
}

}  // namespace mayfly::support
