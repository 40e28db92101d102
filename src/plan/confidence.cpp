#include "plan/confidence.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/text.h"

namespace mayfly {

namespace {

/// USD/h of one on demand, in its zone where that has a price of its own.
std::optional<UsdPerHour> on_demand_rate(const InstanceType& type, const std::string& zone) {
  for (const ZonePrice& one : type.zones) {
    if (one.zone == zone && one.on_demand) return one.on_demand->rate;
  }
  return type.on_demand ? std::optional(type.on_demand->rate) : std::nullopt;
}

/// The spot machines of each line that do not run yet.
std::vector<int> to_rent_on_spot(const std::vector<PlanLine>& cluster, std::vector<MachineCount> running) {
  std::vector<int> free;
  for (const PlanLine& line : cluster) {
    int kept = 0;
    for (auto& [type, count] : running) {
      if (type != line.type) continue;
      kept = std::min(count, line.count);
      count -= kept;
    }
    free.push_back(line.market == Market::spot ? line.count - kept : 0);
  }
  return free;
}

}  // namespace

std::optional<PlanOption> partly_on_demand(PlanOption option, const Catalog& catalog, const PlanRequest& request,
                                           double share) {
  const std::vector<int> free = to_rent_on_spot(option.cluster, request.existing);
  const int spot = std::accumulate(free.begin(), free.end(), 0);
  int left = static_cast<int>(std::ceil(share * spot));
  if (left == 0 || (share < 1 && left == spot)) return {};
  const double before = option.hourly;
  std::vector<PlanLine> cluster;
  for (std::size_t i = 0; i < free.size(); ++i) {
    PlanLine line = option.cluster[i];
    const int moved = std::min(left, free[i]);
    line.count -= moved;
    left -= moved;
    if (line.count > 0) cluster.push_back(line);
    if (moved == 0) continue;
    const InstanceType* type = catalog.find(line.type);
    const auto rate = type != nullptr ? on_demand_rate(*type, line.zone) : std::nullopt;
    if (!rate) return {};
    const Offer offer{line.type, Market::on_demand, line.zone, *rate, moved};
    if (request.wanted_offer && !request.wanted_offer(*type, offer)) return {};
    cluster.push_back({line.type, Market::on_demand, line.zone, moved, *rate});
    option.hourly += moved * (rate->value - line.rate.value);
  }
  option.cluster = std::move(cluster);
  option.cost = option.hourly * option.time / 3600 + option.beside;
  option.risk.reset();
  option.added_cost += (option.hourly - before) * option.time / 3600;
  return option;
}

namespace {

std::string percent(double share) { return fmt::format("{:.4g} %", 100 * share); }

/// The least of the values that are kept so often, and how often.
std::optional<std::pair<double, double>> least_kept(const Spread& spread, double confidence) {
  for (const auto& [share, value] :
       {std::pair(0.5, spread.p50), std::pair(0.9, spread.p90), std::pair(0.95, spread.p95)}) {
    if (share >= confidence && value) return std::pair(share, *value);
  }
  return {};
}

/// To the cent above.
double rounded_up(double usd) { return std::ceil(100 * usd) / 100; }

}  // namespace

double expected_time(const PlanOption& option) {
  return option.risk ? option.risk->time.p50.value_or(std::numeric_limits<double>::infinity()) : option.time;
}

double expected_cost(const PlanOption& option) {
  return option.risk ? option.risk->cost.p50.value_or(std::numeric_limits<double>::infinity()) : option.cost;
}

std::optional<double> chance_kept(const PlanOption& option) {
  if (!option.risk || (!option.risk->in_time && !option.risk->in_budget)) return {};
  const auto share = [](const std::optional<Estimate>& part) { return part ? part->middle : 1; };
  return std::min({share(option.risk->in_time), share(option.risk->in_budget), option.risk->in_both.value_or(1)});
}

bool Weathering::keeps(const PlanOption& option) const {
  if (!request_.confidence) return true;
  return option.risk && chance_kept(option).value_or(1) >= *request_.confidence;
}

Result<Risk> whole_risk(const PlanRequest& request, const PlanOption& option, const Problem* problem,
                        const Candidate* candidate, Care care) {
  auto risk = request.risk(option, problem, candidate, care);
  if (!risk) return risk;
  for (auto* cost : {&risk->cost.p10, &risk->cost.p50, &risk->cost.p90, &risk->cost.p95}) {
    if (*cost) **cost += option.beside;
  }
  return risk;
}

Result<Risk> Weathering::risk_of(const Finalist& finalist, Care care) const {
  if (!finalist.placed) return whole_risk(request_, finalist.option, nullptr, nullptr, care);
  return whole_risk(request_, finalist.option, &sites_[finalist.placed->site], &finalist.placed->candidate, care);
}

Result<void> Weathering::glance(std::vector<Finalist>& finalists, std::size_t enough) {
  std::optional<Error> first;
  std::size_t kept = 0;
  double dearest = 0;
  for (Finalist& one : finalists) {
    if (kept >= enough && one.option.cost > dearest) break;
    if (!one.option.risk) {
      auto risk = risk_of(one, Care::glance);
      if (!risk) {
        if (!first) first = risk.error();
        ++refused_;
        if (&one == &finalists.front() && !request_.confidence) return unexpected(*first);
        continue;
      }
      one.option.risk = *std::move(risk);
      ++assessed_;
    }
    if (!keeps(one.option)) continue;
    ++kept;
    dearest = std::max(dearest, expected_cost(one.option));
  }
  if (assessed_ == 0 && first) return unexpected(*first);
  return {};
}

namespace {

/// First by what all machines cost, running ones too, as these train longer beside poor company; then, of those that
/// cost as little as the first, by chance and time.
void rank(std::vector<Finalist>& found) {
  constexpr double kSameCost = 1.005;
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return expected_cost(a.option) < expected_cost(b.option); });
  if (found.empty()) return;
  const double limit = expected_cost(found.front().option) * kSameCost;
  const auto same_cost =
      std::find_if(found.begin() + 1, found.end(), [&](const auto& one) { return expected_cost(one.option) > limit; });
  const auto worth = [](const Finalist& one) {
    return std::pair(std::round(100 * chance_kept(one.option).value_or(1)), -expected_time(one.option));
  };
  const auto best =
      std::max_element(found.begin(), same_cost, [&](const auto& a, const auto& b) { return worth(a) < worth(b); });
  std::rotate(found.begin(), best, best + 1);
}

}  // namespace

