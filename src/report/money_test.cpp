// What a run has cost and saved, added up here a quarter of a second at a time, by nothing of the product's.

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "base/rng.h"
#include "control/controller.h"
#include "control/job.h"
#include "report/view.h"

namespace mayfly {
namespace {

constexpr double kQuarter = 0.25;
constexpr int kQuarters = 2000;  // of which the run ends before
const std::array<std::string, 2> kTypes{"a", "b"};
const std::array<std::string, 3> kZones{"", "y", "z"};

/// USD/h on demand; of zone z others.
double dear(const std::string& type, const std::string& zone) {
  return (type == "a" ? 4.0 : 9.0) + (zone == "z" ? 0.5 : 0);
}

Catalog catalog() {
  Catalog all;
  for (const auto& type : kTypes) {
    all.types.push_back({.name = type,
                         .on_demand = Price{.rate = {dear(type, "")}},
                         .zones = {{.zone = "z", .on_demand = Price{.rate = {dear(type, "z")}}}}});
  }
  return all;
}

struct Machine {
  MachineKind kind{};
  int from = 0;  ///< paid for, in quarters of a second
  int joins = 0;
  int to = kQuarters;
};

/// A random run, and what it comes to.
class Affair {
 public:
  explicit Affair(std::uint64_t seed) : rng_(seed), end_(kQuarters * 3 / 4 + rng_.below(200)) {
    for (int i = 3 + rng_.below(12); i > 0; --i) machines_.push_back(machine());
    for (const auto& type : kTypes) {
      for (const auto& zone : kZones) {
        for (const Market market : {Market::spot, Market::on_demand}) add_prices({type, zone, market});
      }
    }
    // One that boots and is gone before it joins: known by a charge at the price of that moment.
    charged_ = machine();
    charged_.kind.market = Market::spot;
    charged_.from = 100 + rng_.below(400);
    charged_.to = charged_.from + 1 + rng_.below(80);
  }

  double paid() const {
    double sum = standing_ * end_;
    for (const Machine& one : machines_) {
      for (int t = one.from; t < std::min(one.to, end_); ++t) sum += price(one.kind, t);
    }
    return sum * kQuarter / 3600 + charge();
  }
  double on_demand() const {
    double sum = standing_ * end_;
    for (const Machine& one : machines_) {
      for (int t = one.from; t < std::min(one.to, end_); ++t)
        sum += one.kind.market == Market::spot ? dear(one.kind.type, one.kind.zone) : price(one.kind, t);
    }
    for (int t = charged_.from; t < charged_.to; ++t) sum += dear(charged_.kind.type, charged_.kind.zone);
    return sum * kQuarter / 3600;
  }

  /// As the controller is told it.
  std::multimap<int, Event> events() const {
    std::multimap<int, Event> all;
    for (const auto& [kind, changes] : prices_) {
      for (const auto& [time, rate] : changes) {
        if (time > 0) all.emplace(time, Priced{kind.type, kind.zone, {rate}, kind.market});
      }
    }
    int worker = 0;
    for (const Machine& one : machines_) {
      ++worker;
      all.emplace(one.joins, Joined{.worker = worker,
                                    .type = one.kind.type,
                                    .zone = one.kind.zone,
                                    .market = one.kind.market,
                                    .price = {price(one.kind, one.joins)},
                                    .since = seconds(one.from)});
      if (one.to < kQuarters) all.emplace(one.to, Lost{worker});
    }
    all.emplace(charged_.to, Charged{.type = charged_.kind.type,
                                     .zone = charged_.kind.zone,
                                     .cost = {charge()},
                                     .market = charged_.kind.market,
                                     .time = seconds(charged_.to - charged_.from)});
    all.emplace(end_, Estimated{0});
    // Of what comes after the end nothing is paid for.
    all.emplace(kQuarters + 4, Joined{.worker = ++worker, .type = "a", .price = {5}, .since = seconds(kQuarters)});
    all.emplace(kQuarters + 8, Priced{.type = "a", .price = {7}});
    return all;
  }
  UsdPerHour standing() const { return {standing_}; }
  static Seconds seconds(int quarters) { return Seconds(quarters * kQuarter); }

 private:
  /// Prices change where nothing joins, for a machine is paid by its price from when it joins on and before.
  Machine machine() {
    Machine one{
        .kind = {kTypes[rng_.below(2)], kZones[rng_.below(3)], rng_.chance(0.5) ? Market::spot : Market::on_demand}};
    one.from = rng_.below(end_ / 10) * 10;
    one.joins = one.from + rng_.below(9);
    if (rng_.chance(0.6)) one.to = one.joins + 1 + rng_.below(600);
    return one;
  }
  void add_prices(const MachineKind& kind) {
    auto& changes = prices_[kind];
    changes[0] = 1 + 3 * rng_.uniform();
    for (int i = rng_.below(5); i > 0; --i) changes[rng_.below(end_ / 10) * 10] = 1 + 3 * rng_.uniform();
  }
  double price(const MachineKind& kind, int time) const {
    double rate = 0;
    for (const auto& [from, changed] : prices_.at(kind)) rate = from <= time ? changed : rate;
    return rate;
  }
  double charge() const { return price(charged_.kind, charged_.to) * (charged_.to - charged_.from) * kQuarter / 3600; }

  Rng rng_;
  int end_;
  double standing_ = 0.8;
  std::vector<Machine> machines_{};
  Machine charged_{};
  std::map<MachineKind, std::map<int, double>> prices_{};
};

/// The journal that the controller writes of it, and what it says was spent.
std::vector<std::string> journal_of(const Affair& affair, Usd& spent) {
  const Job job = unmeasured_job(64);
  Controller controller(job.shapes, make_policy(PolicyName::ideal, job.shapes, job.costs, {.most_machines = 64}),
                        {.standing = affair.standing()});
  controller.keep_journal(true);
  std::vector<std::string> lines{R"({"format":"mayfly-journal/1","standing_usd_per_hour":0.8})"};
  const auto step = [&](Seconds now, const Event& event) {
    const Reaction reaction = controller.step(now, event);
    lines.insert(lines.end(), reaction.records.begin(), reaction.records.end());
  };
  for (const auto& [time, event] : affair.events()) {
    step(Affair::seconds(time), event);
    step(Affair::seconds(time), Tick{});
  }
  spent = controller.spent();
  return lines;
}

TEST(Money, IsTheSumOverTheMachinesOwnSeconds) {
  const Catalog prices = catalog();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Affair affair(seed);
    Usd spent{};
    Chronicle chronicle;
    for (const std::string& line : journal_of(affair, spent)) chronicle.add(line);
    const Json view = view_json(chronicle, {.catalog = &prices});
    EXPECT_NEAR(spent.value, affair.paid(), 1e-9) << "the controller's, seed " << seed;
    EXPECT_NEAR(view["cost_usd"].get<double>(), affair.paid(), 1e-9) << "the report's, seed " << seed;
    EXPECT_NEAR(view["on_demand_cost_usd"].get<double>(), affair.on_demand(), 1e-9) << "on demand, seed " << seed;
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace mayfly
