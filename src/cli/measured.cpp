#include "cli/measured.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/file.h"
#include "base/how_many.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "profile/fresh.h"

namespace mayfly::cli {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A folder of this process's own. It stays where the user should look into it.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("mayfly-profile-{}", ::getpid())) {}
  ~Folder() {
    std::error_code ignored;
    if (!keep_) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  void keep() { keep_ = true; }

 private:
  std::filesystem::path path_;
  bool keep_ = false;
};

/// A bar on a terminal, elsewhere a line for each new thing.
class Bar {
 public:
  void show(double share, const std::string& what) {
    if (what == what_ && !terminal_) return;
    what_ = what;
    if (!terminal_) return note(fmt::format("profile: {}", what));
    constexpr int kWidth = 24;
    const int full = std::clamp(static_cast<int>(share * kWidth), 0, kWidth);
    fmt::print(stderr, "\r\033[K[{}{}] {:3.0f} % {}", std::string(static_cast<std::size_t>(full), '#'),
               std::string(static_cast<std::size_t>(kWidth - full), '-'), 100 * share, what);
    std::fflush(stderr);
  }
  ~Bar() {
    if (terminal_ && !what_.empty()) fmt::print(stderr, "\r\033[K");
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  std::string what_{};
};

Result<ProfileRequest> request_of(const MeasureFlags& flags) {
  ProfileRequest request{.type = flags.type, .date = format_time(seconds_since_1970()).substr(0, 10)};
  auto text = load_text(flags.job);
  if (!text) return unexpected(text.error());
  auto spec = parse_job(*text, flags.job);
  if (!spec) return unexpected(spec.error());
  if (!spec->train) return fail("{}: no 'train' block: nothing to measure", flags.job);
  request.spec = *std::move(spec);
  request.job_text = *std::move(text);
  request.job_file = std::filesystem::absolute(flags.job);
  const auto time = parse_duration(flags.time);
  if (!time || time->count() <= 0) return fail("--for '{}': want how long, for example 60s", flags.time);
  request.time = *time;
  if (flags.type != "local") {
    const auto catalog = read_catalogs(flags.catalog);
    if (!catalog) return unexpected(catalog.error());
    if (const auto type = lookup(*catalog, flags.type); !type) return fail("--type: {}", type.error().message);
  }
  const auto program = train_program();
  if (!program) return unexpected(program.error());
  request.program = *program;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  request.workers = flags.workers.value_or(std::min(2, cores));
  return request;
}

}  // namespace

Result<JobMeasurement> measured(const MeasureFlags& flags) {
  auto request = request_of(flags);
  if (!request) return unexpected(request.error());
  Folder folder;
  request->directory = folder.path();
  Bar bar;
  request->progress = [&](double share, const std::string& what) { bar.show(share, what); };
  auto found = measure_job(*request);
  const auto file = request->job_file.filename().string();
  if (!found && found.error().message.find(file) == std::string::npos)
    found = fail("{}: {}", flags.job, found.error().message);
  if (!found && found.error().message.find(folder.path().string()) != std::string::npos) folder.keep();
  return found;
}

Result<StallReport> measured_stalls(const MeasureFlags& flags, const StallFlags& stalls) {
  auto request = request_of(flags);
  if (!request) return unexpected(request.error());
  const int devices = flags.workers.value_or(1);
  StallQuestion question{.batch = batch_of_each(*request->spec.train, devices), .time = request->time};
  if (const auto rate = parse_number(stalls.network)) question.network = megabytes_per_second(*rate);
  Folder folder;
  question.shop = {.spec = std::move(request->spec),
                   .job_text = std::move(request->job_text),
                   .job_file = request->job_file,
                   .program = request->program,
                   .directory = folder.path(),
                   .workers = devices};
  Bar bar;
  question.progress = [&](double share) { bar.show(share, "stalls: conditions in turns"); };
  auto found = find_stalls(question);
  if (!found && found.error().message.find(folder.path().string()) != std::string::npos) folder.keep();
  return found;
}

Result<void> save_profile(const std::string& path, const Json& profile) {
  const std::string text = profile.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (const auto parsed = parse_profile(text, path); !parsed) return unexpected(parsed.error());
  return save_text(path, text);
}

Result<std::string> profile_for(const std::string& job_file, const std::string& time, std::vector<std::string>& notes) {
  const auto text = load_text(job_file);
  if (!text) return unexpected(text.error());
  std::string path = profile_beside(job_file).string();
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    const auto profile = load_profile(path);
    const auto stale = profile ? staleness(*profile, *text, machine_name(), seconds_since_1970())
                               : std::optional(profile.error().message);
    if (!stale) {
      notes.push_back(fmt::format("the profile is {}, measured {}", path, profile->origin.date));
      return path;
    }
    notes.push_back(fmt::format("{} is not used: {}", path, *stale));
  }
  if (time.empty())
    return fail("{}: no profile: name one with --profile or 'profile:' in the job file{}", job_file,
                notes.empty() ? "" : "; " + notes.back());
  const auto found = measured({.job = job_file, .time = time});
  if (!found) return unexpected(found.error());
  if (const auto saved = save_profile(path, found->profile); !saved) return unexpected(saved.error());
  notes.push_back(fmt::format("the job was measured on this machine: {}", path));
  for (const std::string& one : found->notes) notes.push_back(one);
  return path;
}

