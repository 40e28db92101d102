#include "plan/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/check.h"

namespace mayfly {

Kind make_kind(const Worker& worker, std::vector<Offer> offers, std::vector<TypeLimit> limits) {
  Kind kind{.worker = worker};
  std::stable_sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
    return std::tie(a.rate.value, a.type, a.market, a.zone) < std::tie(b.rate.value, b.type, b.market, b.zone);
  });
  if (!offers.empty()) kind.name = offers.front().type;
  const auto take = [&](Offer& offer, int most, bool running) {
    Offer rung = offer;
    rung.limit = std::min(offer.limit, most);
    if (rung.limit <= 0) return 0;
    offer.limit -= rung.limit;
    for (int n = 0; n < rung.limit; ++n) kind.hourly.push_back(kind.hourly.back() + (running ? 0 : rung.rate.value));
    kind.ladder.push_back(rung);
    return rung.limit;
  };
  // What runs already stands first, at its cheapest offers; what may be added follows by price.
  for (const bool running : {true, false}) {
    for (Offer& offer : offers) {
      const auto limit =
          std::find_if(limits.begin(), limits.end(), [&](const TypeLimit& l) { return l.type == offer.type; });
      MAYFLY_CHECK(limit != limits.end(), "every offer's type has a limit");
      const int taken = take(offer, running ? limit->existing : limit->quota, running);
      limit->quota -= taken;
      if (running) {
        limit->existing -= taken;
        kind.existing += taken;
      }
    }
  }
  return kind;
}

namespace {

/// Sums of vCPUs are whole; those of many machines are still whole within this.
constexpr double kWhole = 1e-6;

double used(const QuotaGroup& group, const std::vector<int>& counts, std::size_t server) {
  double sum = group.server_use[server];
  for (std::size_t k = 0; k < counts.size(); ++k) sum += counts[k] * group.use[k];
  return sum;
}

}  // namespace

bool within_quotas(const Problem& problem, const std::vector<int>& counts, std::size_t server) {
  return std::all_of(problem.groups.begin(), problem.groups.end(),
                     [&](const QuotaGroup& group) { return used(group, counts, server) <= group.limit + kWhole; });
}

int room_for(const Problem& problem, const std::vector<int>& counts, std::size_t server, std::size_t kind) {
  double room = std::numeric_limits<int>::max();
  for (const QuotaGroup& group : problem.groups) {
    if (group.use[kind] <= 0) continue;
    room = std::min(room, (group.limit + kWhole - used(group, counts, server)) / group.use[kind]);
  }
  return static_cast<int>(std::max(0.0, room));
}

Problem only_kinds(const Problem& problem, const std::vector<std::size_t>& kinds) {
  Problem alone = problem;
  alone.kinds.clear();
  for (QuotaGroup& group : alone.groups) group.use.clear();
  for (const std::size_t kind : kinds) {
    alone.kinds.push_back(problem.kinds[kind]);
    for (std::size_t i = 0; i < alone.groups.size(); ++i) alone.groups[i].use.push_back(problem.groups[i].use[kind]);
  }
  return alone;
}

namespace {

/// Below a billionth of a dollar or second two plans tie: rounding in the last bits must not choose between them.
long long in_billionths(double value) { return std::llround(std::min(value, 9e9) * 1e9); }

auto order_by_name(const Candidate& a, const Candidate& b) {
  // More of an earlier-named kind comes first, as a sorted list of machine names would.
  if (a.counts != b.counts) return b.counts < a.counts;
  return a.server < b.server;
}

}  // namespace

bool cheaper(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    return std::tuple(in_billionths(c.cost), in_billionths(c.time), c.machines);
  };
  const auto ka = key(a);
  const auto kb = key(b);
  return ka != kb ? ka < kb : order_by_name(a, b);
}

bool faster(const Candidate& a, const Candidate& b) {
  const auto ta = in_billionths(a.time);
  const auto tb = in_billionths(b.time);
  return ta != tb ? ta < tb : cheaper(a, b);
}

