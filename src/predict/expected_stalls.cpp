#include "predict/expected_stalls.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/normal.h"
#include "predict/cycles.h"
#include "predict/memory.h"

namespace mayfly {
namespace {

/// Differences below this share are no reason to choose.
constexpr double kSamePerDollar = 0.95;
/// Batches of two machines are alike within this.
constexpr double kSameBatch = 0.01;

/// The step grows by a factor; of the whole step, `beside` included, the growth is this share. The factor errs by its
/// logarithm's spread, and nothing is ever gained.
Estimate share_of_growth(double before, double growth, double beside, double relative_sd) {
  const auto share = [&](double factor) {
    const double more = before * (factor - 1);
    return more > 0 ? more / (before + more + beside) : 0.0;
  };
  const double factor = (before + growth) / before;
  Estimate estimate{.middle = share(factor)};
  if (relative_sd <= 0) return estimate;
  estimate.p10 = share(factor * std::exp(-kTenthAbove * relative_sd));
  estimate.p90 = share(factor * std::exp(kTenthAbove * relative_sd));
  return estimate;
}

/// A single GPU's step where the same job was measured on one of this type's GPUs with as many samples, and on the
/// type: then the stall is the difference of two measurements, as in Stash.
struct MeasuredPair {
  double alone = 0;
  double together = 0;
  double relative_sd = 0;
};
std::optional<MeasuredPair> measured_pair(const Profile& profile, const Catalog& catalog, const InstanceType& type) {
  const auto own = profile.types.find(type.name);
  if (own == profile.types.end() || !own->second.step || type.gpu_count < 2) return std::nullopt;
  for (const auto& [other_name, other] : profile.types) {
    const InstanceType* one = catalog.find(other_name);
    if (one == nullptr || one->gpu_count != 1 || one->gpu->model != type.gpu->model) continue;
    if (std::fabs(own->second.batch / (other.batch * type.gpu_count) - 1) > kSameBatch) continue;
    const auto alone = other.step ? other.step : other.compute;
    if (!alone || *alone > *own->second.step) continue;
    return MeasuredPair{.alone = alone->count(),
                        .together = own->second.step->count(),
                        .relative_sd = std::hypot(other.relative_sd, own->second.relative_sd)};
  }
  return std::nullopt;
}

/// Workers of each type, with and without the job's loader; the vectors do not grow once they are pointed to.
struct StallCrew {
  std::vector<Worker> bare{}, whole{};
  std::vector<Group> bare_groups{}, groups{};
  std::size_t slowest = 0;  ///< whose GPUs take longest to exchange
};

Result<StallCrew> crew_of(const Profile& profile, const Catalog& catalog, const std::vector<StallMachines>& machines) {
  StallCrew crew;
  Profile bare = profile;
  bare.loader = {};
  for (const StallMachines& some : machines) {
    for (const bool with_loader : {false, true}) {
      const auto worker = make_worker(with_loader ? profile : bare, *some.type, catalog);
      if (!worker) return unexpected(worker.error());
      (with_loader ? crew.whole : crew.bare).push_back(*worker);
    }
  }
  for (std::size_t i = 0; i < machines.size(); ++i) {
    crew.bare_groups.push_back({&crew.bare[i], machines[i].count});
    crew.groups.push_back({&crew.whole[i], machines[i].count});
    const auto exchange = [&](std::size_t k) { return crew.bare[k].interconnect.at(crew.bare[k].compute); };
    if (exchange(i) > exchange(crew.slowest)) crew.slowest = i;
  }
  return crew;
}

ExpectedStall interconnect_stall(const Profile& profile, const Catalog& catalog, const InstanceType& type,
                                 const Worker& worker, double compute, double network) {
  const double inside = worker.interconnect.at(compute);
  const auto links = links_among(profile, type);
  if (!links) return {.link = "none", .basis = worker.basis};
  if (const auto pair = measured_pair(profile, catalog, type)) {
    const double scale = (compute + inside) / pair->together;
    const double alone = scale * pair->alone, stall = scale * (pair->together - pair->alone);
    return {.seconds = stall,
            .share = share_of_growth(alone, stall, network, pair->relative_sd),
            .link = name(links->kind),
            .basis = Basis::measured};
  }
  return {.parts = exchange_among_gpus(compute, type.gpu_count, gradient_bytes(profile), *links, uneven(profile)),
          .seconds = inside,
          .share = share_of_growth(compute, inside, network, links->relative_sd),
          .link = name(links->kind)};
}

/// What the network's figures rest on. Without `ring` they are the machine's own link and what the job measured of it.
std::string_view network_name(const Profile& profile, const InstanceType& type, const Worker& worker) {
  if (!worker.ring && (profile.link.latency.count() > 0 || profile.link.overlap > 0)) return "measured";
  RingJob job;
  const auto known = profile.types.find(type.name);
  if (known != profile.types.end() && known->second.network) job.measured_rate = known->second.network->value;
  return ring_link_name(type, job);
}

/// A spot price below one on demand says nothing of the machines.
bool one_market(const StallRow& a, const StallRow& b) { return a.on_demand == b.on_demand; }

}  // namespace

Result<StallOutlook> stall_outlook(const Profile& profile, const Catalog& catalog,
                                   const std::vector<StallMachines>& machines) {
  const auto crew = crew_of(profile, catalog, machines);
  if (!crew) return unexpected(crew.error());
  Workload job = make_workload(profile);
  job.scale_batch = true;
  job.most_batch = std::numeric_limits<double>::infinity();
  const Speed bare = cluster_speed(Predictor::queue, job, crew->bare_groups, {});
  const Speed whole = cluster_speed(Predictor::queue, job, crew->groups, {});
  const InstanceType& type = *machines[crew->slowest].type;
  if (bare.updates_per_s <= 0)
    return fail("the network between machines of {} is not in catalogue '{}'", type.name, catalog.name);
  StallOutlook outlook{.machines = worker_count(crew->groups), .step = 1 / bare.updates_per_s, .batch = bare.batch};
  const Worker& worker = crew->bare[crew->slowest];
  const double compute = bare.breakdown[static_cast<std::size_t>(worker.compute_part)];
  const double inside = compute + worker.interconnect.at(compute);
  const double network = std::max(0.0, outlook.step - inside);
  outlook.interconnect = interconnect_stall(profile, catalog, type, worker, compute, network);
  outlook.alone = inside - outlook.interconnect.seconds;
  outlook.samples_per_s =
      with_band(whole.samples_per_s, relative_sd(Predictor::queue, ForSteps{1}, profile, crew->groups, whole));
  outlook.bottleneck = whole.bottleneck();
  outlook.basis = weakest_basis(crew->groups);
  if (outlook.machines < 2) return outlook;
  std::optional<RingLinks> links;
  for (const Worker& one : crew->bare) links = links ? slower_links(*links, ring_of(job, one)) : ring_of(job, one);
  ExchangeTime parts{.waiting = ring_stretch(*links, outlook.machines) * inside,
                     .latency = job.tensors * job.latency,
                     .traffic = ring_traffic(*links, outlook.machines)};
  parts.hidden = parts.waiting + parts.latency + parts.traffic - network;
  const double sd = ring_sd(*links, outlook.machines);
  outlook.network = ExpectedStall{.parts = parts,
                                  .seconds = network,
                                  .share = share_of_growth(inside, network, 0, sd),
                                  .link = network_name(profile, type, worker)};
  outlook.slowdown = with_band(outlook.step / inside, sd);
  if (outlook.slowdown.p10) outlook.slowdown.p10 = std::max(1.0, *outlook.slowdown.p10);
  return outlook;
}

std::optional<double> StallRow::samples_per_usd() const {
  if (!price || price->value <= 0) return std::nullopt;
  return one.samples_per_s.middle * 3600 / price->value;
}

StallTable stall_table(const Profile& profile, const Catalog& catalog, Market market, int several) {
  StallTable table;
  for (const InstanceType& type : catalog.types) {
    auto one = stall_outlook(profile, catalog, {{&type, 1}});
    if (!one) {
      table.no_speed += type.gpu ? 1 : 0;
      continue;
    }
    const auto fit = memory_fit(profile, catalog, type, one->batch);
    if (fit && fit->fits == Fits::no) {
      ++table.too_small;
      continue;
    }
    StallRow row{.type = &type, .one = *std::move(one)};
    const auto& asked = type.price(market);
    row.on_demand = !asked && type.on_demand;
    if (const auto& price = asked ? asked : type.on_demand) row.price = price->rate;
    if (auto more = stall_outlook(profile, catalog, {{&type, several}})) row.several = *std::move(more);
    table.rows.push_back(row);
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const StallRow& a, const StallRow& b) {
    return a.samples_per_usd().value_or(0) > b.samples_per_usd().value_or(0);
  });
  return table;
}

