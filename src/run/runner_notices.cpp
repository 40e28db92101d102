// What is done with the time between a notice and the end of a machine. docs/notices.md

#include <algorithm>

#include "base/text.h"
#include "notice/cloud.h"
#include "run/runner.h"

namespace mayfly {
namespace {

/// Written at a rate that any disk has, before one was measured.
constexpr BytesPerSecond kAssumedWriting{5e7};
/// How often a checkpoint must fit into what is left: it may be slower than the last.
constexpr double kFits = 1.5;
constexpr Seconds kLeastSaveTime{0.1};
/// Before servers go: for what is in hand, a checkpoint, and the word about it.
constexpr Seconds kPartingTime{1};

}  // namespace

void Runner::on_leaving(WorkerId worker, const Leaving& message) {
  const auto found = members_.find(worker);
  if (found == members_.end() || found->second.leaving) return;
  Member& member = found->second;
  const Seconds left(message.left_s);
  member.leaving = true;
  member.leaves = now() + left;
  say(fmt::format("{}{} will be taken in {}{}", member.server ? "server s" : "w", worker, format_duration(left),
                  message.why ? fmt::format(" ({})", *message.why) : ""));
  if (member.launch >= 0) machines_->replace_early(member.launch);
  if (!member.joined) return;
  if (!member.server) return tell_at_boundary(Notice{.worker = worker, .left = left}, left / 4);
  servers_->server_leaves(worker);
  check_last_holders();
}

void Runner::on_at_risk(WorkerId worker, const AtRisk& message) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  say(fmt::format("{}{} is at risk ({}): it goes on", found->second.server ? "server s" : "w", worker, message.why));
}

Seconds Runner::save_time() const {
  return std::max(kLeastSaveTime, write_time_.value_or(megabytes(state_mb_) / kAssumedWriting));
}

bool Runner::can_save(WorkerId worker) const {
  const auto found = members_.find(worker);
  return found == members_.end() || !found->second.leaving || found->second.leaves - now() >= kFits * save_time();
}

/// A server's shard goes to another that comes in time. Where none does, training ends a while before the server, and
/// what there is goes into a checkpoint, from which the next server starts.
void Runner::check_last_holders() {
  if (servers_ == nullptr || phase_ != Phase::training) return;
  for (const auto& [id, member] : members_) {
    // What is in hand takes too long.
    if (member.server && member.leaving && member.leaves - now() < kPartingTime) servers_->part();
  }
  const auto last = servers_->last_holders();
  std::optional<Seconds> left;
  for (const WorkerId server : last) {
    const Seconds own = members_[server].leaves - now();
    left = std::min(left.value_or(own), own);
  }
  const Seconds reserve = kPartingTime + 2 * kFits * save_time();
  if (!left) {
    if (std::exchange(parting_, false)) crew_->go_on(end_sample());
    return;
  }
  if (!parting_ && *left < reserve && *left >= kFits * save_time() && crew_->sample() > checkpoint_sample_) {
    parting_ = true;
    crew_->go_on(end_sample());
  }
  if (!parting_) return;
  const bool hurry = *left < kFits * save_time() + kPartingTime / 4;
  if (crew_->sample() > checkpoint_sample_ && !checkpoint_asked_ && (crew_->resting() || hurry)) request_checkpoint();
  // What it holds is safe.
  if (crew_->sample() <= checkpoint_sample_ && crew_->resting()) {
    for (const WorkerId server : last) desk_->send(server, Leave{"preempted"});
  }
  deliver();
}

Message Runner::order(const Message& message) {
  const auto* wanted = std::get_if<Drill>(&message);
  if (wanted == nullptr) return Refused{"an operator may ask for a drill"};
  return drill(*wanted);
}

Message Runner::drill(const Drill& message) {
  std::vector<std::string> names;
  for (const WorkerId worker : message.workers) {
    const auto found = members_.find(worker);
    if (found == members_.end()) return Refused{fmt::format("no worker or server {}", worker)};
    names.push_back(fmt::format("{}{}", found->second.server ? "s" : "w", worker));
  }
  const auto cloud = parse_cloud(message.cloud);
  const bool watched = cloud && *cloud != Cloud::none;
  if (watched && !on_loopback(message.endpoint))
    return Refused{fmt::format("endpoint '{}', want one on loopback", message.endpoint)};
  if (!cloud && message.cloud != "sigterm") return Refused{fmt::format("cloud '{}' is not known", message.cloud)};
  say(fmt::format("drill: {} ({})", names.empty() ? "the controller" : fmt::format("{}", fmt::join(names, ", ")),
                  message.cloud));
  for (const WorkerId worker : message.workers) {
    if (watched) desk_->send(worker, Watch{.cloud = message.cloud, .endpoint = message.endpoint});
  }
  return Drilling{.time_s = now().count(), .samples = crew_->sample()};
}

}  // namespace mayfly