std::vector<Finalist> Weathering::nearly_kept(const std::vector<Finalist>& finalists, std::size_t most) const {
  constexpr double kGlanceError = 0.04;
  std::vector<Finalist> found;
  if (!request_.confidence) return found;
  std::copy_if(finalists.begin(), finalists.end(), std::back_inserter(found), [&](const Finalist& one) {
    return one.option.risk && chance_kept(one.option).value_or(1) >= *request_.confidence - kGlanceError;
  });
  rank(found);
  found.resize(std::min(found.size(), most));
  for (Finalist& one : found) {
    if (auto risk = risk_of(one, Care::whole)) one.option.risk = *std::move(risk);
    one.whole = true;
  }
  std::erase_if(found, [&](const Finalist& one) { return !keeps(one.option); });
  return found;
}

std::vector<Finalist> Weathering::kept(const std::vector<Finalist>& finalists) {
  constexpr double kClose = 1.06;  // a glance may be off by so much
  constexpr std::size_t kMostLooks = 6;
  std::vector<Finalist> found;
  std::copy_if(finalists.begin(), finalists.end(), std::back_inserter(found),
               [&](const Finalist& one) { return one.option.risk && keeps(one.option); });
  // A glance may also be a little too low.
  if (found.empty()) found = nearly_kept(finalists, kMostLooks);
  rank(found);
  while (!found.empty()) {
    const double limit = expected_cost(found.front().option) * kClose;
    for (std::size_t i = 0; i < std::min(found.size(), kMostLooks); ++i) {
      if (found[i].whole || expected_cost(found[i].option) > limit) continue;
      if (const auto risk = risk_of(found[i], Care::whole)) found[i].option.risk = *risk;
      found[i].whole = true;
    }
    std::erase_if(found, [&](const Finalist& one) { return !keeps(one.option); });
    rank(found);
    if (!found.empty() && found.front().whole) break;
  }
  return found;
}

std::string keepable(const Risk& risk, const PlanRequest& request) {
  const double wanted = *request.confidence;
  const Seconds elapsed = request.progress ? request.progress->elapsed : Seconds{0};
  const auto late = [&](double time) { return format_duration(Seconds(std::ceil(time)) + elapsed); };
  // No more miss one of two promises than miss the one and the other.
  if (request.deadline && request.budget)
    return wanted <= 0.9 && risk.time.p95 && risk.cost.p95
               ? fmt::format("; a deadline of {} and a budget of {:.2f} USD with {}", late(*risk.time.p95),
                             rounded_up(*risk.cost.p95), percent(0.9))
               : "";
  if (request.deadline) {
    const auto later = least_kept(risk.time, wanted);
    return later ? fmt::format("; a deadline of {} with {}", late(later->second), percent(later->first)) : "";
  }
  const auto dearer = least_kept(risk.cost, wanted);
  return dearer ? fmt::format("; a budget of {:.2f} USD with {}", rounded_up(dearer->second), percent(dearer->first))
                : "";
}

Infeasible Weathering::none_kept(const std::vector<Finalist>& finalists) const {
  const auto chance = [](const Finalist& one) { return one.option.risk ? chance_kept(one.option).value_or(1) : -1; };
  Finalist best = *std::max_element(finalists.begin(), finalists.end(),
                                    [&](const auto& a, const auto& b) { return chance(a) < chance(b); });
  // A glance may have it above what is wanted.
  if (best.option.risk && !best.whole) {
    if (auto risk = risk_of(best, Care::whole)) best.option.risk = *std::move(risk);
  }
  return {.binding = "confidence",
          .reason = fmt::format("wanted with {}; the likeliest of {} plans looked at keeps it with {}{}",
                                percent(*request_.confidence), assessed_, percent(std::max(0.0, chance(best))),
                                best.option.risk ? keepable(*best.option.risk, request_) : ""),
          .nearest = best.option};
}

}  // namespace mayfly
