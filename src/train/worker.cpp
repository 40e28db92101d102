#include "train/worker.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "train/log.h"

namespace mayfly {

Worker::Worker(Options options) : gear_(std::move(options)), meshed_(gear_), served_(gear_) {}

Result<void> Worker::obey(Message message) {
  if (const auto* welcome = std::get_if<Welcome>(&message)) return load(*welcome);
  if (const auto* form = std::get_if<Form>(&message)) {
    retire_all_but(meshed_);
    return meshed_.form(*form);
  }
  if (const auto* peers = std::get_if<Peers>(&message)) return meshed_.meet(*peers);
  if (const auto* lease = std::get_if<Proceed>(&message)) return meshed_.proceed(*lease);
  if (const auto* write = std::get_if<WriteCheckpoint>(&message)) return meshed_.write_checkpoint(*write);
  if (const auto* servers = std::get_if<Attach>(&message)) {
    retire_all_but(served_);
    return served_.attach(*servers);
  }
  if (const auto* own = std::get_if<Lease>(&message)) return served_.take(*own);
  if (const auto* wanted = std::get_if<Measure>(&message)) return measure(*wanted);
  if (const auto* neighbours = std::get_if<Neighbours>(&message)) meet_neighbours(*neighbours);
  if (const auto* over = std::get_if<Halt>(&message)) halt(*over);
  return {};
}

Result<void> Worker::load(const Welcome& welcome) {
  gear_.terms = welcome;
  log("worker {} of {}", welcome.worker, welcome.job_file);
  if (!gear_.job.trainer) {
    if (!welcome.network.empty())
      return fail("{}: the model is a script: its workers are the job's own program", welcome.job_file);
    auto network = NetworkDevice::open(gear_.options.interface);
    if (!network) return unexpected(network.error());
    if (gear_.options.cpu_share) use_threads(1);  // only one is stretched
    auto job = loaded_job(welcome, [this] { return open_peers(); });
    if (!job) return unexpected(job.error());
    gear_.network = std::move(*network);
    gear_.job = std::move(*job);
    if (peers_) {
      peers_->serve(gear_.job.feed.partitioned.get());
      gear_.job.ready.cache = peers_->address();
    }
    gear_.hold(0, 0);
  }
  gear_.line.say(gear_.job.ready);
  return {};
}

void Worker::retire_all_but(const Teamwork& next) {
  for (Teamwork* const way : ways_) {
    if (way != &next) way->retire();
  }
}

void Worker::halt(const Halt& halt) {
  for (Teamwork* const way : ways_) way->halt(halt.formation);
}

void Worker::drop() {
  for (Teamwork* const way : ways_) way->retire();
  gear_.breaker.forget();
  if (!gear_.job.trainer) return;
  gear_.job.trainer->reset();
  gear_.hold(0, 0);
}

void Worker::finish() {
  gear_.report_feed(true);
  gear_.writer.finish();
  if (gear_.job.feed.loader) log("{}", sentence(gear_.job.feed.loader->counts()));
}

std::optional<int> Worker::turn_to_save() const {
  if (!gear_.job.trainer || gear_.sample() <= 0) return std::nullopt;
  for (const Teamwork* const way : ways_) {
    if (const auto turn = way->turn_to_save()) return turn;
  }
  return std::nullopt;
}

void Worker::save_what_it_has() {
  const auto turn = turn_to_save();
  if (!turn) return;
  // All orphans hold the same; whoever comes first writes.
  std::this_thread::sleep_for(Seconds(std::min(*turn, 10)));
  save_if_newest();
}

/// What stops one worker may stop all of them; the first saves for all.
void Worker::save_what_others_lack() {
  if (turn_to_save() == 0) save_if_newest();
}

void Worker::save_if_newest() {
  const auto newest = newest_checkpoint(gear_.terms.directory).checkpoint;
  if (newest && newest->state.sample >= gear_.sample()) return;
  gear_.write_checkpoint();
  gear_.writer.finish();
}

}  // namespace mayfly
