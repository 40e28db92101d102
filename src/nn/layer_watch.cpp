#include "nn/layer_watch.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>

namespace mayfly {
namespace {

/// Callbacks carry no object of ours: whose they are is known by the thread.
thread_local LayerWatch* watching = nullptr;

std::unique_ptr<at::ObserverContext> operation_begins(const at::RecordFunction& function) {
  if (watching != nullptr) watching->begin(function);
  return nullptr;
}
void operation_ends(const at::RecordFunction& function, at::ObserverContext*) {
  if (watching != nullptr) watching->end(function);
}

double megabytes_of(const std::vector<c10::IValue>& values) {
  std::size_t bytes = 0;
  for (const auto& value : values) {
    if (value.isTensor() && value.toTensor().defined()) bytes = std::max(bytes, value.toTensor().nbytes());
  }
  return static_cast<double>(bytes) / 1e6;
}

}  // namespace

LayerWatch::LayerWatch(const std::vector<NamedTensor>& parameters) {
  for (const auto& [name, tensor] : parameters) {
    const auto dot = name.rfind('.');
    parameters_[tensor.unsafeGetTensorImpl()] = {.layer = dot == name.npos ? name : name.substr(0, dot),
                                                 .size = static_cast<double>(tensor.numel())};
  }
}

std::vector<LayerCost> LayerWatch::watch(const std::function<void()>& pass) {
  layers_.clear();
  spans_.clear();
  depth_ = 0;
  backward_ = false;
  watching = this;
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(operation_begins, operation_ends)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  pass();
  at::removeCallback(handle);
  watching = nullptr;
  return layers_;
}

void LayerWatch::begin(const at::RecordFunction& function) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    backward_ = true;
    node_start_ = Clock::now();
    return;
  }
  if (backward_ || ++depth_ > 1) return;
  begin_layer(function);
  start_ = Clock::now();
}

void LayerWatch::begin_layer(const at::RecordFunction& function) {
  LayerCost layer;
  for (const auto& input : function.inputs()) {
    if (!input.isTensor()) continue;
    const auto found = parameters_.find(input.toTensor().unsafeGetTensorImpl());
    if (found == parameters_.end()) continue;
    layer.name = found->second.layer;
    layer.parameters += found->second.size;
  }
  if (layer.parameters == 0) return;
  if (!layers_.empty() && layers_.back().name == layer.name) {
    // A linear layer turns its weight round before it uses it with its bias.
    layers_.back().parameters += layer.parameters;
    return;
  }
  layers_.push_back(std::move(layer));
  spans_.push_back({.first_node = at::sequence_number::peek(), .layer = layers_.size() - 1});
}

void LayerWatch::end(const at::RecordFunction& function) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    const auto node = static_cast<std::uint64_t>(function.seqNr());
    const auto after = std::upper_bound(spans_.begin(), spans_.end(), node, [](std::uint64_t number, const Span& span) {
      return number < span.first_node;
    });
    // Those that only keep a gradient have the highest number of all.
    if (after == spans_.begin() || function.seqNr() < 0 || node >= at::sequence_number::peek()) return;
    layers_[std::prev(after)->layer].backward_s += Seconds(Clock::now() - node_start_).count();
    return;
  }
  if (backward_ || --depth_ > 0 || layers_.empty()) return;
  layers_.back().forward_s += Seconds(Clock::now() - start_).count();
  if (const double size = megabytes_of(function.outputs());
      size > 0 && function.outputs()[0].isTensor() && function.outputs()[0].toTensor().dim() > 0)
    layers_.back().output_mb = size;
}

double multiplication_gflops() {
  constexpr std::int64_t kSide = 768;
  constexpr int kTimes = 5;
  const torch::NoGradGuard no_grad;
  const auto a = torch::rand({kSide, kSide});
  const auto b = torch::rand({kSide, kSide});
  auto fastest = std::chrono::duration<double>::max();
  for (int i = 0; i < kTimes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    torch::mm(a, b);
    fastest = std::min<std::chrono::duration<double>>(fastest, std::chrono::steady_clock::now() - start);
  }
  return 2.0 * kSide * kSide * kSide / fastest.count() / 1e9;
}

}  // namespace mayfly
