#pragma once

#include <span>
#include <vector>

#include "nn/network.h"
#include "nn/trainer.h"

// For nn/ alone: this header takes LibTorch along.
namespace mayfly {

/// What is trained, in one piece: parameters and running statistics live in it. A second piece of the same layout is
/// what workers exchange: parameters accumulate their gradients right there. Counters are whole numbers that live
/// elsewhere and travel as floats, exact to 2^24. Where the network is not on a CPU both pieces have a copy that is.
class FlatTensors {
 public:
  /// Moves the tensors, values and all; what else refers to them follows.
  FlatTensors(const std::vector<NamedTensor>& trained, const std::vector<NamedTensor>& buffers, torch::Device device);

  const ExchangeLayout& layout() const { return layout_; }

  /// A computation begins: gradients are 0.
  void clear();
  /// Before the forward pass, which moves statistics of a step that may never count.
  void remember_statistics();
  /// After it: what they became travels, times share, and the network gets the old ones.
  void put_statistics_aside(double share);
  /// After put_statistics_aside(): of statistics the change travels, times share.
  void turn_statistics_into_changes(double share);
  /// Statistics and counters become what was exchanged.
  void take_statistics();

  /// What is exchanged, where others can read and write it.
  std::span<float> exchange();
  void exchange_to_host();
  void exchange_from_host();

  /// What is trained, where others can read and write it; what they write counts after weights_written().
  std::span<float> weights();
  void weights_written();

 private:
  /// A tensor and its part of the exchanged piece, of the same shape.
  struct Part {
    torch::Tensor tensor{};
    torch::Tensor exchanged{};
    torch::Tensor before{};  ///< the tensor as it was when the computation began
  };

  ExchangeLayout layout_{};
  torch::Tensor exchanged_;
  torch::Tensor exchanged_host_;  ///< exchanged_ itself on a CPU
  torch::Tensor weights_;
  torch::Tensor weights_host_;  ///< weights_ itself on a CPU
  torch::Tensor counts_;        ///< the counters' part of weights_
  std::vector<Part> statistics_;
  std::vector<Part> counters_;
};

}  // namespace mayfly
