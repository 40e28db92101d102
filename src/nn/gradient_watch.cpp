#include "nn/gradient_watch.h"

#include <algorithm>

namespace mayfly {
namespace {

constexpr std::size_t kRunFloats = 256 * 1024 / sizeof(float);

}  // namespace

class GradientWatch::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(GradientWatch& watch, std::size_t run) : watch_(watch), run_(run) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    watch_.final(run_);
    return outputs;
  }

 private:
  GradientWatch& watch_;
  std::size_t run_;
};

// Runs are closed from the end, where a backward pass begins; only the last to be announced may be short.
GradientWatch::GradientWatch(const std::vector<NamedTensor>& parameters) {
  std::size_t at = 0;
  for (const auto& [name, tensor] : parameters) at += static_cast<std::size_t>(tensor.numel());
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    if (runs_.empty() || runs_.back().count >= kRunFloats) runs_.push_back({});
    auto& run = runs_.back();
    const auto count = static_cast<std::size_t>(parameter->tensor.numel());
    at -= count;
    run.first = at;
    run.count += count;
    ++run.parameters;
    nodes_.push_back(torch::autograd::impl::grad_accumulator(parameter->tensor));
    hooks_.push_back(nodes_.back()->add_post_hook(std::make_unique<Hook>(*this, runs_.size() - 1)));
  }
}

GradientWatch::~GradientWatch() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->del_post_hook(hooks_[i]);
}

void GradientWatch::begin(const Trainer::Ready& ready) {
  ready_ = ready;
  for (auto& run : runs_) run.missing = run.parameters;
}

void GradientWatch::final(std::size_t run) {
  if (ready_ && --runs_[run].missing == 0) ready_(runs_[run].first, runs_[run].count);
}

void GradientWatch::finish() {
  if (!ready_) return;
  for (const auto& run : runs_) {
    if (run.missing > 0) ready_(run.first, run.count);
  }
  ready_ = {};
}

}  // namespace mayfly
