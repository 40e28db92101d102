#include "nn/optimiser.h"

namespace mayfly {
namespace {

using torch::Tensor;
namespace optim = torch::optim;

std::unique_ptr<optim::Optimizer> made(const OptimiserSpec& spec, const std::vector<Tensor>& tensors) {
  switch (spec.kind) {
    case OptimiserSpec::Kind::adam:
      return std::make_unique<optim::Adam>(tensors, optim::AdamOptions(spec.rate)
                                                        .betas({spec.beta1, spec.beta2})
                                                        .eps(spec.epsilon)
                                                        .weight_decay(spec.weight_decay));
    case OptimiserSpec::Kind::adamw:
      return std::make_unique<optim::AdamW>(tensors, optim::AdamWOptions(spec.rate)
                                                         .betas({spec.beta1, spec.beta2})
                                                         .eps(spec.epsilon)
                                                         .weight_decay(spec.weight_decay));
    case OptimiserSpec::Kind::sgd:
      break;
  }
  return std::make_unique<optim::SGD>(
      tensors, optim::SGDOptions(spec.rate).momentum(spec.momentum).weight_decay(spec.weight_decay));
}

/// How torch::optim finds the state of a parameter.
std::string key_of(const Tensor& parameter) { return c10::guts::to_string(parameter.unsafeGetTensorImpl()); }

// torch::optim copies the first gradient into the momentum; adding it to 0 would turn a gradient of -0 into 0.
Tensor first_momentum(const Tensor& parameter) { return torch::full_like(parameter, -0.0).detach(); }

}  // namespace

double rate_at(const TrainSpec& spec, std::int64_t step, int workers) {
  const double rate = spec.optimiser.rate * rate_factor(spec.schedule, static_cast<double>(step));
  return spec.scale_rate ? rate * workers : rate;
}

Optimiser::Optimiser(const OptimiserSpec& spec, const std::vector<NamedTensor>& parameters) : kind_(spec.kind) {
  moments_ = kind_ != OptimiserSpec::Kind::sgd ? 2 : spec.momentum != 0 ? 1 : 0;
  std::vector<Tensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  torch_ = made(spec, tensors);
  torch::NoGradGuard no_grad;
  for (const auto& parameter : parameters) {
    if (kind_ == OptimiserSpec::Kind::adam) add_moments<optim::AdamParamState>(parameter);
    if (kind_ == OptimiserSpec::Kind::adamw) add_moments<optim::AdamWParamState>(parameter);
    if (kind_ == OptimiserSpec::Kind::sgd && spec.momentum != 0) {
      auto state = std::make_unique<optim::SGDParamState>();
      state->momentum_buffer(first_momentum(parameter.tensor));
      state_.push_back({"momentum." + parameter.name, state->momentum_buffer()});
      torch_->state()[key_of(parameter.tensor)] = std::move(state);
    }
  }
  if (kind_ == OptimiserSpec::Kind::sgd) return;
  steps_ = torch::zeros({}, torch::kInt64);
  state_.push_back({"steps", steps_});
}

template <class State>
void Optimiser::add_moments(const NamedTensor& parameter) {
  auto state = std::make_unique<State>();
  state->step(0);
  state->exp_avg(torch::zeros_like(parameter.tensor).detach());
  state->exp_avg_sq(torch::zeros_like(parameter.tensor).detach());
  state_.push_back({"mean." + parameter.name, state->exp_avg()});
  state_.push_back({"square." + parameter.name, state->exp_avg_sq()});
  torch_->state()[key_of(parameter.tensor)] = std::move(state);
}

template <class State>
void Optimiser::set_counts() {
  for (auto& [key, state] : torch_->state()) static_cast<State&>(*state).step(steps_.item<std::int64_t>());
}

void Optimiser::step(double rate) {
  for (auto& group : torch_->param_groups()) group.options().set_lr(rate);
  // The count may have come from elsewhere since the last step.
  if (kind_ == OptimiserSpec::Kind::adam) set_counts<optim::AdamParamState>();
  if (kind_ == OptimiserSpec::Kind::adamw) set_counts<optim::AdamWParamState>();
  torch_->step();
  if (steps_.defined()) steps_ += 1;
}

void Optimiser::set_steps(std::int64_t steps) {
  if (steps_.defined()) steps_.fill_(steps);
}

void Optimiser::reset() {
  torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : state_) {
    if (kind_ == OptimiserSpec::Kind::sgd) {
      tensor.copy_(first_momentum(tensor));
    } else {
      tensor.zero_();
    }
  }
}

}  // namespace mayfly
