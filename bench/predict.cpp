// Predictions per second on one core: docs/benchmarks.md.
#include <benchmark/benchmark.h>

#include "support/problems.h"

namespace {

using namespace mayfly;

void predict(benchmark::State& state, Predictor predictor) {
  auto made = support::spotdnn_problem({2, 5, 5, 8, 5}, 0.8, 2600);
  made.problem.predictor = predictor;
  Evaluator evaluator(made.problem);
  const auto counts = support::spotdnn_counts(made.problem, {0, 0, 5, 3, 0});
  Candidate candidate;
  candidate.counts = counts;
  for (auto _ : state) {
    benchmark::DoNotOptimize(evaluator.evaluate(counts, 0, candidate));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(predict, spotdnn_8_workers, Predictor::spotdnn);
BENCHMARK_CAPTURE(predict, queue_8_workers, Predictor::queue);
BENCHMARK_CAPTURE(predict, additive_8_workers, Predictor::additive);

}  // namespace

BENCHMARK_MAIN();
