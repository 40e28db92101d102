#include <algorithm>
#include <limits>
#include <map>

#include "base/how_many.h"
#include "base/normal.h"
#include "base/text.h"
#include "plan/planner.h"
#include "plan/quota_groups.h"
#include "plan/room.h"
#include "plan/server_choices.h"

namespace mayfly {
namespace {

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
  if (request.wanted_offer) std::erase_if(ladder, [&](const Offer& o) { return !request.wanted_offer(type, o); });
  return ladder;
}

/// A kind in the making.
struct Draft {
  Worker worker{};
  double start = 0;  ///< s until they train
  double most_share = 1e300;
  double least_share = 0;
  Shares shares{};  ///< of each of its machines
  std::vector<Offer> offers{};
  std::vector<TypeLimit> limits{};
};

void add_draft(std::vector<Draft>& drafts, Draft more) {
  auto draft = std::find_if(drafts.begin(), drafts.end(), [&](const Draft& d) {
    return d.worker == more.worker && d.start == more.start && d.most_share == more.most_share &&
           d.least_share == more.least_share && d.shares == more.shares;
  });
  if (draft == drafts.end()) {
    drafts.push_back(std::move(more));
    return;
  }
  draft->offers.insert(draft->offers.end(), more.offers.begin(), more.offers.end());
  draft->limits.insert(draft->limits.end(), more.limits.begin(), more.limits.end());
}

/// The job with the exchanges that it may be planned with. Models other than mayfly's own know the profile's alone;
/// servers are thought of where something is known of them, as what their processors do is not to be guessed.
std::vector<std::shared_ptr<const Profile>> exchanges_of(const Profile& profile, const Catalog& catalog,
                                                         const PlanRequest& request) {
  const auto same = [&] { return std::shared_ptr<const Profile>(std::shared_ptr<void>(), &profile); };  // the caller's
  if (request.predictor != Predictor::queue || profile.exchange == Exchange::pipeline) return {same()};
  const bool measured = profile.exchange == Exchange::server || profile.server != ServerProfile{};
  std::vector<std::shared_ptr<const Profile>> found;
  for (const Exchange exchange : {Exchange::server, Exchange::all_reduce}) {
    const bool served = exchange == Exchange::server;
    if (served && !(request.exchanges.contains(Meeting::servers) && (measured || !request.servers.empty()))) continue;
    if (!served && !request.exchanges.contains(Meeting::none) && !request.exchanges.contains(Meeting::ring)) continue;
    found.push_back(exchange == profile.exchange
                        ? same()
                        : std::make_shared<const Profile>(exchanging(profile, exchange, catalog)));
  }
  return found;
}

/// What cannot be planned with, and why.
struct LeftOut {
  int unscaled = 0;  ///< neither measured nor to be scaled to
  struct Reason {
    int types = 0;
    std::string first{};  ///< as it is said of the first of them
  };
  std::map<std::string, Reason> reasons{};  ///< by what they say of any type

  void add(const InstanceType& type, const std::string& reason) {
    std::string words = reason;
    for (const std::string& own : {type.name, type.gpu ? type.gpu->model : type.name}) {
      if (const auto at = words.find(own); at != std::string::npos) words.erase(at, own.size());
    }
    std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
    Reason& same = reasons[words];
    if (++same.types == 1) same.first = reason;
    ++unscaled;
  }
  int off_curve = 0;
  int no_quota = 0;
  std::vector<std::string> retired{};
  std::optional<std::string_view> lacking{};
};

class Sites {
 public:
  Sites(const Profile& profile, const Catalog& catalog, const PlanRequest& request, LeftOut& left, Room& room)
      : profile_(profile), catalog_(catalog), request_(request), left_(left), room_(room) {}

  /// An error where a running machine cannot be used.
  Result<void> add(const InstanceType& type, bool any_servers) {
    int existing = existing_of(type.name, request_);
    if (existing == 0 && request_.wanted && !request_.wanted(type)) return {};
    constexpr int kMost = 10'000;
    const int quota = std::max(existing, std::min(kMost, most_of(type, request_)));
    auto ladder = offers_of(type, request_, quota);
    if (quota == 0 || ladder.empty()) {
      if (quota == 0) ++left_.no_quota;
      if (existing > 0) return fail("existing machine {} has no price in the chosen markets", type.name);
      return {};
    }
    const auto worker = make_worker(profile_, type, catalog_);
    // What runs and cannot train is a server.
    if (!worker && !type.gpu && any_servers) existing = 0;
    if (worker && existing == 0 && off_curve(*worker)) {
      ++left_.off_curve;
      return {};
    }
    if (!worker || (request_.predictor == Predictor::cynthia && worker->gflops <= 0)) {
      if (existing > 0)
        return unexpected(worker ? Error{fmt::format("profile '{}' has no gflops for {}", profile_.name, type.name)}
                                 : worker.error());
      // CPU machines without a measurement are not candidates that a user expects to hear about.
      if (type.gpu || profile_.types.contains(type.name)) {
        left_.add(type, worker ? fmt::format("profile '{}' has no gflops for {}", profile_.name, type.name)
                               : worker.error().message);
      }
      return {};
    }
    // What has trained on a machine that runs fits there, whatever the formula says.
    if ((existing == 0 || !request_.progress) && room_.lacks(type, *worker)) {
      if (existing == 0) return {};
      return fail(
          "existing machine {}: the job does not fit into its GPUs' memory, so it cannot be running there: see "
          "'mayfly predict --cluster {}=1'; what it has trained is said by --progress",
          type.name, type.name);
    }
    if (existing == 0 && is_retired(type, request_)) {
      left_.retired.push_back(type.name);
      return {};
    }
    const SiteName site{type.cloud, type.region};
    for (OfferGroup& part : offer_groups(type, request_, std::move(ladder), existing, sums_[site])) {
      add_draft(
          drafts_[site],
          {.worker = *worker,
           .start = request_.start ? request_.start(type).count() : 0,
           .most_share = existing > 0 ? 1e300 : room_.most_share(type, *worker),
           .least_share = existing > 0 || request_.predictor != Predictor::queue ? 0.0 : std::max(1, type.gpu_count),
           .shares = part.shares,
           .offers = std::move(part.offers),
           .limits = {{type.name, part.quota, part.existing}}});
    }
    return {};
  }