std::optional<double> most_work_time(const Problem& problem) {
  if (!problem.deadline) return {};
  // To the nanosecond: below that it is the rounding of the sums.
  const double left = problem.deadline->count() + 1e-9 - problem.recovery.count();
  if (problem.caution <= 0) return left;
  // A cluster's error is no less than its surest machine's.
  double least = std::numeric_limits<double>::infinity();
  for (const Kind& kind : problem.kinds) {
    if (kind.limit() > 0) least = std::min(least, kind.worker.relative_sd);
  }
  const double sd = std::hypot(common_sd(problem.predictor, problem.target, *problem.profile), least);
  return std::isfinite(sd) ? left * std::exp(-problem.caution * sd) : left;
}

double predicted_sd(const Problem& problem, const Candidate& candidate) {
  std::vector<Group> groups;
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    if (candidate.counts[k] > 0) groups.push_back({&problem.kinds[k].worker, candidate.counts[k]});
  }
  const Speed speed = cluster_speed(problem.predictor, problem.job, groups, problem.servers[candidate.server].pool);
  return relative_sd(problem.predictor, problem.target, *problem.profile, groups, speed);
}

Evaluator::Evaluator(const Problem& problem) : problem_(&problem) { groups_.reserve(problem.kinds.size()); }

std::optional<double> Evaluator::work(const Speed& speed, int workers) const {
  const Problem& p = *problem_;
  const auto total = iterations_for(p.target, *p.profile, speed, workers, p.job.sync);
  if (!total || !p.progress) return total;
  const auto done = iterations_for(p.progress->reached, *p.profile, speed, workers, p.job.sync);
  if (!done) return std::nullopt;
  return std::max(0.0, *total - *done);
}

std::optional<double> share_of_step(const Problem& problem, const std::vector<int>& counts, std::size_t kind) {
  if (!shares_step(problem.job)) return {};
  double all = 0;
  for (std::size_t k = 0; k < counts.size(); ++k)
    all += counts[k] > 0 ? counts[k] * pace_of(problem.kinds[k].worker) : 0;
  return all > 0 ? problem.job.global_batch * pace_of(problem.kinds[kind].worker) / all : 0;
}

namespace {

/// Nobody gets more samples of a shared step than fit into memory, or none.
bool shares_fit(const Problem& problem, const std::vector<int>& counts) {
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const Kind& kind = problem.kinds[k];
    if (counts[k] == 0 || (kind.most_share >= problem.job.global_batch && kind.least_share <= 0)) continue;
    const auto share = share_of_step(problem, counts, k);
    if (share && (*share > kind.most_share || *share < kind.least_share)) return false;
  }
  return true;
}

}  // namespace

bool Evaluator::evaluate(const std::vector<int>& counts, std::size_t server, Candidate& out) {
  const Problem& p = *problem_;
  if (!p.groups.empty() && !within_quotas(p, counts, server)) return false;
  if (!shares_fit(p, counts)) return false;
  ++evaluated_;
  groups_.clear();
  out.machines = 0;
  out.hourly = p.servers[server].hourly.value;
  double lag = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0) continue;
    groups_.push_back({.worker = &p.kinds[k].worker, .count = counts[k]});
    out.machines += counts[k];
    lag = std::max(lag, p.kinds[k].lag);
    out.hourly += p.kinds[k].hourly[static_cast<std::size_t>(counts[k])];
  }
  MAYFLY_CHECK(out.machines > 0, "a cluster has at least one worker");
  const Speed speed = cluster_speed(p.predictor, p.job, groups_, p.servers[server].pool);
  const auto left = work(speed, out.machines);
  if (!left || speed.updates_per_s <= 0) return false;
  const double work_time = *left / speed.updates_per_s;
  out.updates = *left;
  out.samples = work_time * speed.samples_per_s;
  out.lead = p.recovery.count() + lag;
  out.time = work_time + out.lead;
  out.latest = out.time;
  if (p.caution > 0 && p.deadline)
    out.latest += work_time * std::expm1(p.caution * relative_sd(p.predictor, p.target, *p.profile, groups_, speed));
  out.cost = out.hourly * out.time / 3600;
  out.counts = counts;
  out.server = server;
  return std::isfinite(out.cost);
}

}  // namespace mayfly
