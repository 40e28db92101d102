// gloo_loop JOB.yaml STEPS RANK RANKS FOLDER [WARM-UP]: the plain loop in several processes that add up their gradients
// over bare gloo and meet in an empty folder. Rank 0 prints the seconds a step.
#include <fmt/core.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdlib>

#include "plain_training.h"

namespace {

int loop(mayfly::bench::PlainTraining& training, char** words, int warm_up) {
  const int steps = std::atoi(words[2]);
  const int rank = std::atoi(words[3]);
  gloo::transport::tcp::attr attr;
  attr.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attr);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, std::atoi(words[4]));
  gloo::rendezvous::FileStore store(words[5]);
  context->connectFullMesh(store, device);
  const auto gradients = training.flat_gradients();
  double loss = 0;
  std::chrono::steady_clock::time_point start;
  for (int step = -warm_up; step < steps; ++step) {
    if (step == 0) start = std::chrono::steady_clock::now();
    loss = training.compute();
    gloo::AllreduceOptions options(context);
    options.setOutput(gradients.data(), gradients.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTag(static_cast<std::uint32_t>(step + warm_up + 1));
    gloo::allreduce(options);
    training.update();
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  if (rank == 0) fmt::print("{{\"step_s\": {}, \"steps\": {}, \"loss\": {}}}\n", time.count() / steps, steps, loss);
  gloo::BarrierOptions last(context);
  gloo::barrier(last);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr, "gloo_loop JOB.yaml STEPS RANK RANKS FOLDER [WARM-UP]\n");
    return 2;
  }
  auto training = mayfly::bench::PlainTraining::open(argv[1], std::atoi(argv[3]), std::atoi(argv[4]));
  if (!training) {
    fmt::print(stderr, "{}\n", training.error().message);
    return 2;
  }
  try {
    return loop(*training, argv, argc > 6 ? std::atoi(argv[6]) : 10);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gloo_loop: {}\n", error.what());
    return 1;
  }
}
