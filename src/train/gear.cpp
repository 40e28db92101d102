#include "train/gear.h"

#include <utility>

#include "train/log.h"
#include "train/reach.h"

namespace mayfly {

Gear::Gear(Options its_options)
    : options(std::move(its_options)),
      emulated(options.network ? std::make_shared<EmulatedNetwork>(*options.network) : nullptr),
      line([this] {
        auto its_line = options.line;
        its_line.ended = [this](std::int64_t formation) { breaker.end(formation); };
        return its_line;
      }()),
      writer([this](FromMember message) { line.say(std::move(message)); }) {}

void Gear::hold(std::int64_t samples, std::int64_t steps) {
  sample_ = samples;
  step_ = steps;
  line.holds(samples < 0 ? std::nullopt : std::optional(samples));
}

Result<void> Gear::accept(const Welcome& welcome) {
  if (!depot || terms.directory != welcome.directory) {
    writer.finish();
    auto opened = run_depot(welcome.directory, options.around, options.own);
    if (!opened) return unexpected(opened.error());
    depot = *std::move(opened);
  }
  terms = welcome;
  return {};
}

void Gear::write_checkpoint() {
  if (sample_ < 0) return line.say(CheckpointFailed{.sample = 0, .what = "holds no state"});
  TrainerState state{.sample = sample_, .step = step_, .loss = loss, .lineage = job.lineage, .job = job.job.name};
  if (sample_ > 0) state.ledger = {{.first = 0, .count = sample_}};
  writer.write(*depot, state, *job.trainer);
}

void Gear::tell_broken(std::int64_t formation, const std::string& what, std::span<const std::string> names,
                       std::span<const std::string> places) {
  const auto reach = std::make_shared<Reach>();
  breaker.install(reach, formation);
  const auto missing = reach->missing(places, kReachPatience);
  breaker.install(nullptr, -1);
  tell_broken(formation, what, names, missing);
}

void Gear::tell_broken(std::int64_t formation, const std::string& what, std::span<const std::string> names,
                       const std::vector<std::size_t>& missing) {
  log("formation {} broken: {}", formation, what);
  Broken broken{.formation = formation, .what = what};
  for (const std::size_t place : missing) {
    log("{} does not answer", names[place]);
    if (!broken.unreached) broken.unreached.emplace();
    broken.unreached->push_back(names[place]);
  }
  line.say(std::move(broken));
}

void Gear::work_as_usual() {
  job.synthetic.reset();
  cool_down(job);
}

void Gear::report_feed(bool last) {
  constexpr Seconds kReportEvery{1};
  const auto now = std::chrono::steady_clock::now();
  if (!job.trainer || !job.feed.loader || (!last && now < reported_ + kReportEvery)) return;
  if (job.spec().data.loader == LoaderSpec{} && !job.data->in_files()) return;
  reported_ = now;
  const auto counts = job.feed.loader->counts();
  line.say(Fed{.hits = counts.hits,
               .from_peers = counts.from_peers,
               .from_storage = counts.from_storage,
               .peers_failed = counts.peers_failed,
               .prepared = counts.prepared,
               .received = counts.received,
               .fetch_s = counts.fetch_s,
               .prep_s = counts.prep_s,
               .wait_s = counts.wait_s});
}

}  // namespace mayfly
