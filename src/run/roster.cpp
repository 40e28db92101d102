#include "run/roster.h"

#include <algorithm>

namespace mayfly {

WorkerId Roster::admit(Member member) {
  members_[++last_] = std::move(member);
  return last_;
}

void Roster::restore(WorkerId worker, Member member) {
  named_until(worker);
  members_[worker] = std::move(member);
}

std::vector<WorkerId> Roster::forget_unready(int launch) {
  std::vector<WorkerId> names;
  std::erase_if(members_, [&](const auto& entry) {
    const bool same = entry.second.launch == launch && !entry.second.ready;
    if (same) names.push_back(entry.first);
    return same;
  });
  return names;
}

Roster::Member* Roster::find(WorkerId worker) {
  const auto found = members_.find(worker);
  return found == members_.end() ? nullptr : &found->second;
}

WorkerId Roster::of_launch(int launch) const {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const auto& entry) { return entry.second.launch == launch; });
  return found == members_.end() ? 0 : found->first;
}

std::vector<WorkerId> Roster::silent(Seconds now, Seconds most) const {
  std::vector<WorkerId> silent;
  for (const auto& [worker, member] : members_) {
    const auto since = member.closed ? member.closed : member.heard;
    if (since && now - *since > most) silent.push_back(worker);
  }
  return silent;
}

Neighbours Roster::neighbours() const {
  Neighbours neighbours;
  for (const auto& [worker, member] : members_) {
    if (member.cache.empty()) continue;
    neighbours.workers.push_back(worker);
    neighbours.addresses.push_back(member.cache);
  }
  return neighbours;
}

std::string short_name(WorkerId worker, const Roster::Member& member) {
  return fmt::format("{}{}", member.server ? "s" : "w", worker);
}

std::string name_of(WorkerId worker, const Roster::Member& member) {
  return (member.server ? "server " : "") + short_name(worker, member);
}

}  // namespace mayfly
