#include "plan/problem.h"

#include <algorithm>
#include <cmath>
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
    return std::tuple(in_billionths(c.cost), in_billionths(c.hourly), c.machines);
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

Evaluator::Evaluator(const Problem& problem) : problem_(&problem) { groups_.reserve(problem.kinds.size()); }

std::optional<double> Evaluator::work(const Speed& speed, int workers) const {
  const Problem& p = *problem_;
  const auto total = iterations_for(p.target, *p.profile, speed, workers, p.job.sync);
  if (!total || !p.progress) return total;
  const auto done = iterations_for(p.progress->reached, *p.profile, speed, workers, p.job.sync);
  if (!done) return std::nullopt;
  return std::max(0.0, *total - *done);
}

bool Evaluator::evaluate(const std::vector<int>& counts, std::size_t server, Candidate& out) {
  const Problem& p = *problem_;
  ++evaluated_;
  groups_.clear();
  out.machines = 0;
  out.hourly = p.servers[server].hourly.value;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0) continue;
    groups_.push_back({.worker = &p.kinds[k].worker, .count = counts[k]});
    out.machines += counts[k];
    out.hourly += p.kinds[k].hourly[static_cast<std::size_t>(counts[k])];
  }
  MAYFLY_CHECK(out.machines > 0, "a cluster has at least one worker");
  const Speed speed = cluster_speed(p.predictor, p.job, groups_, p.servers[server].pool);
  const auto left = work(speed, out.machines);
  if (!left || speed.updates_per_s <= 0) return false;
  out.time = *left / speed.updates_per_s + p.recovery.count();
  out.cost = out.hourly * out.time / 3600;
  out.counts = counts;
  out.server = server;
  return std::isfinite(out.cost);
}

}  // namespace mayfly
