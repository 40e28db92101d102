// A worker that is measured: docs/protocol.md#measuring.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "train/worker.h"

namespace mayfly {

Result<void> Worker::measure(const Measure& wanted) {
  Measurement used = meter_.used(job_.feed.loader->counts());
  used.formation = wanted.formation;
  used.prep_threads = loader_options(job_.spec().data.loader, *job_.data).prep_threads;
  used.tensors = job_.trainer->tensors();
  if (auto looked = look(wanted, used); !looked) return looked;
  measured_ = wanted;
  job_.synthetic = wanted.data == "synthetic" ? std::make_shared<const Batch>() : nullptr;
  if (wanted.data == "cold") forget_data(job_, std::filesystem::path(terms_.job_file).parent_path());
  meter_.begin(job_.feed.loader->counts());
  line_.say(used);
  return {};
}

/// Into the network, and exchanges of the sizes asked for, one after the other with everybody.
Result<void> Worker::look(const Measure& wanted, Measurement& seen) {
  if (wanted.layers) {
    seen.gflops = multiplication_gflops();
    const auto batch = job_.feed.loader->batch(0, wanted.batch);
    if (!batch) return unexpected(batch.error());
    const auto pass = [&] { job_.trainer->compute(*batch, 1, 0); };
    pass();  // the first one is slower
    for (const LayerCost& layer : job_.trainer->layers(pass)) {
      seen.layers.push_back(layer.name);
      seen.layer_forward_s.push_back(layer.forward_s);
      seen.layer_backward_s.push_back(layer.backward_s);
      seen.layer_parameters.push_back(layer.parameters);
      seen.layer_output_mb.push_back(layer.output_mb);
    }
  }
  constexpr int kTimes = 5;
  for (const std::int64_t bytes : wanted.exchanges) {
    if (!mesh_) return fail("exchanges are timed between workers that stand together");
    std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
    Seconds fastest = Seconds::max();
    for (int i = 0; i < kTimes; ++i) {
      const auto start = std::chrono::steady_clock::now();
      if (auto summed = mesh_->sum(values); !summed) return summed;
      fastest = std::min<Seconds>(fastest, std::chrono::steady_clock::now() - start);
    }
    seen.exchanges_s.push_back(fastest.count());
  }
  return {};
}

}  // namespace mayfly
