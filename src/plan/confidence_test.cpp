#include "plan/confidence.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

/// A machine costs 1 USD/h on the spot market and 3 on demand, in zone b 4.
Catalog two_zones() {
  InstanceType type{.name = "w", .cloud = "c", .on_demand = Price{{3.0}}, .spot = Price{{1.0}}};
  type.zones = {{.zone = "a", .spot = Price{{1.0}}}, {.zone = "b", .on_demand = Price{{4.0}}, .spot = Price{{1.0}}}};
  return {.name = "two zones", .types = {type}};
}

PlanOption four(const std::string& zone) {
  return {.cluster = {{"w", Market::spot, zone, 4, {1.0}}}, .time = 3600, .cost = 4, .hourly = 4, .added_cost = 4};
}

TEST(PartlyOnDemand, PaysWhatItsZoneTakes) {
  const auto half = partly_on_demand(four("b"), two_zones(), {}, 0.5);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->cluster,
            (std::vector<PlanLine>{{"w", Market::spot, "b", 2, {1.0}}, {"w", Market::on_demand, "b", 2, {4.0}}}));
  EXPECT_DOUBLE_EQ(half->cost, 2 + 8);
  EXPECT_DOUBLE_EQ(partly_on_demand(four("a"), two_zones(), {}, 1)->cost, 12);
}

TEST(PartlyOnDemand, TakesNoOfferThatTheJobDoesNot) {
  PlanRequest cheap;
  cheap.wanted_offer = [](const InstanceType&, const Offer& offer) { return offer.rate.value <= 3; };
  EXPECT_TRUE(partly_on_demand(four("a"), two_zones(), cheap, 0.5));
  EXPECT_FALSE(partly_on_demand(four("b"), two_zones(), cheap, 0.5));
}

TEST(PartlyOnDemand, LeavesRunningMachinesAlone) {
  PlanRequest more;
  more.existing = {{"w", 3}};
  EXPECT_EQ(partly_on_demand(four("a"), two_zones(), more, 1)->cluster,
            (std::vector<PlanLine>{{"w", Market::spot, "a", 3, {1.0}}, {"w", Market::on_demand, "a", 1, {3.0}}}));
  more.existing = {{"w", 4}};
  EXPECT_FALSE(partly_on_demand(four("a"), two_zones(), more, 1));
}

/// Beside the running machines one that is cheap, and slow: the others are often away then, and not paid.
TEST(Weathering, PrefersNothingToWhatMakesTheRunLonger) {
  PlanRequest request{.deadline = Seconds(7200), .confidence = 0.9};
  request.risk = [](const PlanOption& option, const Problem*, const Candidate*, Care) -> Result<Risk> {
    const bool alone = option.added_cost == 0;
    return Risk{.in_time = Estimate{.middle = 0.95},
                .time = {.p50 = alone ? 500.0 : 3600.0},
                .cost = {.p50 = alone ? 1.0 : 5.5}};
  };
  PlanOption nothing = four("a"), company = four("a");
  nothing.cost = 1;
  nothing.added_cost = 0;
  company.cost = 8;
  company.added_cost = 0.4;
  std::vector<Finalist> finalists{{.option = nothing}, {.option = company}};
  const std::vector<Problem> none;
  Weathering weathering(none, request);
  ASSERT_TRUE(weathering.glance(finalists, 3));
  const auto kept = weathering.kept(finalists);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept.front().option.added_cost, 0);
  EXPECT_TRUE(kept.front().whole);
}

TEST(Chance, OfTimeAndMoneyIsThatOfBoth) {
  PlanOption option;
  EXPECT_FALSE(chance_kept(option));
  option.risk = Risk{.in_time = Estimate{.middle = 0.95}, .in_budget = Estimate{.middle = 0.92}, .in_both = 0.88};
  EXPECT_DOUBLE_EQ(*chance_kept(option), 0.88);
}

}  // namespace
}  // namespace mayfly
