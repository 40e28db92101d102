#include "plan/bill.h"

#include <gtest/gtest.h>

#include "plan/planner.h"

namespace mayfly {
namespace {

/// 0.02 USD/GB between regions, 0.09 to the internet, 0.0001 USD for a gigabyte an hour.
Tariffs tariffs() {
  return parse_tariffs(R"(
format: mayfly-tariffs/1
sources: {s: {title: t, date: 2026-01-01}}
clouds:
  c:
    machines: {minimum_s: 60, step_s: 1, source: s}
    internet: {usd_per_gb: 0.09, free_gb: 100, source: s, free_source: s}
    between_regions: {usd_per_gb: 0.02, source: s}
    between_zones: {usd_per_gb: 0.02, source: s}
    within_region: {usd_per_gb: 0, source: s}
    storage: {usd_per_gb_month: 0.073, source: s}
  hourly: {machines: {minimum_s: 0, step_s: 3600, source: s}, within_region: {usd_per_gb: 0, source: s}}
)",
                       "t")
      .value();
}

InstanceType machine(const std::string& name, const std::string& cloud) {
  return {.name = name, .cloud = cloud, .region = "r1", .network = BytesPerSecond{1e9}};
}
Catalog catalog() { return {.types = {machine("h", "hourly"), machine("s", "c"), machine("w", "c")}}; }

/// A worker costs 0.001 USD a second, a server a tenth of that.
struct Cluster {
  std::vector<PlanLine> workers{{.type = "w", .market = Market::spot, .count = 2, .rate = {3.6}}};
  std::vector<PlanLine> servers{};
  BillQuestion question(Seconds training) const {
    return {.workers = workers, .servers = servers, .training = training, .boot = Seconds(100)};
  }
};

Freight freight() {
  return {.data = {.size = Bytes{100e9}, .at = {"c", "r2"}},
          .checkpoint = {.size = Bytes{1e9}, .at = {"c", "r1"}},
          .every = Seconds(1000),
          .keep = 3,
          .setup = Seconds(20)};
}

Bill bill(const BillQuestion& question, const Freight& freight) {
  return bill_of(question, freight, {}, catalog(), tariffs());
}
double cost(const BillPart& part) { return part.cost.value().value; }

// Workers boot 100 s, set up 20 and load 100 GB at 1 GB/s; the server is up at 120 s and waits until 220. Then an hour.
// Two copies of 100 GB from another region; four checkpoints to the own one. 3820 s are 1.0611 hours of storage.
TEST(Bill, ItsPartsAreEachWorkedOut) {
  Cluster cluster;
  cluster.servers = {{.type = "s", .count = 1, .rate = {0.36}}};
  const Bill all = bill(cluster.question(Seconds(3600)), freight());
  EXPECT_NEAR(cost(all.compute), 2 * 3.6 + 0.36, 1e-12);
  EXPECT_NEAR(cost(all.data), 2 * 0.1, 1e-12);
  EXPECT_NEAR(cost(all.start), 2 * 0.12 + 0.022, 1e-12);
  EXPECT_NEAR(cost(all.egress), 200 * 0.02, 1e-12);
  EXPECT_NEAR(cost(all.storage), (100 + 3) * 0.0001 * 3820 / 3600, 1e-12);
  EXPECT_TRUE(all.whole());
  EXPECT_NEAR(all.known().value, 7.56 + 0.2 + 0.262 + 4.0 + 0.0103 * 3820 / 3600, 1e-12);
}

// Nothing to load: 10 s of training are 110 s held and billed. Without the boot they are 10 s, billed as 60.
TEST(Bill, MachinesAreBilledForTheMinimum) {
  const Cluster cluster;
  const Freight nothing{.data = {.size = Bytes{0}}};
  EXPECT_NEAR(cost(bill(cluster.question(Seconds(10)), nothing).start), 2 * 0.1, 1e-12);
  BillQuestion at_once = cluster.question(Seconds(10));
  at_once.boot = Seconds(0);
  EXPECT_NEAR(cost(bill(at_once, nothing).start), 2 * 0.05, 1e-12);
  EXPECT_NEAR(cost(bill(at_once, nothing).compute), 2 * 0.01, 1e-12);
}

// 100 + 3600 s are two hours where hours are billed: 3500 s more than it is held.
TEST(Bill, MachinesAreBilledInTheStepsOfTheCloud) {
  Cluster cluster;
  cluster.workers = {{.type = "h", .count = 1, .rate = {3.6}}};
  const Bill all = bill(cluster.question(Seconds(3600)), {.data = {.size = Bytes{0}}});
  EXPECT_NEAR(cost(all.start), 0.1 + 3.5, 1e-12);
}

// A share of the data is 50 GB: 50 s, and all of it leaves its region once. A stream of three epochs: nothing before
// training, and three times all of it.
TEST(Bill, HowSamplesTravelDecides) {
  const Cluster cluster;
  Freight shared = freight();
  shared.load = Loading::share;
  const Bill half = bill(cluster.question(Seconds(3600)), shared);
  EXPECT_NEAR(cost(half.data), 2 * 0.05, 1e-12);
  EXPECT_NEAR(cost(half.egress), 100 * 0.02, 1e-12);
  Freight streamed = freight();
  streamed.load = Loading::stream;
  BillQuestion question = cluster.question(Seconds(3600));
  EXPECT_FALSE(bill(question, streamed).egress.cost) << "how often is it read?";
  question.epochs = 3;
  const Bill stream = bill(question, streamed);
  EXPECT_EQ(cost(stream.data), 0);
  EXPECT_NEAR(cost(stream.egress), 300 * 0.02, 1e-12);
}

// 100 GB at 0.3125 GB/s are 320 s of 2 x 0.001 USD.
TEST(Bill, ANetworkThatNobodyStatesIsAssumedAndSaid) {
  Catalog unlinked = catalog();
  unlinked.types[2].network.reset();
  const Cluster cluster;
  const Bill all = bill_of(cluster.question(Seconds(3600)), freight(), {}, unlinked, tariffs());
  EXPECT_NEAR(cost(all.data), 2 * 0.32, 1e-12);
  EXPECT_TRUE(all.data.assumes);
  EXPECT_EQ(all.data.notes.back(),
            "assumed: 2.5 Gbit/s, the least that a machine with GPUs has elsewhere, as nobody states the network of w");
  EXPECT_FALSE(all.start.assumes);
}

// One more spot worker boots and sets up for 120 s, loads for 100 and takes a third copy.
TEST(Bill, ReplacementsStartAndLoadToo) {
  const Cluster cluster;
  BillQuestion question = cluster.question(Seconds(3600));
  question.replacements = 1;
  const Bill all = bill(question, freight());
  EXPECT_NEAR(cost(all.start), 3 * 0.12, 1e-12);
  EXPECT_NEAR(cost(all.data), 3 * 0.1, 1e-12);
  EXPECT_NEAR(cost(all.egress), 300 * 0.02, 1e-12);
  EXPECT_NEAR(cost(all.compute), 7.2, 1e-12);
}

// 500 GB from another cloud, of which 100 of the month are free: 400 x 0.09.
TEST(Bill, WhatLeavesACloudIsPaidThere) {
  Cluster cluster;
  cluster.workers = {{.type = "h", .count = 1, .rate = {3.6}}};
  Freight far = freight();
  far.data = {.size = Bytes{500e9}, .at = {"c", ""}};
  far.checkpoint.at = {"local", ""};
  EXPECT_FALSE(bill(cluster.question(Seconds(3600)), far).egress.whole) << "what leaves 'hourly' is not known";
  far.checkpoint.at = {"hourly", "r1"};
  EXPECT_NEAR(cost(bill(cluster.question(Seconds(3600)), far).egress), 400 * 0.09, 1e-12);
  cluster.workers.front().type = "w";
  far.data.at = {"c", ""};
  EXPECT_FALSE(bill(cluster.question(Seconds(3600)), far).egress.cost) << "which region of 'c'?";
  // Checkpoints of 150 GB, once, to one's own storage.
  far.data.at = {"local", ""};
  far.checkpoint = {.size = Bytes{150e9}, .at = {"local", ""}};
  far.every = Seconds(7200);
  const Bill home = bill(cluster.question(Seconds(3600)), far);
  EXPECT_NEAR(cost(home.egress), 50 * 0.09, 1e-12);
  EXPECT_EQ(cost(home.storage), 0);
  // 1000 h are two months begun: 501 checkpoints, less 200 GB.
  far.checkpoint.size = Bytes{1e9};
  EXPECT_NEAR(cost(bill(cluster.question(Seconds(3600e3)), far).egress), (501 - 200) * 0.09, 1e-9);
}

TEST(Bill, WhatIsNotKnownIsSaid) {
  const Cluster cluster;
  BillQuestion question = cluster.question(Seconds(3600));
  question.boot.reset();
  const Bill all = bill(question, {});
  EXPECT_FALSE(all.whole());
  EXPECT_TRUE(all.compute.cost);
  EXPECT_FALSE(all.start.cost);
  EXPECT_FALSE(all.data.cost);
  EXPECT_EQ(all.start.notes, std::vector<std::string>{"not known: how long machines boot"});
  EXPECT_EQ(all.data.notes, std::vector<std::string>{"not known: the size of the data"});
  EXPECT_EQ(all.egress.notes,
            (std::vector<std::string>{"data: not known: where it is", "checkpoints: not known: where it is"}));
  EXPECT_EQ(all.storage.notes, all.egress.notes);
  EXPECT_EQ(all.known().value, 7.2);
}

// Two zones: each of four workers' rings crosses two borders with 2 x 3/4 of 1 GB, 10 times: 30 GB.
TEST(Bill, ARingThroughSeveralZonesPaysForItsBorders) {
  Cluster cluster;
  cluster.workers = {{.type = "w", .zone = "a", .count = 1, .rate = {3.6}},
                     {.type = "w", .zone = "b", .count = 3, .rate = {3.6}}};
  const auto bytes = ring_between_zones(cluster.workers, Bytes{1e9}, 10);
  ASSERT_TRUE(bytes);
  EXPECT_NEAR(bytes->value, 30e9, 1);
  Freight local = freight();
  local.data.at = {"c", "r1"};
  BillQuestion question = cluster.question(Seconds(3600));
  EXPECT_FALSE(bill(question, local).egress.cost);
  question.between_zones = bytes;
  EXPECT_NEAR(cost(bill(question, local).egress), 30 * 0.02, 1e-12);
  cluster.workers.back().zone = "a";
  EXPECT_EQ(ring_between_zones(cluster.workers, Bytes{1e9}, 10), Bytes{0});
  cluster.workers.back().zone = "";
  EXPECT_FALSE(ring_between_zones(cluster.workers, Bytes{1e9}, 10));
}

// Data come from another region for 0.02 USD/GB: machines that run have them, and are up.
TEST(Bill, RunningMachinesNeitherStartNorGetWhatTheyHave) {
  Cluster cluster;
  cluster.workers = {{.type = "w", .count = 4, .rate = {3.6}}};
  Freight far = freight();
  far.load = Loading::copy;
  BillQuestion question = cluster.question(Seconds(3600));
  const Bill all = bill(question, far);
  question.running = {{"w", 3}};
  const Bill one = bill(question, far);
  EXPECT_NEAR(cost(one.compute), cost(all.compute) / 4, 1e-12);
  EXPECT_GT(cost(one.egress), 0);
  EXPECT_LT(cost(one.egress), cost(all.egress));
  question.running = {{"w", 4}};
  const Bill none = bill(question, far);
  EXPECT_EQ(cost(none.compute) + cost(none.start) + cost(none.data), 0);
}

// A longer job costs no less, part by part.
TEST(Bill, GrowsWithTheTime) {
  const Cluster cluster;
  Bill before = bill(cluster.question(Seconds(1)), freight());
  for (double time = 10; time < 1e7; time *= 3) {
    const Bill after = bill(cluster.question(Seconds(time)), freight());
    EXPECT_LE(cost(before.compute), cost(after.compute));
    EXPECT_LE(cost(before.egress), cost(after.egress));
    EXPECT_LE(cost(before.storage), cost(after.storage));
    EXPECT_LE(before.known(), after.known());
    before = after;
  }
}

}  // namespace
}  // namespace mayfly
