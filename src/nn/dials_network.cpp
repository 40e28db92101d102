#include "nn/dials_network.h"

#include <algorithm>
#include <thread>

#include "data/dials.h"

namespace mayfly {
namespace {

using torch::Tensor;

class DialsNetwork final : public Network {
 public:
  DialsNetwork(const ModelSpec& model, int inputs, int classes)
      : compute_(model.compute_ms / 1000),
        device_(model.device_ms / 1000),
        weight_(torch::zeros({inputs, classes}, torch::requires_grad())),
        cargo_(torch::zeros({cargo(model, inputs * classes)}, torch::requires_grad())) {}
  Tensor forward(const Tensor& samples) override {
    const auto count = static_cast<double>(samples.size(0));
    burn(count * compute_);
    std::this_thread::sleep_for(count * device_);
    return samples.matmul(weight_);
  }
  std::vector<NamedTensor> parameters() override { return {{"weight", weight_}, {"cargo", cargo_}}; }
  std::vector<NamedTensor> buffers() override { return {}; }
  void set_training(bool) override {}
  void move_to(torch::Device device) override {
    weight_ = weight_.detach().to(device).requires_grad_();
    cargo_ = cargo_.detach().to(device).requires_grad_();
  }

 private:
  static std::int64_t cargo(const ModelSpec& model, std::int64_t layer) {
    const auto floats = static_cast<std::int64_t>(megabytes(model.parameters_mb).value / sizeof(float));
    return std::max<std::int64_t>(1, floats - layer);
  }

  Seconds compute_, device_;  ///< of one sample
  Tensor weight_, cargo_;
};

}  // namespace

std::unique_ptr<Network> dials_network(const ModelSpec& model, int inputs, int classes) {
  return std::make_unique<DialsNetwork>(model, inputs, classes);
}

}  // namespace mayfly
