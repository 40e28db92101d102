#include "plain_training.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "data/dataset.h"
#include "job/job_spec.h"

namespace mayfly::bench {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

nn::Conv2d conv(int in, int out, int stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

struct BlockImpl : nn::Module {
  BlockImpl(int in, int out, int stride)
      : conv1(conv(in, out, stride)), conv2(conv(out, out, 1)), bn1(out), bn2(out), grows(out - in) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
  }
  Tensor forward(const Tensor& x) {
    const auto y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    if (grows == 0) return torch::relu(y + x);
    using torch::indexing::None, torch::indexing::Slice;
    const auto small = x.index({Slice(), Slice(), Slice(None, None, 2), Slice(None, None, 2)});
    return torch::relu(y + torch::constant_pad_nd(small, {0, 0, 0, 0, 0, grows}));
  }
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  int grows;
};
TORCH_MODULE(Block);

nn::Sequential resnet(const ModelSpec& model, const Dataset& data) {
  const int width = model.width;
  nn::Sequential net(conv(data.shape()[0], width, 1), nn::BatchNorm2d(width), nn::ReLU());
  int in = width;
  for (const int out : {width, 2 * width, 4 * width}) {
    for (int i = 0; i < (model.depth - 2) / 6; ++i) {
      net->push_back(Block(in, out, in == out ? 1 : 2));
      in = out;
    }
  }
  net->push_back(nn::AdaptiveAvgPool2d(1));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(in, data.classes()));
  return net;
}

nn::Sequential mlp(const ModelSpec& model, const Dataset& data) {
  nn::Sequential net(nn::Flatten{});
  const auto shape = data.shape();
  int in = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
  for (const int out : model.hidden) {
    net->push_back(nn::Linear(in, out));
    net->push_back(nn::ReLU());
    in = out;
  }
  net->push_back(nn::Linear(in, data.classes()));
  return net;
}

struct AttentionImpl : nn::Module {
  AttentionImpl(int width, int heads_) : heads(heads_), qkv(width, 3 * width), out(width, width) {
    register_module("qkv", qkv);
    register_module("out", out);
  }
  Tensor forward(const Tensor& x) {
    const auto b = x.size(0), t = x.size(1), c = x.size(2);
    const auto parts = qkv(x).view({b, t, 3, heads, c / heads}).permute({2, 0, 3, 1, 4});
    const auto later = torch::ones({t, t}, torch::kBool).triu(1);
    const auto scores =
        torch::matmul(parts[0], parts[1].transpose(-2, -1)) * (1 / std::sqrt(static_cast<double>(c / heads)));
    const auto weights = torch::softmax(scores.masked_fill(later, -std::numeric_limits<float>::infinity()), -1);
    return out(torch::matmul(weights, parts[2]).transpose(1, 2).reshape({b, t, c}));
  }
  int heads;
  nn::Linear qkv, out;
};
TORCH_MODULE(Attention);

struct LayerImpl : nn::Module {
  LayerImpl(int width, int heads)
      : norm1(nn::LayerNormOptions({width})),
        norm2(nn::LayerNormOptions({width})),
        attention(width, heads),
        widen(width, 4 * width),
        narrow(4 * width, width) {
    register_module("norm1", norm1);
    register_module("attention", attention);
    register_module("norm2", norm2);
    register_module("widen", widen);
    register_module("narrow", narrow);
  }
  Tensor forward(const Tensor& x) {
    const auto y = x + attention(norm1(x));
    return y + narrow(torch::gelu(widen(norm2(y))));
  }
  nn::LayerNorm norm1, norm2;
  Attention attention;
  nn::Linear widen, narrow;
};
TORCH_MODULE(Layer);

struct CharactersImpl : nn::Module {
  CharactersImpl(int characters, int context, int width) : token(characters, width), place(context, width) {
    register_module("token", token);
    register_module("place", place);
  }
  Tensor forward(const Tensor& codes) { return token(codes) + place(torch::arange(codes.size(1))); }
  nn::Embedding token, place;
};
TORCH_MODULE(Characters);

nn::Sequential gpt(const ModelSpec& model, const Dataset& data) {
  nn::Sequential net{Characters(data.classes(), model.context, model.embedding)};
  for (int i = 0; i < model.layers; ++i) net->push_back(Layer(model.embedding, model.heads));
  net->push_back(nn::LayerNorm(nn::LayerNormOptions({model.embedding})));
  net->push_back(nn::Linear(nn::LinearOptions(model.embedding, data.classes()).bias(false)));
  return net;
}

