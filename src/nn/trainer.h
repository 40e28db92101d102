#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/safetensors.h"
#include "job/train_spec.h"

namespace mayfly {

struct Evaluation {
  double loss_sum = 0;
  double correct = 0;  ///< labels guessed right
  double labels = 0;
};

/// How many floats of what lie behind each other in Trainer::exchange() and Trainer::weights().
struct ExchangeLayout {
  std::size_t parameters = 0;
  std::size_t statistics = 0;  ///< running ones, such as batch norm's
  std::size_t counters = 0;    ///< whole numbers
  std::size_t size() const { return parameters + statistics + counters; }
  bool operator==(const ExchangeLayout&) const = default;
};

/// An optimiser's moments, flat: each as long as the parameters and in their order.
struct FlatMoments {
  std::vector<std::vector<float>> values{};
  std::int64_t steps = 0;  ///< taken so far, where the kind counts them
  bool operator==(const FlatMoments&) const = default;
};

/// One layer in one pass.
struct LayerCost {
  std::string name{};
  double forward_s = 0;
  double backward_s = 0;
  double parameters = 0;
  double output_mb = 0;  ///< what the next layer gets
  bool operator==(const LayerCost&) const = default;
};

/// A network and its optimiser: everything that LibTorch does for mayfly. A step has two halves, so that an update
/// waits until it is known to count: compute() leaves the state as it is, apply() moves it. With one worker the two are
/// a plain LibTorch loop to the bit. One thread. What LibTorch throws after make() (no memory left, an error inside a
/// script) passes through.
class Trainer {
 public:
  /// First weights drawn from the spec's seed: equal in every process. TorchScript files are relative to `folder`.
  static Result<std::unique_ptr<Trainer>> make(const TrainSpec& spec, const Dataset& data,
                                               const std::filesystem::path& folder);
  virtual ~Trainer() = default;

  /// Forward and backward over these samples, which are `share` of the step's batch (all of it: 1). Returns the loss of
  /// these samples, mean (or sum where the job adds up). Random numbers depend on the seed and `place`, the first
  /// sample's place in the run, alone. No samples: the gradient is 0. Replaces an earlier computation that was not
  /// applied. `ready` is called from within, with parts [first, first + count) of exchange() that are final.
  using Ready = std::function<void(std::size_t first, std::size_t count)>;
  virtual double compute(const Batch& batch, double share, std::int64_t place, const Ready& ready = {}) = 0;
  /// What the workers add up between the two halves: gradients times share (as they are where the job adds up losses),
  /// running statistics and what counters gained, times share, in one piece. Shares of a step must add up to 1. Valid
  /// until the next compute().
  virtual std::span<float> exchange() = 0;
  /// Moves the weights by the sum in exchange(). `step` counts from 0 over the whole run; `workers` matters only where
  /// the job scales the rate.
  virtual void apply(std::int64_t step, int workers) = 0;

  // With parameter servers, which hold the state and apply what workers push.

  virtual ExchangeLayout layout() const = 0;
  /// Parameters, statistics and counters in exchange()'s layout. What is written here counts after weights_written().
  virtual std::span<float> weights() = 0;
  virtual void weights_written() = 0;
  /// After compute(): turns exchange() into what servers add up. Statistics become their change, and the gradient of
  /// these samples alone is held to the job's norm. Parts that were announced as ready stay as they are: with a norm to
  /// hold to, compute() announces nothing.
  virtual void finish_push(double share) = 0;
  virtual FlatMoments moments() = 0;
  virtual void set_moments(const FlatMoments& moments) = 0;

  /// Sums over a batch, without a trace in the state.
  virtual Evaluation evaluate(const Batch& batch) = 0;
  /// The same over any number of samples of a data set, which this thread reads.
  Result<Evaluation> evaluate(const Dataset& data, std::span<const std::int64_t> samples);

  /// Weights and running statistics; moments of the optimiser (all of them, 0 before the first step). Views into the
  /// live tensors: valid until the next call of anything else.
  virtual std::vector<TensorView> model_state() = 0;
  virtual std::vector<TensorView> optimiser_state() = 0;
  /// The same tensors to write into, in the same order, for a state that comes from a peer. Call loaded() afterwards.
  virtual std::vector<std::span<std::byte>> writable_state() = 0;
  virtual void loaded() = 0;
  /// From a checkpoint: names, types and shapes must be this network's.
  virtual Result<void> load(const TensorFile& model, const TensorFile& optimiser) = 0;
  /// Back to the first weights.
  virtual void reset() = 0;

  virtual std::int64_t parameters() const = 0;
  virtual int tensors() const = 0;

  /// What each layer costs in a call of compute(), which `pass` makes.
  virtual std::vector<LayerCost> layers(const std::function<void()>& pass) = 0;
};

/// Threads that one trainer may use; call before the first Trainer.
void use_threads(int threads);
/// What this machine reaches multiplying large matrices, in 10^9 operations per second, with those threads.
double multiplication_gflops();

}  // namespace mayfly
