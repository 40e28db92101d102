#include "nn/network.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <torch/script.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "base/file.h"
#include "nn/described_network.h"
#include "nn/dials_network.h"

namespace mayfly {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

nn::Conv2d conv3x3(int in, int out, int stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

/// Two convolutions around a shortcut that has no weights: where the picture shrinks it takes every second pixel and
/// fills the new channels with 0 (He et al. 2015, option A).
class ResidualBlock : public nn::Module {
 public:
  ResidualBlock(int in, int out, int stride)
      : stride_(stride),
        new_channels_(out - in),
        conv1_(register_module("conv1", conv3x3(in, out, stride))),
        norm1_(register_module("norm1", nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", conv3x3(out, out))),
        norm2_(register_module("norm2", nn::BatchNorm2d(out))) {}

  Tensor forward(const Tensor& x) {
    auto y = torch::relu(norm1_(conv1_(x)));
    y = norm2_(conv2_(y));
    return torch::relu(y + shortcut(x));
  }

 private:
  Tensor shortcut(const Tensor& x) const {
    if (stride_ == 1 && new_channels_ == 0) return x;
    const auto fewer = x.slice(2, 0, torch::nullopt, stride_).slice(3, 0, torch::nullopt, stride_);
    return torch::constant_pad_nd(fewer, {0, 0, 0, 0, 0, new_channels_});
  }

  int stride_;
  int new_channels_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
};

/// Characters and their places become vectors.
class Embedding : public nn::Module {
 public:
  Embedding(int characters, int context, int width)
      : token_(register_module("token", nn::Embedding(characters, width))),
        place_(register_module("place", nn::Embedding(context, width))) {}
  Tensor forward(const Tensor& codes) { return token_(codes) + place_(torch::arange(codes.size(1), codes.options())); }

 private:
  nn::Embedding token_;
  nn::Embedding place_;
};

/// Each character attends to itself and those before it, then passes through a small network of its own.
class TransformerBlock : public nn::Module {
 public:
  TransformerBlock(int width, int heads)
      : heads_(heads),
        norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})))),
        attention_(register_module("attention", nn::Linear(width, 3 * width))),
        join_(register_module("join", nn::Linear(width, width))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})))),
        widen_(register_module("widen", nn::Linear(width, 4 * width))),
        narrow_(register_module("narrow", nn::Linear(4 * width, width))) {}

  Tensor forward(const Tensor& x) {
    const auto y = x + join_(attended(norm1_(x)));
    return y + narrow_(torch::gelu(widen_(norm2_(y))));
  }

 private:
  Tensor attended(const Tensor& x) {
    const auto batch = x.size(0);
    const auto length = x.size(1);
    const auto width = x.size(2);
    // {query, key, value} x {batch, heads, length, width of a head}
    const auto parts = attention_(x).view({batch, length, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
    const double scale = 1 / std::sqrt(static_cast<double>(width / heads_));
    auto weights = torch::matmul(parts[0], parts[1].transpose(-2, -1)) * scale;
    const auto later = torch::ones({length, length}, x.options().dtype(torch::kBool)).triu(1);
    weights = torch::softmax(weights.masked_fill(later, -std::numeric_limits<float>::infinity()), -1);
    return torch::matmul(weights, parts[2]).transpose(1, 2).reshape({batch, length, width});
  }

  int heads_;
  nn::LayerNorm norm1_;
  nn::Linear attention_;
  nn::Linear join_;
  nn::LayerNorm norm2_;
  nn::Linear widen_;
  nn::Linear narrow_;
};

std::vector<NamedTensor> named(const torch::OrderedDict<std::string, Tensor>& tensors) {
  std::vector<NamedTensor> result;
  for (const auto& item : tensors) result.push_back({item.key(), item.value()});
  return result;
}

class SequentialNetwork final : public Network {
 public:
  explicit SequentialNetwork(nn::Sequential layers) : layers_(std::move(layers)) {}
  Tensor forward(const Tensor& inputs) override { return layers_->forward(inputs); }
  std::vector<NamedTensor> parameters() override { return named(layers_->named_parameters()); }
  std::vector<NamedTensor> buffers() override { return named(layers_->named_buffers()); }
  void set_training(bool training) override { layers_->train(training); }
  void move_to(torch::Device device) override { layers_->to(device); }

 private:
  nn::Sequential layers_;
};

/// One weight for each sample; the gradient of a batch is -1 at each of its samples.
class CountNetwork final : public Network {
 public:
  explicit CountNetwork(std::int64_t samples) : weight_(torch::zeros({samples}, torch::requires_grad())) {}
  Tensor forward(const Tensor&) override { return weight_; }
  Tensor loss(const Tensor& weights, const Tensor& samples, bool sum) const override {
    const auto seen = weights.index_select(0, samples.flatten());
    return sum ? -seen.sum() : -seen.mean();
  }
  Tensor correct(const Tensor&, const Tensor&) const override { return torch::zeros({}); }
  std::vector<NamedTensor> parameters() override { return {{"weight", weight_}}; }
  std::vector<NamedTensor> buffers() override { return {}; }
  void set_training(bool) override {}
  void move_to(torch::Device device) override { weight_ = weight_.detach().to(device).requires_grad_(); }

 private:
  Tensor weight_;
};

class ScriptNetwork final : public Network {
 public:
  explicit ScriptNetwork(torch::jit::Module script) : script_(std::move(script)) {}
  Tensor forward(const Tensor& inputs) override { return script_.forward({inputs}).toTensor(); }
  std::vector<NamedTensor> parameters() override {
    std::vector<NamedTensor> result;
    for (const auto& item : script_.named_parameters()) result.push_back({item.name, item.value});
    return result;
  }
  std::vector<NamedTensor> buffers() override {
    std::vector<NamedTensor> result;
    for (const auto& item : script_.named_buffers()) result.push_back({item.name, item.value});
    return result;
  }
  void set_training(bool training) override { script_.train(training); }
  void move_to(torch::Device device) override { script_.to(device); }

 private:
  torch::jit::Module script_;
};

nn::Sequential mlp(const ModelSpec& model, std::int64_t inputs, int classes) {
  nn::Sequential layers(nn::Flatten{});
  std::int64_t width = inputs;
  for (const int next : model.hidden) {
    layers->push_back(nn::Linear(width, next));
    layers->push_back(nn::ReLU());
    width = next;
  }
  layers->push_back(nn::Linear(width, classes));
  return layers;
}

nn::Sequential cnn(const ModelSpec& model, const std::vector<int>& shape, int classes) {
  constexpr int kHidden = 128;
  const int width = model.width;
  const auto conv = [](int in, int out) { return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)); };
  return nn::Sequential(conv(shape[0], width), nn::ReLU(), nn::MaxPool2d(2), conv(width, 2 * width), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Flatten(),
                        nn::Linear(2L * width * (shape[1] / 4) * (shape[2] / 4), kHidden), nn::ReLU(),
                        nn::Linear(kHidden, classes));
}

