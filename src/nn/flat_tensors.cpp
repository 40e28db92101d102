#include "nn/flat_tensors.h"

namespace mayfly {
namespace {

using torch::Tensor;

bool counts(const NamedTensor& buffer) { return buffer.tensor.scalar_type() != torch::kFloat; }

std::span<float> span_of(const Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

/// Hands out the parts of a piece one behind the other.
class Parts {
 public:
  explicit Parts(Tensor piece) : piece_(std::move(piece)) {}
  Tensor next(const Tensor& alike) {
    auto part = piece_.narrow(0, at_, alike.numel()).view(alike.sizes());
    at_ += alike.numel();
    return part;
  }

 private:
  Tensor piece_;
  std::int64_t at_ = 0;
};

/// The tensor itself stays, so modules, scripts and optimisers that hold it see its new place.
void move_to(const Tensor& tensor, const Tensor& place) {
  place.copy_(tensor.detach());
  Tensor(tensor).set_data(place);
}

}  // namespace

FlatTensors::FlatTensors(const std::vector<NamedTensor>& trained, const std::vector<NamedTensor>& buffers,
                         torch::Device device) {
  torch::NoGradGuard no_grad;
  const auto size_of = [](const Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); };
  for (const auto& [name, tensor] : trained) layout_.parameters += size_of(tensor);
  for (const auto& buffer : buffers) (counts(buffer) ? layout_.counters : layout_.statistics) += size_of(buffer.tensor);
  const auto options = torch::TensorOptions(device).dtype(torch::kFloat);
  const auto size = static_cast<std::int64_t>(layout_.size());
  exchanged_ = torch::zeros({size}, options);
  exchanged_host_ = exchanged_.to(torch::kCPU);
  weights_ = torch::zeros({size}, options);
  weights_host_ = weights_.to(torch::kCPU);
  Parts exchanged(exchanged_);
  Parts weights(weights_);
  for (const auto& [name, tensor] : trained) {
    move_to(tensor, weights.next(tensor));
    tensor.mutable_grad() = exchanged.next(tensor);
  }
  for (const auto& buffer : buffers) {
    if (counts(buffer)) continue;
    move_to(buffer.tensor, weights.next(buffer.tensor));
    statistics_.push_back({buffer.tensor, exchanged.next(buffer.tensor), buffer.tensor.clone()});
  }
  for (const auto& buffer : buffers) {
    if (counts(buffer)) counters_.push_back({buffer.tensor, exchanged.next(buffer.tensor), buffer.tensor.clone()});
  }
  counts_ = weights_.narrow(0, size - static_cast<std::int64_t>(layout_.counters),
                            static_cast<std::int64_t>(layout_.counters));
}

// A gradient of -0 added to 0 would be 0; added to -0 everything stays what it is.
void FlatTensors::clear() { exchanged_.fill_(-0.0); }

void FlatTensors::remember_statistics() {
  for (auto* group : {&statistics_, &counters_})
    for (auto& one : *group) one.before.copy_(one.tensor);
}

void FlatTensors::put_statistics_aside(double share) {
  torch::NoGradGuard no_grad;
  for (auto& one : statistics_) one.exchanged.copy_(one.tensor);
  for (auto& one : counters_) one.exchanged.copy_(one.tensor - one.before);
  for (auto* group : {&statistics_, &counters_}) {
    for (auto& one : *group) {
      if (share != 1) one.exchanged.mul_(share);
      one.tensor.copy_(one.before);
    }
  }
}

void FlatTensors::turn_statistics_into_changes(double share) {
  torch::NoGradGuard no_grad;
  for (auto& one : statistics_) one.exchanged.sub_(one.before, share);
}

void FlatTensors::take_statistics() {
  for (auto& one : statistics_) one.tensor.copy_(one.exchanged);
  for (auto& one : counters_) one.tensor += one.exchanged.round().to(torch::kInt64);
}

std::span<float> FlatTensors::exchange() { return span_of(exchanged_host_); }

void FlatTensors::exchange_to_host() {
  if (!exchanged_.is_cpu()) exchanged_host_.copy_(exchanged_);
}

void FlatTensors::exchange_from_host() {
  if (!exchanged_.is_cpu()) exchanged_.copy_(exchanged_host_);
}

std::span<float> FlatTensors::weights() {
  torch::NoGradGuard no_grad;
  Parts counts(counts_);
  for (auto& one : counters_) counts.next(one.tensor).copy_(one.tensor);
  if (!weights_.is_cpu()) weights_host_.copy_(weights_);
  return span_of(weights_host_);
}

void FlatTensors::weights_written() {
  torch::NoGradGuard no_grad;
  if (!weights_.is_cpu()) weights_.copy_(weights_host_);
  Parts counts(counts_);
  for (auto& one : counters_) one.tensor.copy_(counts.next(one.tensor).round());
}

}  // namespace mayfly
