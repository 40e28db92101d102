// A worker that is measured: docs/protocol.md#measuring.

#include <algorithm>
#include <filesystem>
#include <memory>

#include "data/rehearsal.h"
#include "train/worker.h"

namespace mayfly {

Result<void> Worker::measure(const Measure& wanted) {
  const auto found =
      std::find_if(ways_.begin(), ways_.end(), [&](const Teamwork* way) { return way->stands(wanted.formation); });
  if (found == ways_.end()) return {};
  LoadedJob& job = gear_.job;
  Measurement used = meter_.used();
  used.formation = wanted.formation;
  used.prep_threads = loader_options(job.spec().data.loader, *job.data).prep_threads;
  used.tensors = job.trainer->tensors();
  if (auto looked = look(wanted, **found, used); !looked) return looked;
  gear_.work_as_usual();
  if (wanted.data == "synthetic") job.synthetic = std::make_shared<const Batch>();
  if (wanted.data == "cold") forget_data(job, std::filesystem::path(gear_.terms.job_file).parent_path());
  if (wanted.data == "warm") {
    if (auto warm = warm_up(job, wanted.samples); !warm) return warm;
  }
  meter_.begin();
  gear_.line.say(used);
  return {};
}

/// Each stage of the data's way by itself.
Result<void> Worker::rehearse_data(std::int64_t samples, Measurement& seen) {
  LoadedJob& job = gear_.job;
  const auto& loader = job.spec().data.loader;
  forget_data(job, std::filesystem::path(gear_.terms.job_file).parent_path());
  const auto found = rehearse(*job.data, *job.order, loader.storage, samples, LoaderOptions{}.fetch_threads);
  if (!found) return unexpected(found.error());
  seen.rehearsed = found->samples;
  seen.rehearsed_mb = found->bytes / 1e6;
  seen.read_s = found->read.count();
  seen.reread_s = found->reread.count();
  seen.prepare_s = found->prepare.count();
  return {};
}

/// Into the network, and exchanges of the sizes asked for, one after the other with all other workers.
Result<void> Worker::look(const Measure& wanted, Teamwork& way, Measurement& seen) {
  if (wanted.layers) {
    seen.gflops = multiplication_gflops();
    const auto batch = gear_.job.feed.loader->batch(0, wanted.batch);
    if (!batch) return unexpected(batch.error());
    const auto pass = [&] { gear_.job.trainer->compute(*batch, 1, 0); };
    pass();  // the first one is slower
    for (const LayerCost& layer : gear_.job.trainer->layers(pass)) {
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
  for (const std::int64_t bytes : wanted.exchanges) {
    const auto time = way.exchange_time(bytes);
    if (!time) return unexpected(time.error());
    seen.exchanges_s.push_back(time->count());
  }
  return {};
}

}  // namespace mayfly
