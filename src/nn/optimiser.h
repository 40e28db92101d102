#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "job/train_spec.h"
#include "nn/network.h"

// For nn/ alone: this header takes LibTorch along.
namespace mayfly {

/// `step` counts from 0 over the whole run.
double rate_at(const TrainSpec& spec, std::int64_t step, int workers);

/// torch::optim with its moments made beforehand, so that the state has one layout from the first step on; the
/// arithmetic is torch::optim's to the bit.
class Optimiser {
 public:
  Optimiser(const OptimiserSpec& spec, const std::vector<NamedTensor>& parameters);

  /// One step along the parameters' gradients.
  void step(double rate);
  /// The moments of one parameter after the other, named after it, and the count of steps where the kind has one.
  const std::vector<NamedTensor>& state() const { return state_; }
  /// How many moments each parameter has.
  std::size_t moments() const { return moments_; }
  /// 0 where the kind does not count.
  std::int64_t steps() const { return steps_.defined() ? steps_.item<std::int64_t>() : 0; }
  void set_steps(std::int64_t steps);
  void reset();

 private:
  template <class State>
  void add_moments(const NamedTensor& parameter);
  template <class State>
  void set_counts();

  OptimiserSpec::Kind kind_;
  std::unique_ptr<torch::optim::Optimizer> torch_;
  std::vector<NamedTensor> state_;
  std::size_t moments_ = 0;
  torch::Tensor steps_;  ///< of Adam: undefined elsewhere
};

}  // namespace mayfly
