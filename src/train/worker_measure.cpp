// A worker that is measured: docs/protocol.md#measuring.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "data/rehearsal.h"
#include "train/worker.h"

namespace mayfly {

Result<void> Worker::measure(const Measure& wanted) {
  Measurement used = meter_.used();
  used.formation = wanted.formation;
  used.prep_threads = loader_options(job_.spec().data.loader, *job_.data).prep_threads;
  used.tensors = job_.trainer->tensors();
  if (auto looked = look(wanted, used); !looked) return looked;
  job_.synthetic = wanted.data == "synthetic" ? std::make_shared<const Batch>() : nullptr;
  cool_down(job_);
  if (wanted.data == "cold") forget_data(job_, std::filesystem::path(terms_.job_file).parent_path());
  if (wanted.data == "warm") {
    if (auto warm = warm_up(job_, wanted.samples); !warm) return warm;
  }
  meter_.begin();
  line_.say(used);
  return {};
}

/// Each stage of the data's way by itself.
Result<void> Worker::rehearse_data(std::int64_t samples, Measurement& seen) {
  const auto& loader = job_.spec().data.loader;
  forget_data(job_, std::filesystem::path(terms_.job_file).parent_path());
  const auto found = rehearse(*job_.data, *job_.order, loader.storage, samples, LoaderOptions{}.fetch_threads);
  if (!found) return unexpected(found.error());
  seen.rehearsed = found->samples;
  seen.rehearsed_mb = found->bytes / 1e6;
  seen.read_s = found->read.count();
  seen.reread_s = found->reread.count();
  seen.prepare_s = found->prepare.count();
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
  if (wanted.rehearse > 0) {
    if (auto rehearsed = rehearse_data(wanted.rehearse, seen); !rehearsed) return rehearsed;
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
