#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nn/network.h"
#include "nn/trainer.h"

// For nn/ alone: this header takes LibTorch along.
namespace mayfly {

/// Says during a backward pass which gradients are final, in runs of neighbouring parameters worth sending. On a CPU,
/// where LibTorch walks back in the calling thread.
class GradientWatch {
 public:
  /// Parameters in the order of exchange().
  explicit GradientWatch(const std::vector<NamedTensor>& parameters);
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  /// Before a backward pass; nothing to call: it goes unwatched.
  void begin(const Trainer::Ready& ready);
  /// After it: what it did not reach is final too.
  void finish();

 private:
  struct Run {
    std::size_t first = 0;
    std::size_t count = 0;
    int parameters = 0;
    int missing = 0;  ///< parameters whose gradient is not final
  };
  class Hook;
  void final(std::size_t run);

  std::vector<Run> runs_;
  std::vector<std::shared_ptr<torch::autograd::Node>> nodes_;  ///< one for each parameter; holds a Hook
  std::vector<std::uintptr_t> hooks_;
  Trainer::Ready ready_;
};

}  // namespace mayfly
