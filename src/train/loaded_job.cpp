#include "train/loaded_job.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "data/fingerprint.h"
#include "data/new_file.h"
#include "train/log.h"
#include "train/throttle.h"

namespace mayfly {
namespace {

double state_megabytes(Trainer& trainer) {
  double bytes = 0;
  for (const auto& part : trainer.writable_state()) bytes += static_cast<double>(part.size());
  return in_megabytes(Bytes{bytes});
}

/// What a script trains is known from its first worker; servers read no data.
Result<void> describe_script(const Welcome& welcome, TrainSpec& spec) {
  if (!spec.model.is_script()) return {};
  if (welcome.network.empty())
    return fail("{}: the model is a script: its workers are the job's own program", welcome.job_file);
  spec.model.file = welcome.network;
  spec.data = {.name = "count", .samples = 1};
  return {};
}

/// More than a segment of steps reads, less than a machine has.
constexpr double kWarmCacheMb = 2000;

/// Pages of a file that no process has mapped.
void forget_file(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ::fdatasync(file);  // pages that are not written yet would stay
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

/// Of what jobs must agree on to share prepared samples.
std::uint64_t data_identity(const TrainSpec& spec, const std::filesystem::path& folder) {
  const auto& data = spec.data;
  std::string text = fmt::format("{} {} {} {} {} {} {} {}", data.name, data.samples, fmt::join(data.shape, ","),
                                 data.classes, data.seed, data.sample_kb, data.prep_ms, spec.model.context);
  for (const auto& file : data.files) text += "\n" + std::filesystem::absolute(folder / file).string();
  return xxh3_of(text);
}

Result<void> add_feed(LoadedJob& loaded, const std::filesystem::path& folder, const OpenPeers& peers) {
  const auto& spec = loaded.spec();
  FeedContext context{.identity = data_identity(spec, folder), .seed = spec.seed, .batch = spec.batch};
  if (peers && spec.data.loader.partitioned) {
    auto opened = peers();
    if (!opened) return unexpected(opened.error());
    context.peers = *opened;
  }
  loaded.feed = make_feed(spec.data.loader, *loaded.data, *loaded.order, context);
  if (!loaded.feed.note.empty()) log("{}", loaded.feed.note);
  return {};
}

}  // namespace

Result<LoadedJob> loaded_job(const Welcome& welcome, const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  auto job = parse_job(welcome.job, welcome.job_file);
  if (!job) return unexpected(job.error());
  if (!job->train) return fail("{}: no 'train' block: nothing to train", welcome.job_file);
  LoadedJob loaded{.job = std::move(*job)};
  if (auto described = describe_script(welcome, *loaded.job.train); !described) return unexpected(described.error());
  loaded.job.train->model.trusted = options.trust;
  const auto& spec = loaded.spec();
  const auto folder = std::filesystem::path(welcome.job_file).parent_path();
  auto data = open_dataset(spec.data, spec.model, folder);
  if (!data) return unexpected(data.error());
  loaded.data = std::move(*data);
  if (spec.validation) {
    auto validation = open_dataset(*spec.validation, spec.model, folder);
    if (!validation) return unexpected(validation.error());
    loaded.validation = std::move(*validation);
  }
  auto trainer = Trainer::make(spec, *loaded.data, folder);
  if (!trainer) return unexpected(trainer.error());
  loaded.trainer = std::move(*trainer);
  loaded.order.emplace(loaded.data->size(), spec.seed);
  if (auto fed = add_feed(loaded, folder, options.peers); !fed) return unexpected(fed.error());
  loaded.lineage = {.run = welcome.run, .seed = spec.seed};
  // Servers of a script read no data.
  if (!spec.model.is_script()) {
    auto print = fingerprint(*loaded.data);
    if (!print) return unexpected(print.error());
    loaded.lineage.data = *std::move(print);
  }
  loaded.ready = {.samples = loaded.data->size(),
                  .data = loaded.lineage.data,
                  .parameters = loaded.trainer->parameters(),
                  .state_mb = state_megabytes(*loaded.trainer),
                  .load_s = Seconds(std::chrono::steady_clock::now() - start).count()};
  log("ready: {} samples, {} parameters, loaded in {:.2f} s", loaded.ready.samples, loaded.ready.parameters,
      loaded.ready.load_s);
  return loaded;
}

Result<std::shared_ptr<const Batch>> waited_batch(LoadedJob& job, SampleRange places, std::optional<double> cpu_share,
                                                  std::optional<double>& wait_s) {
  if (job.synthetic && job.synthetic->size() == places.count) {
    wait_s = 0;
    return job.synthetic;
  }
  const auto start = std::chrono::steady_clock::now();
  Throttle throttle(cpu_share);
  throttle.begin();
  auto batch = job.feed.loader->batch(places.first, places.count);
  throttle.hold();
  wait_s = Seconds(std::chrono::steady_clock::now() - start).count();
  if (!batch) return unexpected(batch.error());
  auto made = std::make_shared<const Batch>(*std::move(batch));
  if (job.synthetic) job.synthetic = made;
  return made;
}

Result<void> warm_up(LoadedJob& job, std::int64_t count) {
  LoaderSpec spec = job.spec().data.loader;
  spec.prep_threads = loader_options(spec, *job.data).prep_threads;
  spec.storage.reset();
  spec.partitioned = false;
  spec.share.clear();
  spec.cache_mb = kWarmCacheMb;
  Feed warm = make_feed(spec, *job.data, *job.order);
  std::vector<std::byte> raw;
  for (std::int64_t place = 0; place < std::min(count, job.data->size()); ++place) {
    if (auto read = warm.source().raw(job.order->sample_at(place), raw); !read) return read;
  }
  job.set_aside = std::exchange(job.feed, std::move(warm));
  return {};
}

void cool_down(LoadedJob& job) {
  if (!job.set_aside) return;
  const Feed warm = std::exchange(job.feed, std::move(*job.set_aside));  // its threads end before what they read from
  job.set_aside.reset();
}

void forget_data(LoadedJob& job, const std::filesystem::path& folder) {
  if (job.feed.cache) {
    const std::size_t capacity = job.feed.cache->capacity();
    job.feed.cache->resize(0);
    job.feed.cache->resize(capacity);
  }
  std::error_code error;
  for (const std::string& name : job.spec().data.files) {
    const auto path = folder / name;
    if (!std::filesystem::is_directory(path, error)) {
      forget_file(path);
      continue;
    }
    for (auto entry = std::filesystem::recursive_directory_iterator(path, error);
         entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
      if (error) return;
      if (entry->is_regular_file(error)) forget_file(entry->path());
    }
  }
}

Result<TrainerState> restore(LoadedJob& job, Depot& depot, const std::string& checkpoint, std::int64_t sample) {
  if (checkpoint.empty()) {
    if (sample != 0) return fail("no checkpoint for sample {}", sample);
    job.trainer->reset();
    return TrainerState{};
  }
  const auto saved = depot.read(checkpoint);
  if (!saved) return unexpected(saved.error());
  if (const auto same = check_same(saved->state.lineage, job.lineage); !same)
    return fail("{}: {}", checkpoint, same.error().message);
  if (saved->state.sample != sample)
    return fail("{}: holds sample {}, want {}", checkpoint, saved->state.sample, sample);
  const auto& tensors = saved->tensors;
  if (auto loaded = job.trainer->load(tensors.model, tensors.optimiser); !loaded) return unexpected(loaded.error());
  log("loaded {}", checkpoint);
  return saved->state;
}

}  // namespace mayfly
