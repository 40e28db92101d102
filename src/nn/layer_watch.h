#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "nn/network.h"
#include "nn/trainer.h"

namespace mayfly {

/// Sees every operation of one forward and backward pass in this thread, and adds them up by layer: an operation with
/// parameters of its own, and what follows it without any. The loss counts to the last one. With a GPU, times are those
/// of starting the operations. What it costs to look is part of the times: they say how layers compare.
class LayerWatch {
 public:
  explicit LayerWatch(const std::vector<NamedTensor>& parameters);
  std::vector<LayerCost> watch(const std::function<void()>& pass);

  // For LibTorch's callbacks.
  void begin(const at::RecordFunction& function);
  void end(const at::RecordFunction& function);

 private:
  using Clock = std::chrono::steady_clock;
  struct Parameter {
    std::string layer{};  ///< its name without that of the parameter
    double size = 0;
  };
  struct Span {
    std::uint64_t first_node = 0;  ///< of the backward pass: those from here to the next span's are this layer's
    std::size_t layer = 0;
  };
  void begin_layer(const at::RecordFunction& function);

  std::map<const void*, Parameter> parameters_{};
  std::vector<LayerCost> layers_{};
  std::vector<Span> spans_{};
  int depth_ = 0;
  bool backward_ = false;  ///< has begun
  Clock::time_point start_{};
  Clock::time_point node_start_{};
};

}  // namespace mayfly
