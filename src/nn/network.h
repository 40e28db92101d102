#pragma once

// First: clang in C++20 wants IValue complete before torch.h makes vectors of it.
#include <ATen/core/ivalue.h>
#include <torch/torch.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "job/train_spec.h"

// For nn/ alone: this header takes LibTorch along.
namespace mayfly {

struct NamedTensor {
  std::string name{};
  torch::Tensor tensor{};
};

/// What is trained, seen the same whether built here or loaded from a TorchScript file.
class Network {
 public:
  virtual ~Network() = default;
  /// Scores of each class for each label: {samples, classes} or {samples, labels, classes}.
  virtual torch::Tensor forward(const torch::Tensor& inputs) = 0;
  /// Cross entropy over all labels of the batch, added up or averaged.
  virtual torch::Tensor loss(const torch::Tensor& scores, const torch::Tensor& labels, bool sum) const;
  virtual torch::Tensor correct(const torch::Tensor& scores, const torch::Tensor& labels) const;

  virtual std::vector<NamedTensor> parameters() = 0;
  virtual std::vector<NamedTensor> buffers() = 0;
  /// Whether batch norm and dropout behave as in training.
  virtual void set_training(bool training) = 0;
  virtual void move_to(torch::Device device) = 0;
};

/// First weights are drawn from LibTorch's generator as it stands. May throw what LibTorch throws.
Result<std::unique_ptr<Network>> make_network(const ModelSpec& model, const Dataset& data,
                                              const std::filesystem::path& folder);

}  // namespace mayfly