  void into(PlanProblems& result) {
    for (auto& [site, kinds] : drafts_) {
      if (auto problem = problem_at(site, kinds, result.notes)) result.problems.push_back(*std::move(problem));
    }
  }

 private:
  bool off_curve(const Worker& worker) const {
    if (!std::holds_alternative<ToLoss>(request_.target)) return false;
    const double batch = profile_.sync == Sync::bsp && profile_.batch ? *profile_.batch : worker.batch;
    return batch < profile_.loss->batch_min || batch > profile_.loss->batch_max;
  }

  std::optional<Problem> problem_at(const SiteName& site, std::vector<Draft>& kinds, std::vector<std::string>& notes) {
    Problem problem{.profile = &profile_,
                    .job = make_workload(profile_),
                    .predictor = request_.predictor,
                    .target = request_.target,
                    .progress = request_.progress,
                    .fewest = request_.fewest_workers,
                    .most = request_.most_workers};
    std::vector<std::pair<Kind, Shares>> made;
    for (Draft& draft : kinds) {
      made.emplace_back(make_kind(draft.worker, std::move(draft.offers), std::move(draft.limits)), draft.shares);
      made.back().first.lag = draft.start;
      made.back().first.most_share = draft.most_share;
      made.back().first.least_share = draft.least_share;
    }
    std::stable_sort(made.begin(), made.end(),
                     [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
    for (auto& [kind, shares] : made) problem.kinds.push_back(std::move(kind));
    set_lead(problem);
    if (request_.confidence) problem.caution = std::max(0.0, normal_quantile(*request_.confidence));
    if (request_.deadline) {
      const Seconds elapsed = request_.progress ? request_.progress->elapsed : Seconds{0};
      problem.deadline = std::max(Seconds{0}, *request_.deadline - elapsed);
    }
    if (profile_.exchange == Exchange::server) {
      problem.servers = server_choices(profile_, catalog_, request_, site);
    } else {
      problem.servers = {ServerChoice{}};
      if (profile_.exchange == Exchange::all_reduce) set_sizes(problem);
    }
    set_quota_groups(problem, site, made);
    if (problem.servers.empty()) {
      notes.push_back(
          fmt::format("{} {}: no server type with a known network and price, left out", site.first, site.second));
      return std::nullopt;
    }
    if (const auto missing = missing_for(request_.predictor, problem.job, problem.servers.front().pool)) {
      left_.lacking = missing;
      return std::nullopt;
    }
    // Clusters do not reach across clouds or regions, so a site without the running machines cannot help them.
    const bool has_existing =
        std::any_of(problem.kinds.begin(), problem.kinds.end(), [](const Kind& k) { return k.existing > 0; });
    if (!request_.existing.empty() && !has_existing) return std::nullopt;
    return problem;
  }

  void set_quota_groups(Problem& problem, const SiteName& site, const std::vector<std::pair<Kind, Shares>>& made) {
    if (request_.families.empty()) return;
    std::vector<Shares> kinds;
    for (const auto& [kind, shares] : made) kinds.push_back(shares);
    problem.groups = quota_groups(problem, request_, catalog_, sums_[site], kinds);
    problem.most = std::min(problem.most, most_by_quotas(problem));
  }

  /// What all kinds have in common of their starts, and how much later each is; a change when re-planning.
  void set_lead(Problem& problem) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Kind& kind : problem.kinds) least = std::min(least, kind.lag);
    const bool runs = request_.progress || !request_.existing.empty();
    for (Kind& kind : problem.kinds) kind.lag = runs ? 0 : kind.lag - least;
    if (runs) {
      problem.recovery = profile_.recovery.value_or(Seconds{0});
    } else if (!problem.kinds.empty()) {
      problem.recovery = Seconds(least);
    }
  }

