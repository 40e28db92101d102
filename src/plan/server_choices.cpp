#include "plan/server_choices.h"

#include <algorithm>
#include <optional>

namespace mayfly {

namespace {

/// More of everything for no more money: the other choice can never be part of a cheaper plan.
bool dominates(const ServerChoice& a, const ServerChoice& b) {
  const auto total = [](const ServerChoice& c, double ServerPool::* figure) { return c.pool.*figure * c.pool.count; };
  return a.hourly <= b.hourly && total(a, &ServerPool::nic) >= total(b, &ServerPool::nic) &&
         total(a, &ServerPool::cores) >= total(b, &ServerPool::cores) &&
         total(a, &ServerPool::gflops) >= total(b, &ServerPool::gflops) && a.pool.count >= b.pool.count;
}

std::optional<ServerChoice> server_choice(const Profile& profile, const Catalog& catalog, const InstanceType& type,
                                          int count) {
  ServerChoice choice{.type = type.name, .pool = make_servers(profile, type, count)};
  if (choice.pool.nic <= 0) return {};
  if (!catalog.server_charged) return choice;
  if (profile.server.price && (profile.server.type.empty() || profile.server.type == type.name)) {
    choice.rate = *profile.server.price;
  } else if (type.on_demand) {
    choice.rate = type.on_demand->rate;
  } else {
    return {};
  }
  choice.hourly = choice.rate * count;
  return choice;
}

}  // namespace

int existing_of(const std::string& type, const PlanRequest& request) {
  for (const auto& [name, count] : request.existing) {
    if (name == type) return count;
  }
  return 0;
}

bool is_retired(const InstanceType& type, const PlanRequest& request) {
  return !type.retired.empty() && !request.retired && !request.named.contains(type.name);
}

std::vector<ServerChoice> server_choices(const Profile& profile, const Catalog& catalog, const PlanRequest& request,
                                         const SiteName& site) {
  std::vector<ServerChoice> choices;
  const std::string preferred = !profile.server.type.empty() ? profile.server.type : catalog.server_type;
  for (const InstanceType& type : catalog.types) {
    if (SiteName(type.cloud, type.region) != site) continue;
    if (request.servers.empty() && is_retired(type, request) && existing_of(type.name, request) == 0) continue;
    int fewest = 1;
    int most = request.most_servers;
    if (!request.servers.empty()) {
      const auto asked = std::find_if(request.servers.begin(), request.servers.end(),
                                      [&](const MachineCount& m) { return m.type == type.name; });
      if (asked == request.servers.end()) continue;
      if (asked->count > 0) fewest = most = asked->count;
    } else if (!catalog.server_charged) {
      // Free servers would be taken without end; the papers that leave the server out of the bill have one.
      if (type.name != preferred) continue;
      most = 1;
    } else if (type.gpu && type.name != preferred) {
      continue;
    }
    for (int count = fewest; count <= most; ++count) {
      auto choice = server_choice(profile, catalog, type, count);
      if (!choice) continue;
      choice->hourly = choice->rate * std::max(0, count - existing_of(type.name, request));
      choices.push_back(*choice);
    }
  }
  std::stable_sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) { return a.hourly < b.hourly; });
  std::vector<ServerChoice> kept;
  for (const ServerChoice& choice : choices) {
    const bool pointless =
        std::any_of(kept.begin(), kept.end(), [&](const auto& other) { return dominates(other, choice); });
    if (!pointless) kept.push_back(choice);
  }
  return kept;
}

}  // namespace mayfly