nn::Sequential resnet(const ModelSpec& model, int channels, int classes) {
  nn::Sequential layers(conv3x3(channels, model.width), nn::BatchNorm2d(model.width), nn::ReLU());
  int width = model.width;
  for (int stage = 0; stage < 3; ++stage) {
    for (int block = 0; block < (model.depth - 2) / 6; ++block) {
      const bool shrinks = stage > 0 && block == 0;
      layers->push_back(ResidualBlock(width, shrinks ? 2 * width : width, shrinks ? 2 : 1));
      if (shrinks) width *= 2;
    }
  }
  layers->push_back(nn::AdaptiveAvgPool2d(1));
  layers->push_back(nn::Flatten());
  layers->push_back(nn::Linear(width, classes));
  return layers;
}

nn::Sequential gpt(const ModelSpec& model, int classes) {
  nn::Sequential layers{Embedding(classes, model.context, model.embedding)};
  for (int i = 0; i < model.layers; ++i) layers->push_back(TransformerBlock(model.embedding, model.heads));
  layers->push_back(nn::LayerNorm(nn::LayerNormOptions({model.embedding})));
  layers->push_back(nn::Linear(nn::LinearOptions(model.embedding, classes).bias(false)));
  // As in GPT-2: LibTorch's own first weights are too large for embeddings.
  torch::NoGradGuard no_grad;
  for (auto& item : layers->named_parameters()) {
    if (item.value().dim() == 2) item.value().normal_(0, .02);
    if (item.value().dim() == 1 && item.key().ends_with("bias")) item.value().zero_();
  }
  return layers;
}