std::optional<FittingBatch> fitting_batch(const Json& profile, const MeasureFlags& flags) {
  const auto parsed = parse_profile(profile.dump(), "profile");
  if (!parsed || !parsed->memory) return std::nullopt;
  FittingBatch found{.device = "this machine"};
  const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  found.memory_mb = pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
  const auto catalog = read_catalogs(flags.catalog);
  const InstanceType* type = catalog ? catalog->find(flags.type) : nullptr;
  if (type != nullptr && type->gpu) {
    constexpr double kMbPerGib = 1073.741824;
    found = {.memory_mb = type->gpu->memory_gib * kMbPerGib, .device = type->gpu->model};
  }
  if (flags.memory_gb) found = {.memory_mb = 1000 * *flags.memory_gb, .device = "the device"};
  found.batch = largest_batch(*parsed->memory, found.memory_mb);
  return found;
}

std::string measurement_text(const JobMeasurement& found, const std::string& type) {
  Table table(
      {">batch", ">step, s", ">+-", ">samples/s", ">compute, s", ">wait, s", ">exchange, s", ">memory, MB", ">steps"});
  const auto add = [&](const MeasuredBatch& one) {
    if (one.step.counted == 0) return;
    table.add({fmt::format("{}", one.batch), fmt::format("{:.4g}", one.step.mean),
               one.step.interval > 0 ? fmt::format("{:.1f} %", 100 * one.step.interval / one.step.mean) : "-",
               fmt::format("{:.4g}", one.batch / one.step.mean), fmt::format("{:.4g}", one.compute.mean),
               fmt::format("{:.2g}", one.wait_s), fmt::format("{:.2g}", one.exchange_s),
               one.peak_mb > 0 ? fmt::format("{:.0f}", one.peak_mb) : "-", fmt::format("{}", one.step.counted)});
  };
  auto batches = found.batches;
  std::sort(batches.begin(), batches.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
  for (const MeasuredBatch& one : batches) add(one);
  std::string text = fmt::format("one worker with {}, as {}; all figures measured\n{}", how_many(found.cores, "core"),
                                 type, table.text());
  if (found.together)
    text += fmt::format("{} workers, {} samples each: step {:.4g} s +- {:.1f} %, exchange {:.4g} s\n", found.workers,
                        found.together->batch, found.together->step.mean,
                        100 * found.together->step.interval / found.together->step.mean, found.together->exchange_s);
  if (found.ring.bytes_per_s > 0)
    text += fmt::format("link: {:.3g} ms + {:.4g} MB/s, fitted to {} sizes, {:.0f} % off each\n",
                        1e3 * found.ring.latency_s, found.ring.bytes_per_s / 1e6, found.exchange_bytes.size(),
                        100 * found.ring.relative_sd);
  if (found.request_mb_per_s)
    text += fmt::format("servers: one worker draws {:.4g} MB/s; {:.3g} ms of a core per update\n",
                        *found.request_mb_per_s, 1e3 * found.server_cpu_s.value_or(0));
  text += fmt::format("{} parameters in {} tensors, {} layers; {} samples an epoch\n", found.ready.parameters,
                      found.look.tensors, found.look.layers.size(), found.ready.samples);
  if (found.loss) {
    const LossCurve& curve = found.loss->curve;
    text += fmt::format(
        "loss: {:.4g} at first, falls towards {:.4g}; from {} points up to step {:.0f}, {:.2g} off each; steps to a "
        "loss +-{:.0f} %; what lies beyond is extrapolated\n",
        curve.initial, curve.floor, found.losses, found.loss_steps, found.loss->residual_sd, 100 * curve.relative_sd);
  }
  text += fmt::format("a worker is ready {:.2f} s after its start and joins in {:.2f} s", found.start_s, found.form_s);
  if (found.checkpoint)
    text += fmt::format("; a checkpoint of {:.2f} MB takes {:.3f} s and stops training for {:.4f} s",
                        found.checkpoint->size_mb, found.checkpoint->write_s, found.checkpoint->stall_s);
  return text + "\n";
}

}  // namespace mayfly::cli
