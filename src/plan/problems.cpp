#include <algorithm>
#include <map>

#include "base/text.h"
#include "plan/planner.h"

namespace mayfly {
namespace {

using Site = std::pair<std::string, std::string>;  // cloud, region

int quota_of(const InstanceType& type, const PlanRequest& request) {
  std::optional<int> all;
  for (const auto& [name, count] : request.quota) {
    if (name == type.name) return count;
    if (name == "*") all = count;
  }
  return all ? *all : type.quota.value_or(request.default_quota);
}

int existing_of(const InstanceType& type, const PlanRequest& request) {
  for (const auto& [name, count] : request.existing) {
    if (name == type.name) return count;
  }
  return 0;
}

std::vector<Offer> offers_of(const InstanceType& type, const PlanRequest& request, int quota) {
  std::vector<Offer> ladder;
  for (const Market market : {Market::spot, Market::on_demand}) {
    if (!request.markets.contains(market)) continue;
    if (market == Market::spot && request.spot_types && !request.spot_types->contains(type.name)) continue;
    bool by_zone = false;
    for (const ZonePrice& zone : type.zones) {
      const auto& price = market == Market::spot ? zone.spot : zone.on_demand;
      // A zone of another region (us-west-2a beside us-east-1) cannot train with this one; zone ids (use1-az6) do not
      // tell.
      const bool elsewhere =
          !type.region.empty() && !zone.zone.starts_with(type.region) && zone.zone.find("-az") == std::string::npos;
      if (!price || elsewhere) continue;
      by_zone = true;
      ladder.push_back({type.name, market, zone.zone, price->rate, std::min(quota, zone.quota.value_or(quota))});
    }
    const auto& price = type.price(market);
    if (!by_zone && price) ladder.push_back({type.name, market, "", price->rate, quota});
  }
  return ladder;
}

/// A kind in the making.
struct Draft {
  Worker worker{};
  std::vector<Offer> offers{};
  std::vector<TypeLimit> limits{};
};

void add_draft(std::vector<Draft>& drafts, const Worker& worker, std::vector<Offer> offers, TypeLimit limit) {
  auto draft = std::find_if(drafts.begin(), drafts.end(), [&](const Draft& d) { return d.worker == worker; });
  if (draft == drafts.end()) draft = drafts.insert(drafts.end(), Draft{.worker = worker});
  draft->offers.insert(draft->offers.end(), offers.begin(), offers.end());
  draft->limits.push_back(std::move(limit));
}

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

/// The server choices of a site, cheapest first, without dominated ones. Servers are rented on demand: one that
/// vanishes takes the work of all workers with it.
std::vector<ServerChoice> server_choices(const Profile& profile, const Catalog& catalog, const PlanRequest& request,
                                         const Site& site) {
  std::vector<ServerChoice> choices;
  const std::string preferred = !profile.server.type.empty() ? profile.server.type : catalog.server_type;
  for (const InstanceType& type : catalog.types) {
    if (Site(type.cloud, type.region) != site) continue;
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
      if (const auto choice = server_choice(profile, catalog, type, count)) choices.push_back(*choice);
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

}  // namespace

Result<PlanProblems> make_problems(const Profile& profile, const Catalog& catalog, const PlanRequest& request) {
  for (const auto* list : {&request.quota, &request.existing, &request.servers}) {
    for (const auto& machine : *list) {
      if (machine.type == "*" && list == &request.quota) continue;
      if (catalog.find_function(machine.type) != nullptr && list == &request.quota) continue;
      if (const auto type = lookup(catalog, machine.type); !type) return unexpected(type.error());
    }
  }
  PlanProblems result;
  std::map<Site, std::vector<Draft>> drafts;
  std::map<std::string, int> left_out;
  int off_curve = 0;
  std::string first_reason;
  for (const InstanceType& type : catalog.types) {
    const int existing = existing_of(type, request);
    if (existing == 0 && request.wanted && !request.wanted(type)) continue;
    const int quota = std::max(existing, quota_of(type, request));
    auto ladder = offers_of(type, request, quota);
    if (quota == 0 || ladder.empty()) {
      if (existing > 0) return fail("existing machine {} has no price in the chosen markets", type.name);
      continue;
    }
    const auto worker = make_worker(profile, type, catalog);
    const bool cynthia = request.predictor == Predictor::cynthia;
    if (worker && std::holds_alternative<ToLoss>(request.target) && existing == 0 &&
        (worker->batch < profile.loss->batch_min || worker->batch > profile.loss->batch_max)) {
      ++off_curve;
      continue;
    }
    if (!worker || (cynthia && worker->gflops <= 0)) {
      if (existing > 0)
        return unexpected(worker ? Error{fmt::format("profile '{}' has no gflops for {}", profile.name, type.name)}
                                 : worker.error());
      // CPU machines without a measurement are not candidates that a user expects to hear about.
      if (type.gpu || profile.types.contains(type.name)) {
        ++left_out[type.cloud];
        if (first_reason.empty() && !worker) first_reason = worker.error().message;
      }
      continue;
    }
    add_draft(drafts[{type.cloud, type.region}], *worker, std::move(ladder), {type.name, quota, existing});
  }
  std::optional<std::string_view> lacking;
  for (auto& [site, kinds] : drafts) {
    Problem problem;
    for (Draft& draft : kinds)
      problem.kinds.push_back(make_kind(draft.worker, std::move(draft.offers), std::move(draft.limits)));
    std::sort(problem.kinds.begin(), problem.kinds.end(), [](const Kind& a, const Kind& b) { return a.name < b.name; });
    problem.profile = &profile;
    problem.job = make_workload(profile, request.sync);
    problem.predictor = request.predictor;
    problem.target = request.target;
    problem.progress = request.progress;
    problem.fewest = request.fewest_workers;
    problem.most = request.most_workers;
    if (request.progress) problem.recovery = profile.recovery.value_or(Seconds{0});
    if (request.deadline) {
      const Seconds elapsed = request.progress ? request.progress->elapsed : Seconds{0};
      problem.deadline = std::max(Seconds{0}, *request.deadline - elapsed);
    }
    if (profile.exchange == Exchange::server) {
      problem.servers = server_choices(profile, catalog, request, site);
    } else {
      problem.servers = {ServerChoice{}};
    }
    // Beside running machines a server runs too.
    if (!request.existing.empty()) {
      for (ServerChoice& server : problem.servers) server.hourly = {};
    }
    if (problem.servers.empty()) {
      result.notes.push_back(
          fmt::format("{} {}: no server type with a known network and price, left out", site.first, site.second));
      continue;
    }
    if (const auto missing = missing_for(request.predictor, problem.job, problem.servers.front().pool)) {
      lacking = missing;
      continue;
    }
    // Clusters do not reach across clouds or regions, so a site without the running machines cannot help them.
    const bool has_existing =
        std::any_of(problem.kinds.begin(), problem.kinds.end(), [](const Kind& k) { return k.existing > 0; });
    if (!request.existing.empty() && !has_existing) continue;
    result.problems.push_back(std::move(problem));
  }
  int total = 0;
  for (const auto& [cloud, count] : left_out) total += count;
  if (total > 0) {
    result.notes.push_back(
        fmt::format("{} types left out: {}", total, first_reason.empty() ? "not measured" : first_reason));
  }
  if (off_curve > 0) {
    result.notes.push_back(
        fmt::format("{} types left out: their batch is outside the {:g} to {:g} the loss curve was fitted for",
                    off_curve, profile.loss->batch_min, profile.loss->batch_max));
  }
  if (result.problems.empty() && lacking) {
    return fail("profile '{}' cannot be used with predictor {}: it needs {}", profile.name, name(request.predictor),
                *lacking);
  }
  return result;
}

PlanOption plan_option(const Problem& problem, const Candidate& candidate) {
  PlanOption option{.time = candidate.time, .added_cost = candidate.cost};
  for (std::size_t k = 0; k < candidate.counts.size(); ++k) {
    int left = candidate.counts[k];
    for (const Offer& offer : problem.kinds[k].ladder) {
      const int taken = std::min(left, offer.limit);
      if (taken == 0) continue;
      const bool more = !option.cluster.empty() && option.cluster.back().type == offer.type &&
                        option.cluster.back().market == offer.market && option.cluster.back().zone == offer.zone;
      if (more) {
        option.cluster.back().count += taken;
      } else {
        option.cluster.push_back({offer.type, offer.market, offer.zone, taken, offer.rate});
      }
      option.hourly += taken * offer.rate.value;
      left -= taken;
    }
  }
  const ServerChoice& server = problem.servers[candidate.server];
  if (server.pool.count > 0) {
    option.servers.push_back({server.type, server.market, "", server.pool.count, server.rate});
    option.hourly += server.pool.count * server.rate.value;
  }
  option.cost = option.hourly * option.time / 3600;
  return option;
}

}  // namespace mayfly
