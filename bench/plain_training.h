#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"

namespace mayfly::bench {

/// The training of a job as one would write it with LibTorch alone: networks of torch::nn, torch::optim::SGD, nothing
/// of src/nn. What mayfly's own steps are compared with. The data set is mayfly's, so that both sides read the same.
class PlainTraining {
 public:
  /// Of `ranks` processes this one takes an equal part of each batch. Knows resnet, mlp and gpt trained with sgd.
  static Result<PlainTraining> open(const std::filesystem::path& job_file, int rank, int ranks);
  PlainTraining(PlainTraining&&) noexcept;
  ~PlainTraining();

  /// Forward and backward over this process's part of the next batch; returns its loss.
  double compute();
  void update();
  /// From now on the gradients are kept in one piece, weighted so that adding up over all processes gives the mean.
  std::span<float> flat_gradients();

 private:
  struct Parts;
  explicit PlainTraining(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace mayfly::bench