/// A TorchScript module is a program: its code may write any file that this user may.
Result<void> check_own_program(const OpenFile& file, const std::filesystem::path& name) {
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0) return fail("{}: {}", name.string(), std::strerror(errno));
  const bool own = status.st_uid == ::geteuid();
  if (own && (status.st_mode & S_IWOTH) == 0) return {};
  return fail("{}: a program that {}; if you trust it: mayfly run --trust", name.string(),
              own ? "anybody may change" : fmt::format("belongs to user {}, not {}", status.st_uid, ::geteuid()));
}

Result<std::unique_ptr<Network>> load_script(const ModelSpec& model, const std::filesystem::path& folder) {
  const auto file = folder / model.file;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return fail("{}: no such file", file.string());
  const OpenFile opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (opened.descriptor() < 0) return fail("{}: cannot read: {}", file.string(), std::strerror(errno));
  if (!model.trusted) {
    if (auto own = check_own_program(opened, file); !own) return unexpected(own.error());
  }
  try {
    // What was looked at is what is loaded, whatever lies at that path by now.
    return std::make_unique<ScriptNetwork>(torch::jit::load(fmt::format("/proc/self/fd/{}", opened.descriptor())));
  } catch (const c10::Error& error) {
    return fail("{}: not a TorchScript file: {}", file.string(), error.what_without_backtrace());
  }
}

}  // namespace

Tensor Network::loss(const Tensor& scores, const Tensor& labels, bool sum) const {
  const auto reduction = sum ? at::Reduction::Sum : at::Reduction::Mean;
  return torch::cross_entropy_loss(scores.flatten(0, -2), labels.flatten(), {}, reduction);
}

Tensor Network::correct(const Tensor& scores, const Tensor& labels) const {
  return scores.flatten(0, -2).argmax(1).eq(labels.flatten()).sum();
}

Result<std::unique_ptr<Network>> make_network(const ModelSpec& model, const Dataset& data,
                                              const std::filesystem::path& folder) {
  const auto shape = data.shape();
  const auto inputs = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  const bool pictures = model.name == "cnn" || model.name == "resnet";
  const int least = model.name == "cnn" ? 4 : 1;
  if (pictures && (shape.size() != 3 || shape[1] < least || shape[2] < least))
    return fail("model {}: samples have shape [{}], want channels and a picture of at least {} x {}", model.name,
                fmt::join(shape, ", "), least, least);
  const auto built = [](nn::Sequential layers) { return std::make_unique<SequentialNetwork>(std::move(layers)); };
  if (model.name == "mlp") return built(mlp(model, inputs, data.classes()));
  if (model.name == "cnn") return built(cnn(model, shape, data.classes()));
  if (model.name == "resnet") return built(resnet(model, shape[0], data.classes()));
  if (model.name == "gpt") return built(gpt(model, data.classes()));
  if (model.name == "count") return std::make_unique<CountNetwork>(data.size());
  if (model.name == "dials") return dials_network(model, static_cast<int>(inputs), data.classes());
  if (model.name == "torchscript") return load_script(model, folder);
  if (model.is_script()) return load_described_network(model.file);
  return fail("model '{}' is not known", model.name);
}

}  // namespace mayfly
