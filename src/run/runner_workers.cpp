// What workers say, and what becomes of them.

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "data/checkpoint.h"
#include "run/runner.h"

namespace mayfly {
namespace {

/// Machines that fail by themselves before they are ready, in a row, until the run is given up.
constexpr int kMostFailedStarts = 5;
constexpr int kUnableInARow = 3;
constexpr Seconds kLeastCheckpointCost{0.01};
constexpr std::string_view kNetworkFile = "network.safetensors";

/// Where the address of a worker's cache is stored.
std::string cache_note(WorkerId worker) { return fmt::format("cache-{}", worker); }

}  // namespace

Result<Welcome> Runner::hello(const Hello& hello) {
  WorkerId worker = 0;
  if (hello.worker) {
    if (!members_.contains(*hello.worker)) return fail("its lease has ended");
    worker = *hello.worker;
  } else {
    if (phase_ == Phase::saving || phase_ == Phase::ending) return fail("the run is ending");
    if (hello.role != "worker" && hello.role != "server")
      return fail("role '{}', want worker or server", hello.role.substr(0, 40));
    if (hello.role == "server" && servers_ == nullptr) return fail("this job has no servers");
    worker = ++last_worker_;
    if (const auto noted = store_.note("worker", std::to_string(worker)); !noted) return unexpected(noted.error());
    members_[worker] = {.launch = hello.slot, .server = hello.role == "server", .since = now()};
  }
  const bool describes = train_.model.is_script() && train_.servers;
  return Welcome{.worker = worker,
                 .job = inputs_.job_text,
                 .job_file = inputs_.job_file.string(),
                 .directory = checkpoints().string(),
                 .heartbeat_s = inputs_.times.heartbeat.count(),
                 .lease_s = inputs_.times.lease.count(),
                 .orphan_s = inputs_.times.orphan.count(),
                 .seed = static_cast<std::int64_t>(train_.seed),
                 .sum = train_.sum,
                 .clip = train_.clip,
                 .network = describes ? (checkpoints() / kNetworkFile).string() : ""};
}

void Runner::connected(WorkerId worker, const Hello& hello) {
  closed_.erase(worker);
  Member& member = members_[worker];
  member.launch = hello.slot;
  member.pid = hello.pid;
  list_processes_soon();
  if (!hello.worker) return;
  // It missed what was said meanwhile, and this process may be another than the one it told.
  if (member.cache.empty()) member.cache = store_.noted(cache_note(worker)).value_or("");
  if (!member.cache.empty()) tell_neighbours();
  if (!member.joined) return;
  const bool stood = crew_->stands(worker);
  crew_->arrived(worker, hello.sample, hello.pending);
  if (phase_ == Phase::attaching) {
    const bool all =
        std::all_of(members_.begin(), members_.end(), [&](const auto& entry) { return crew_->alive(entry.first); });
    if (all) begin_training();
    return;
  }
  // What was said meanwhile is lost on one side or the other: stand together anew.
  if (stood && !crew_->form_again()) roll_back();
  deliver();
}

void Runner::on_server_ready(WorkerId worker, const Ready& message) {
  members_[worker].joined = true;
  servers_->server_ready(worker, message.address);
  note_crew();
  check_state();
}

void Runner::on_ready(WorkerId worker, const Ready& message) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  Member& member = found->second;
  if (member.ready) return;
  if (message.cache) {
    member.cache = *message.cache;
    if (const auto noted = store_.note(cache_note(worker), member.cache); !noted)
      return fail_run(noted.error().message);
    tell_neighbours();
  }
  member.ready = true;
  failed_starts_ = 0;
  remark(fmt::format("{}{} is ready: {} parameters, {:.2f} MB of state, loaded in {:.2f} s", member.server ? "s" : "w",
                     worker, message.parameters, message.state_mb, message.load_s));
  state_mb_ = std::max(state_mb_, message.state_mb);
  if (member.leaving) return;  // gone before it could do anything
  if (member.server) return on_server_ready(worker, message);
  machines_->settled(member.launch);
  if (epoch_ == 0) {
    epoch_ = message.samples;
    if (const auto noted = store_.note("epoch", std::to_string(epoch_)); !noted) return fail_run(noted.error().message);
  }
  if (!guard_) guard_.emplace(inputs_, epoch_);
  if (!target_) {
    std::optional<double> samples = inputs_.forecast.samples;
    if (inputs_.spec.epochs) samples = std::ceil(*inputs_.spec.epochs * static_cast<double>(epoch_));
    if (inputs_.spec.steps) samples = *inputs_.spec.steps * train_.batch;
    if (samples) {
      target_ = static_cast<std::int64_t>(*samples);
      tell(Estimated{*samples});
    }
  }
  member.joined = true;
  crew_->arrived(worker, 0, {});  // the first weights
  const MachineRole role = member.launch >= 0 && machines_->runs(member.launch) ? machines_->role(member.launch)
                                                                                : MachineRole{.type = "joined"};
  if (servers_ != nullptr && role.batch > 0) servers_->set_batch(worker, role.batch);
  const Joined joined{.worker = worker, .type = role.type, .market = role.market, .price = role.price};
  // Those of an earlier controller still count as there, and a machine too many would be sent away at once.
  if (phase_ == Phase::attaching) return held_.push_back(joined);
  tell_at_boundary(joined, Seconds(2));
}

