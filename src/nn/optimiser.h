#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "job/train_spec.h"
#include "nn/network.h"

// For nn/ alone: this header takes LibTorch along.
namespace mayfly {

/// torch::optim with its moments made beforehand, so that the state has one layout from the first step on; the
/// arithmetic is torch::optim's to the bit.
class Optimiser {
 public:
  Optimiser(const OptimiserSpec& spec, const std::vector<NamedTensor>& parameters);

  /// One step along the parameters' gradients.
  void step(double rate);
  /// The moments, named after their parameter, and the count of steps where the kind has one.
  const std::vector<NamedTensor>& state() const { return state_; }
  void reset();

 private:
  template <class State>
  void add_moments(const NamedTensor& parameter);
  template <class State>
  void set_counts();

  OptimiserSpec::Kind kind_;
  std::unique_ptr<torch::optim::Optimizer> torch_;
  std::vector<NamedTensor> state_;
  torch::Tensor steps_;  ///< of Adam: undefined elsewhere
};

}  // namespace mayfly
