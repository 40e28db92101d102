// plain_loop JOB.yaml STEPS [WARM-UP]: seconds a step of a plain LibTorch loop over the job, alone.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>

#include "plain_training.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "plain_loop JOB.yaml STEPS [WARM-UP]\n");
    return 2;
  }
  auto training = mayfly::bench::PlainTraining::open(argv[1], 0, 1);
  if (!training) {
    fmt::print(stderr, "{}\n", training.error().message);
    return 2;
  }
  const int steps = std::atoi(argv[2]);
  const int warm_up = argc > 3 ? std::atoi(argv[3]) : 10;
  double loss = 0;
  auto start = std::chrono::steady_clock::now();
  for (int step = -warm_up; step < steps; ++step) {
    if (step == 0) start = std::chrono::steady_clock::now();
    loss = training->compute();
    training->update();
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  fmt::print("{{\"step_s\": {}, \"steps\": {}, \"loss\": {}}}\n", time.count() / steps, steps, loss);
  return 0;
}
