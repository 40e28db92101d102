// trainer [ROUNDS]: what a step through nn/trainer.h costs beside a plain LibTorch loop, ResNet-20 on 32 pictures of
// 3 x 32 x 32. Steps of the two alternate and CPU time is taken, so that a busy machine slows both alike.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "data/pictures.h"
#include "nn/network.h"
#include "nn/trainer.h"

namespace {

using namespace mayfly;

constexpr int kBatch = 32;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::unique_ptr<Dataset> noise() {
  Rng rng(1);
  std::string records;
  for (int i = 0; i < 256; ++i) {
    records.push_back(static_cast<char>(rng.below(10)));
    for (int k = 0; k < 3072; ++k) records.push_back(static_cast<char>(rng.below(256)));
  }
  std::vector<ByteFile> batches;
  batches.emplace_back(std::move(records), "noise");
  return std::move(*open_cifar(std::move(batches)));
}

void plain_step(Network& network, torch::optim::SGD& sgd, const Dataset& data,
                const std::vector<std::int64_t>& samples) {
  auto inputs = torch::empty({kBatch, 3, 32, 32});
  auto labels = torch::empty({kBatch}, torch::kInt64);
  static_cast<void>(data.read(samples, {inputs.data_ptr<float>(), static_cast<std::size_t>(inputs.numel())},
                              {labels.data_ptr<std::int64_t>(), kBatch}));
  const auto loss = torch::nn::functional::cross_entropy(network.forward(inputs), labels);
  sgd.zero_grad();
  loss.backward();
  sgd.step();
  static_cast<void>(loss.item<double>());
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 60;
  use_threads(1);
  TrainSpec spec;
  spec.model = {.name = "resnet", .depth = 20};
  spec.optimiser = {.rate = .01, .momentum = .9};
  const auto data = noise();
  auto trainer = Trainer::make(spec, *data, ".");
  auto network = make_network(spec.model, *data, ".");
  if (!trainer || !network) return 1;
  std::vector<torch::Tensor> tensors;
  for (const auto& parameter : (*network)->parameters()) tensors.push_back(parameter.tensor);
  torch::optim::SGD sgd(tensors, torch::optim::SGDOptions(.01).momentum(.9));
  std::vector<std::int64_t> samples(kBatch);
  std::vector<double> ours, plain, ratios;
  for (int round = -3; round < rounds; ++round) {
    std::iota(samples.begin(), samples.end(), (round + 3) % 7 * kBatch);
    const double start = cpu_seconds();
    (*trainer)->compute(*read_batch(*data, samples), 1, 0);
    (*trainer)->apply(0, 1);
    const double middle = cpu_seconds();
    plain_step(**network, sgd, *data, samples);
    const double end = cpu_seconds();
    if (round < 0) continue;  // caches of LibTorch fill up
    ours.push_back(middle - start);
    plain.push_back(end - middle);
    ratios.push_back((middle - start) / (end - middle));
  }
  fmt::print("{} parameters, {} rounds, CPU time of a step, medians\n", (*trainer)->parameters(), rounds);
  fmt::print("trainer {:.2f} ms, plain loop {:.2f} ms, ratio of a round {:.4f}\n", 1e3 * median(ours),
             1e3 * median(plain), median(ratios));
}
