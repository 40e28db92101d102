#include "train/worker.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/overloaded.h"
#include "train/log.h"

namespace mayfly {

Worker::Worker(Options options) : gear_(std::move(options)), meshed_(gear_), served_(gear_) {}

template <class Kind>
Kind& Worker::only(Kind& next) {
  for (Teamwork* const way : ways_) {
    if (way != &next) way->retire();
  }
  return next;
}

Result<void> Worker::obey(const ToMember& message) {
  return std::visit(
      Overloaded{
          [&](const Welcome& welcome) { return load(welcome); },
          [&](const Form& form) { return only(meshed_).form(form); },
          [&](const Peers& peers) { return meshed_.meet(peers); },
          [&](const Proceed& lease) { return meshed_.proceed(lease); },
          [&](const WriteCheckpoint& word) { return meshed_.write_checkpoint(word); },
          [&](const Attach& servers) { return only(served_).attach(servers); },
          [&](const Lease& lease) { return served_.take(lease); }, [&](const Halt& over) { return halt(over); },
          [&](const Neighbours& neighbours) { return meet_neighbours(neighbours); },
          [&](const Measure& wanted) { return measure(wanted); },
          Ignoring<Result<void>, Serve, Commit, Forget, Save>{},            // for servers
          Ignoring<Result<void>, Refused, Alive, Watch, Explain, Leave>{},  // heard by then
      },
      message);
}

Result<void> Worker::load(const Welcome& told) {
  const auto home = gear_.job.trainer ? Result<Welcome>(told) : at_home(told, gear_.options.own);
  if (!home) return unexpected(home.error());
  const Welcome& welcome = *home;
  if (auto accepted = gear_.accept(welcome); !accepted) return accepted;
  log("worker {} of {}", welcome.worker, welcome.job_file);
  if (!gear_.job.trainer) {
    if (!welcome.network.empty())
      return fail("{}: the model is a script: its workers are the job's own program", welcome.job_file);
    const auto& credentials = gear_.options.line.credentials;
    auto network =
        NetworkDevice::open(gear_.options.interface, welcome.private_network ? credentials.unencrypted() : credentials);
    if (!network) return unexpected(network.error());
    if (gear_.options.cpu_share) use_threads(1);  // only one is stretched
    auto job = loaded_job(welcome, {.peers = [this] { return open_peers(); }, .trust = gear_.options.trust});
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

Result<void> Worker::halt(const Halt& halt) {
  for (Teamwork* const way : ways_) way->halt(halt.formation);
  return {};
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
  // All orphans hold the same; the one that comes first writes.
  std::this_thread::sleep_for(Seconds(std::min(*turn, 10)));
  save_if_newest();
}

/// What stops one worker may stop all of them; the first saves for all.
void Worker::save_what_others_lack() {
  if (turn_to_save() == 0) save_if_newest();
}

void Worker::save_if_newest() {
  // Where it cannot be told what others have saved, one too many is better than none.
  const auto newest = gear_.depot->newest(gear_.job.lineage);
  if (newest && newest->checkpoint && newest->checkpoint->state.sample >= gear_.sample()) return;
  gear_.write_checkpoint();
  gear_.writer.finish();
}

}  // namespace mayfly