std::vector<DearerSlower> dearer_and_slower(const StallTable& table) {
  std::vector<DearerSlower> found;
  for (const StallRow& row : table.rows) {
    const StallRow* best = nullptr;
    for (const StallRow& other : table.rows) {
      const bool cheaper = row.price && other.price && *other.price < *row.price && one_market(row, other) &&
                           other.type->cloud == row.type->cloud;
      const double speed = other.one.samples_per_s.middle;
      if (!cheaper || speed <= row.one.samples_per_s.middle) continue;
      if (best == nullptr || speed > best->one.samples_per_s.middle) best = &other;
    }
    if (best == nullptr) continue;
    const Estimate &slow = row.one.samples_per_s, &fast = best->one.samples_per_s;
    found.push_back({&row, best, slow.p90.value_or(slow.middle) < fast.p10.value_or(fast.middle)});
  }
  const auto regret = [](const DearerSlower& one) {
    return one.row->price->value / one.than->price->value * one.than->one.samples_per_s.middle /
           one.row->one.samples_per_s.middle;
  };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    return a.certain != b.certain ? a.certain : regret(a) > regret(b);
  });
  return found;
}

std::vector<LargerForLess> larger_for_less(const StallTable& table) {
  std::vector<LargerForLess> found;
  for (const StallRow& row : table.rows) {
    const auto own = row.samples_per_usd();
    if (!own || !row.type->gpu) continue;
    LargerForLess best{.row = &row, .ratio = kSamePerDollar};
    for (const StallRow& other : table.rows) {
      const auto its = other.samples_per_usd();
      const bool smaller = its && one_market(row, other) && other.type->gpu && other.type->cloud == row.type->cloud &&
                           other.type->gpu->model == row.type->gpu->model &&
                           other.type->gpu_count < row.type->gpu_count;
      if (smaller && *own / *its < best.ratio) best = {&row, &other, *own / *its};
    }
    if (best.than != nullptr) found.push_back(best);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  return found;
}

std::vector<SpreadOut> spread_out(const Profile& profile, const Catalog& catalog, const StallTable& table) {
  std::vector<SpreadOut> found;
  for (const StallRow& one : table.rows) {
    for (const StallRow& part : table.rows) {
      const InstanceType &large = *one.type, &small = *part.type;
      if (!large.gpu || !small.gpu || large.gpu->model != small.gpu->model || large.cloud != small.cloud) continue;
      if (small.gpu_count >= large.gpu_count || large.gpu_count % small.gpu_count != 0) continue;
      SpreadOut pair{.type = &small, .machines = large.gpu_count / small.gpu_count, .one = &one};
      const auto many = stall_outlook(profile, catalog, {{&small, pair.machines}});
      if (!many || std::fabs(many->batch / one.one.batch - 1) > kSameBatch) continue;
      const double slower = one.one.samples_per_s.middle / many->samples_per_s.middle;
      // What both have in common, the GPUs, cancels; what is between machines, and in each, does not.
      const auto sd = [&](const InstanceType& type) {
        const auto links = links_among(profile, type);
        return links ? links->relative_sd : 0;
      };
      const double ring = many->slowdown.p90 ? std::log(*many->slowdown.p90 / many->slowdown.middle) / kTenthAbove : 0;
      pair.slowdown = with_band(slower, std::hypot(ring, sd(large), sd(small)));
      if (one.price && part.price && one.price->value > 0 && one_market(one, part))
        pair.cost = slower * pair.machines * part.price->value / one.price->value;
      found.push_back(pair);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.slowdown.middle > b.slowdown.middle; });
  return found;
}

}  // namespace mayfly