  /// A ring is a barrier: who does not wait for others is alone.
  void set_sizes(Problem& problem) const {
    if (request_.predictor != Predictor::queue) return;
    if (profile_.sync == Sync::asp || !request_.exchanges.contains(Meeting::ring))
      problem.most = std::min(problem.most, 1);
    if (!request_.exchanges.contains(Meeting::none)) problem.fewest = std::max(problem.fewest, 2);
  }

  const Profile& profile_;
  const Catalog& catalog_;
  const PlanRequest& request_;
  LeftOut& left_;
  Room& room_;
  std::map<SiteName, std::vector<Draft>> drafts_;
  std::map<SiteName, std::vector<TypeSum>> sums_;  ///< of types whose offers count against unlike quotas
};

std::string retired_text(const std::vector<std::string>& types) {
  constexpr std::size_t kNamed = 4;
  const auto some = std::min(types.size(), kNamed);
  return fmt::format("{} left out that clouds offer no longer to new customers ({}{}); --retired takes them",
                     how_many(std::ssize(types), "type"),
                     fmt::join(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(some), ", "),
                     types.size() > some ? ", ..." : "");
}

void explain(const Profile& profile, const LeftOut& left, const Room& room, PlanProblems& result) {
  std::string left_out;  // what `binding` speaks of
  if (left.unscaled > 0) {
    for (const auto& [words, reason] : left.reasons)
      left_out +=
          fmt::format("{}{} left out: {}", left_out.empty() ? "" : "; ", how_many(reason.types, "type"), reason.first);
    result.notes.push_back(left_out);
  }
  if (left.off_curve > 0) {
    result.notes.push_back(fmt::format("{} left out, of a batch outside the {:g} to {:g} the loss curve was fitted for",
                                       how_many(left.off_curve, "type"), profile.loss->batch_min,
                                       profile.loss->batch_max));
    if (left_out.empty()) left_out = result.notes.back();
  }
  if (room.left_out() > 0) result.notes.push_back(left_out = room.text());
  const std::string retired = left.retired.empty() ? "" : retired_text(left.retired);
  if (!result.problems.empty() && !retired.empty()) result.notes.push_back(retired);
  if (!result.problems.empty()) return;
  result.binding = room.left_out() > 0  ? "memory"
                   : left.unscaled > 0  ? "scale"
                   : left.off_curve > 0 ? "loss"
                   : left.no_quota > 0  ? "quota"
                                        : "gpu";
  if (!retired.empty()) result.binding = "gpu";
  result.reason = !retired.empty()            ? retired
                  : result.binding == "quota" ? "no machine can be rented under these quotas and markets"
                  : result.binding == "gpu"   ? "no machine that the job would take is offered in these markets"
                                              : left_out;
}

}  // namespace

Result<PlanProblems> make_problems(const Profile& profile, const Catalog& catalog, const PlanRequest& request) {
  if (const auto known = known_families(request.families, catalog); !known) return unexpected(known.error());
  for (const auto* list : {&request.quota, &request.existing, &request.servers}) {
    for (const auto& machine : *list) {
      if (machine.type == "*" && list == &request.quota) continue;
      if (catalog.find_function(machine.type) != nullptr && list == &request.quota) continue;
      if (const auto type = lookup(catalog, machine.type); !type) return unexpected(type.error());
    }
  }
  if (request.predictor != Predictor::queue && request.exchanges != PlanRequest{}.exchanges)
    return fail("predictor {} knows the exchange that was measured alone: want no --exchange", name(request.predictor));
  PlanProblems result{.profiles = exchanges_of(profile, catalog, request)};
  if (result.profiles.empty())
    return fail("no exchange is left to plan with: --exchange names none that profile '{}' can be planned with",
                profile.name);
  const bool any_servers = std::any_of(result.profiles.begin(), result.profiles.end(),
                                       [](const auto& one) { return one->exchange == Exchange::server; });
  // What one way leaves out, the other does too: said once, of the last.
  LeftOut left;
  std::optional<Room> room;
  for (const auto& one : result.profiles) {
    left = {.lacking = left.lacking};
    room.emplace(*one, catalog);
    Sites sites(*one, catalog, request, left, *room);
    for (const InstanceType& type : catalog.types) {
      if (const auto added = sites.add(type, any_servers); !added) return unexpected(added.error());
    }
    sites.into(result);
  }
  explain(profile, left, *room, result);
  if (result.problems.empty() && left.lacking) {
    return fail("profile '{}' cannot be used with predictor {}: it needs {}", profile.name, name(request.predictor),
                *left.lacking);
  }
  return result;
}

PlanOption plan_option(const Problem& problem, const Candidate& candidate) {
  PlanOption option{.time = candidate.time,
                    .lead = candidate.lead,
                    .added_cost = candidate.cost,
                    .updates = candidate.updates,
                    .samples = candidate.samples};
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
  option.exchange = problem.job.exchange == Exchange::pipeline ? Meeting::pipeline
                    : server.pool.count > 0                    ? Meeting::servers
                    : candidate.machines > 1                   ? Meeting::ring
                                                               : Meeting::none;
  return option;
}

}  // namespace mayfly
