// What is done with the time between a notice and the end of a machine. docs/notices.md

#include <algorithm>

#include "base/overloaded.h"
#include "base/text.h"
#include "notice/cloud.h"
#include "run/session.h"

namespace mayfly {
namespace {

/// How often a checkpoint must fit into what is left: it may be slower than the last.
constexpr double kFits = 1.5;
/// Before servers go: for what is in hand, a checkpoint, and the word about it.
constexpr Seconds kPartingTime{1};

}  // namespace

void Session::on_leaving(WorkerId worker, const Leaving& message) {
  Roster::Member* const found = members_.find(worker);
  if (found == nullptr || found->leaving) return;
  Roster::Member& member = *found;
  const Seconds left(message.left_s);
  member.leaving = true;
  member.leaves = now_ + left;
  say(fmt::format("{} will be taken in {}{}", name_of(worker, member), format_duration(left),
                  message.why ? fmt::format(" ({})", *message.why) : ""));
  fleet_.leaves(now_, member.launch);
  if (!member.joined) return;
  // All go once it is saved: whoever has its notice only makes it more urgent.
  if (phase_ == Phase::saving) return save_within(left / 4);
  // A longer step is given up: most of the time left is for the others to take over what it holds.
  if (!member.server) return tell_at_boundary(Notice{.worker = worker, .left = left}, left / 4);
  crew_->server_leaves(worker);
  check_last_holders();
}

void Session::on_at_risk(WorkerId worker, const AtRisk& message) {
  if (const Roster::Member* const member = members_.find(worker))
    say(fmt::format("{} is at risk ({}): it goes on", name_of(worker, *member), message.why));
}

bool Session::can_save(WorkerId worker) const {
  const Roster::Member* const member = members_.find(worker);
  return member == nullptr || !member->leaving || member->leaves - now_ >= kFits * saving_.time();
}

/// A server's shard goes to another that comes in time. Where none does, training ends a while before the server, and
/// what there is goes into a checkpoint, from which the next server starts.
void Session::check_last_holders() {
  if (!crew_->has_servers() || phase_ != Phase::training) return;
  for (const auto& [id, member] : members_.all()) {
    // What is in hand takes too long.
    if (member.server && member.leaving && member.leaves - now_ < kPartingTime) crew_->part();
  }
  const auto last = crew_->last_holders();
  std::optional<Seconds> left;
  for (const WorkerId server : last) {
    const Roster::Member* const member = members_.find(server);
    const Seconds own = (member != nullptr ? member->leaves : now_) - now_;
    left = std::min(left.value_or(own), own);
  }
  const Seconds save = kFits * saving_.time();
  const bool saved = saving_.holds(crew_->sample());
  if (!left) {
    if (std::exchange(parting_, false)) crew_->go_on(end_sample());
    return;
  }
  if (!parting_ && *left < kPartingTime + 2 * save && *left >= save && !saved) {
    parting_ = true;
    crew_->go_on(end_sample());
  }
  if (!parting_) return;
  const bool hurry = *left < save + kPartingTime / 4;
  if (!saved && !saving_.asked() && (crew_->resting() || hurry)) request_checkpoint();
  // What it holds is safe.
  if (!saved || !crew_->resting()) return;
  for (const WorkerId server : last) out_.send(server, Leave{"preempted"});
}

ToOperator Session::order(Seconds now, const FromOperator& message) {
  at(now);
  ToOperator answer = std::visit(Overloaded{[&](const Drill& wanted) { return drill(wanted); }}, message);
  deliver();
  return answer;
}

/// Machines are told and taken as a cloud would do it, by the engine that has them.
ToOperator Session::drill(const Drill& message) {
  std::vector<std::string> names;
  std::vector<int> launches;
  for (const WorkerId worker : message.workers) {
    const Roster::Member* const member = members_.find(worker);
    if (member == nullptr) return Refused{fmt::format("no worker or server {}", worker)};
    if (fleet_.find(member->launch) == nullptr)
      return Refused{fmt::format("{} came by itself: this run cannot take it away", name_of(worker, *member))};
    names.push_back(short_name(worker, *member));
    launches.push_back(member->launch);
  }
  const auto cloud = parse_cloud(message.cloud);
  const bool watched = cloud && *cloud != Cloud::none;
  if (watched && !on_loopback(message.endpoint))
    return Refused{fmt::format("endpoint '{}', want one on loopback", message.endpoint)};
  if (!cloud && message.cloud != "sigterm") return Refused{fmt::format("cloud '{}' is not known", message.cloud)};
  say(fmt::format("drill: {} ({})", names.empty() ? "the controller" : fmt::format("{}", fmt::join(names, ", ")),
                  message.cloud));
  for (const WorkerId worker : message.workers) {
    if (watched) out_.send(worker, Watch{.cloud = message.cloud, .endpoint = message.endpoint});
  }
  for (const int launch : launches) {
    if (message.cloud == "sigterm") fleet_.tell(launch);
    fleet_.end_at(now_ + Seconds(message.window_s), launch);
  }
  return Drilling{.time_s = now_.count(), .samples = crew_->sample()};
}

}  // namespace mayfly