void Runner::tell_neighbours() {
  Neighbours neighbours;
  for (const auto& [worker, member] : members_) {
    if (member.cache.empty()) continue;
    neighbours.workers.push_back(worker);
    neighbours.addresses.push_back(member.cache);
  }
  for (const int worker : neighbours.workers) desk_->send(worker, neighbours);
}

void Runner::on_unable(WorkerId worker, const Unable& message) {
  if (controller_.committed() == 0) {
    ended_ = RunEnd::unable;
    return fail_run(message.what);
  }
  // What so many cannot do with no step between them, the next one will not do either.
  if (++unable_in_a_row_ >= kUnableInARow) return fail_run(message.what);
  lose(worker, message.what);
  deliver();
}

void Runner::on_written(const CheckpointWritten& message) {
  checkpoint_time_ = now();
  // What training loses by it; writing goes on beside. Below that it is the clock that is measured.
  checkpoint_cost_ = std::max(kLeastCheckpointCost, Seconds(message.stall_s));
  write_time_ = Seconds(message.write_s);
  checkpoint_asked_ = false;
  const std::filesystem::path path(message.path);
  if (const auto published = publish_checkpoint(checkpoints(), path, train_.checkpoint.keep); !published)
    say(published.error().message);
  remark(fmt::format("{}: {:.2f} MB, training stood still {:.3f} s, written in {:.2f} s", path.filename().string(),
                     message.size_mb, message.stall_s, message.write_s));
  checkpoint_sample_ = std::max(checkpoint_sample_, message.sample);
  tell(CheckpointDone{static_cast<double>(message.sample)});
  for (const WorkerId worker : std::exchange(to_release_, {})) dismiss(worker, "released");
  if (phase_ != Phase::saving) return;
  // One that was asked for earlier may come first.
  if (ended_ || message.sample >= crew_->sample()) return end(RunEnd::stopped);
  request_checkpoint();
}

void Runner::on_not_written(const CheckpointFailed& message) {
  checkpoint_time_ = now();
  checkpoint_asked_ = false;
  say("no checkpoint: " + message.what);
  for (const WorkerId worker : std::exchange(to_release_, {})) dismiss(worker, "released");
  if (phase_ == Phase::saving)
    return fail_run(fmt::format("stopped, but the last checkpoint could not be written: {}", message.what));
}

void Runner::link_closed(WorkerId worker) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  if (found->second.launch >= 0 && !machines_->runs(found->second.launch)) {
    lose(worker, "its process ended");
    return deliver();
  }
  closed_[worker] = now();
}

void Runner::machine_ended(int launch, const Ending& ending) {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const auto& entry) { return entry.second.launch == launch; });
  const bool was_ready = found != members_.end() && found->second.ready;
  if (found != members_.end()) lose(found->first, ending.how);
  // A script that never asks for work would be started over and over.
  const bool failed = ending.failed || (inputs_.script && ending.how == "exit code 0");
  if (failed && !was_ready && phase_ != Phase::ending && ++failed_starts_ >= kMostFailedStarts)
    fail_run(fmt::format("{} machines in a row ended before they were ready; the last: {}, see {}", failed_starts_,
                         ending.how, machines_->log(launch).string()));
  deliver();
  end_when_empty();
}

void Runner::lose(WorkerId worker, const std::string& why) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  const Member member = found->second;
  const bool stood = crew_->stands(worker);
  members_.erase(found);
  closed_.erase(worker);
  crew_->gone(worker);
  desk_->drop(worker);
  if (member.launch >= 0) machines_->kill(member.launch);
  if (!member.cache.empty()) tell_neighbours();
  std::erase_if(held_, [&](const Event& event) {
    const auto* joined = std::get_if<Joined>(&event);
    return joined != nullptr && joined->worker == worker;
  });
  if (phase_ == Phase::ending || !member.joined) return;
  accounts_.preempted(now(), stood);
  note_accounts();
  const std::string name = fmt::format("{}{}", member.server ? "server s" : "w", worker);
  say(member.leaving ? fmt::format("{} has gone", name) : fmt::format("{} lost: {}", name, why));
  if (member.server) return check_state();
  tell(Lost{worker});
}

}  // namespace mayfly