/// Which sample comes when; the order starts again at its end.
std::vector<std::int64_t> shuffled(std::int64_t all) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(all));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  return order;
}

}  // namespace

struct PlainTraining::Parts {
  TrainSpec spec{};
  int rank = 0;
  int ranks = 1;
  std::unique_ptr<Dataset> data{};
  std::vector<std::int64_t> order{};
  std::size_t at = 0;
  nn::Sequential net{nullptr};
  std::unique_ptr<torch::optim::SGD> optimiser{};
  Tensor flat{};

  std::vector<std::int64_t> next_samples() {
    std::vector<std::int64_t> samples;
    for (int i = 0; i < spec.batch; ++i) {
      const auto sample = order[at++ % order.size()];
      if (i * ranks / spec.batch == rank) samples.push_back(sample);
    }
    return samples;
  }
};

PlainTraining::PlainTraining(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PlainTraining::PlainTraining(PlainTraining&&) noexcept = default;
PlainTraining::~PlainTraining() = default;

Result<PlainTraining> PlainTraining::open(const std::filesystem::path& job_file, int rank, int ranks) {
  const auto job = load_job(job_file);
  if (!job) return unexpected(job.error());
  if (!job->train) return fail("{}: no 'train' block", job_file.string());
  auto parts = std::make_unique<Parts>();
  parts->spec = *job->train;
  parts->rank = rank;
  parts->ranks = ranks;
  const ModelSpec& model = parts->spec.model;
  auto data = open_dataset(parts->spec.data, model, job_file.parent_path());
  if (!data) return unexpected(data.error());
  parts->data = *std::move(data);
  parts->order = shuffled(parts->data->size());
  torch::manual_seed(1);
  if (model.name == "resnet") parts->net = resnet(model, *parts->data);
  if (model.name == "mlp") parts->net = mlp(model, *parts->data);
  if (model.name == "gpt") parts->net = gpt(model, *parts->data);
  const OptimiserSpec& optimiser = parts->spec.optimiser;
  if (parts->net.is_empty() || optimiser.kind != OptimiserSpec::Kind::sgd)
    return fail("{}: want resnet, mlp or gpt, and sgd", job_file.string());
  parts->optimiser = std::make_unique<torch::optim::SGD>(
      parts->net->parameters(), torch::optim::SGDOptions(optimiser.rate).momentum(optimiser.momentum));
  return PlainTraining(std::move(parts));
}

double PlainTraining::compute() {
  Parts& p = *parts_;
  const auto samples = p.next_samples();
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(samples.size())};
  for (const int side : p.data->shape()) shape.push_back(side);
  auto inputs = torch::empty(shape);
  const auto labels = torch::empty({shape[0], p.data->labels()}, torch::kInt64);
  static_cast<void>(p.data->read(samples, {inputs.data_ptr<float>(), static_cast<std::size_t>(inputs.numel())},
                                 {labels.data_ptr<std::int64_t>(), static_cast<std::size_t>(labels.numel())}));
  if (p.spec.data.name == "text") inputs = inputs.to(torch::kInt64);
  // The optimiser's own way refuses gradients that are views.
  p.flat.defined() ? static_cast<void>(p.flat.zero_()) : p.optimiser->zero_grad();
  const auto scores = p.net->forward(inputs);
  const auto loss = torch::cross_entropy_loss(scores.flatten(0, -2), labels.flatten());
  (p.ranks == 1 ? loss : loss / p.ranks).backward();
  return loss.item<double>();
}

void PlainTraining::update() { parts_->optimiser->step(); }

std::span<float> PlainTraining::flat_gradients() {
  Parts& p = *parts_;
  if (!p.flat.defined()) {
    std::int64_t size = 0;
    for (const auto& parameter : p.net->parameters()) size += parameter.numel();
    p.flat = torch::zeros({size});
    std::int64_t at = 0;
    for (auto& parameter : p.net->parameters()) {
      parameter.mutable_grad() = p.flat.narrow(0, at, parameter.numel()).view(parameter.sizes());
      at += parameter.numel();
    }
  }
  return {p.flat.data_ptr<float>(), static_cast<std::size_t>(p.flat.numel())};
}

}  // namespace mayfly::bench
