#include "plan/planner.h"

#include <gtest/gtest.h>

#include "support/problems.h"

namespace mayfly {
namespace {

using support::shipped_catalog;
using support::shipped_profile;

Plan planned(const Profile& profile, const Catalog& catalog, const PlanRequest& request) {
  auto answer = make_plan(profile, catalog, request);
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_TRUE(std::holds_alternative<Plan>(*answer));
  return std::get<Plan>(*answer);
}

Infeasible refused(const Profile& profile, const Catalog& catalog, const PlanRequest& request) {
  auto answer = make_plan(profile, catalog, request);
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_TRUE(std::holds_alternative<Infeasible>(*answer));
  return std::get<Infeasible>(*answer);
}

// lambdaDNN, MobileNet, 6 epochs in 1200 s: its own search takes the first feasible number of functions, 7 of 1728 MiB;
// charging the server, 8 of them are cheaper: 582 iterations, 911.29 s, (1.6875 x 8 x 1.66667e-5 + 2.6e-5) x 911.29 =
// .2287 USD.
TEST(Planner, FunctionsByLambdaDnnAndExactly) {
  const auto profile = shipped_profile("lambda-mobilenet");
  const auto catalog = shipped_catalog("default");
  PlanRequest request{.target = ForEpochs{6},
                      .deadline = Seconds(1200),
                      .predictor = Predictor::lambda,
                      .search = SearchMethod::window};
  EXPECT_EQ(planned(profile, catalog, request).chosen.fleet, (FunctionFleet{7, 1728}));
  request.search = SearchMethod::exact;
  const auto exact = planned(profile, catalog, request);
  EXPECT_EQ(exact.chosen.fleet, (FunctionFleet{8, 1728}));
  EXPECT_NEAR(exact.chosen.cost, .2287, 5e-5);
  EXPECT_NEAR(exact.chosen.time, 911.29, .01);
}

// 5 workers and 5 servers of the one type: 5000 s exactly, by Cynthia's bounded search.
TEST(Planner, CynthiaExample) {
  const auto profile = shipped_profile("cynthia-example");
  const auto catalog = shipped_catalog("default");
  PlanRequest request{.target = ToLoss{.6},
                      .deadline = Seconds(5000),
                      .predictor = Predictor::cynthia,
                      .search = SearchMethod::window,
                      .most_servers = 8};
  const auto plan = planned(profile, catalog, request);
  ASSERT_EQ(plan.chosen.cluster.size(), 1u);
  EXPECT_EQ(plan.chosen.cluster[0].type, "m4.xlarge");
  EXPECT_EQ(plan.chosen.cluster[0].count, 5);
  EXPECT_EQ(plan.chosen.servers[0].count, 5);
  EXPECT_NEAR(plan.chosen.time, 5000, 1e-6);
  request.search = SearchMethod::exact;
  const auto exact = planned(profile, catalog, request);
  EXPECT_TRUE(exact.optimal);
  EXPECT_LE(exact.chosen.cost, plan.chosen.cost);  // a better-connected server type is cheaper than five equal ones
}

// Fig. 9: three g3.16xlarge left, loss .9 after 1790 s of 2600: one more p3.2xlarge is the cheapest addition (761.8 s +
// 30 s).
TEST(Planner, ReplansWithTheCheapestAddition) {
  const auto profile = shipped_profile("spotdnn-resnet110");
  PlanRequest request{.target = ToLoss{.8}, .deadline = Seconds(2600), .predictor = Predictor::spotdnn};
  request.existing = {{"g3.16xlarge", 3}};
  request.progress = Progress{.reached = ToLoss{.9}, .elapsed = Seconds(1790)};
  request.quota = {{"p3.2xlarge", 4}, {"g4dn.4xlarge", 0}, {"g3.8xlarge", 0}};
  const auto plan = planned(profile, shipped_catalog("spotdnn"), request);
  EXPECT_EQ(plan.addition, (std::vector<MachineCount>{{"p3.2xlarge", 1}}));
  EXPECT_NEAR(plan.chosen.time, 761.8 + 30, .1);
  EXPECT_TRUE(plan.optimal);
}

TEST(Planner, SavesAgainstOnDemandAsTheSpotPricesDo) {
  const auto profile = shipped_profile("spotdnn-resnet110");
  PlanRequest request{
      .target = ToLoss{.8}, .deadline = Seconds(2600), .predictor = Predictor::spotdnn, .search = SearchMethod::window};
  request.quota = {{"p3.2xlarge", 0}, {"g4dn.4xlarge", 5}, {"g3.8xlarge", 5}, {"g3.16xlarge", 5}, {"p2.8xlarge", 5}};
  const auto plan = planned(profile, shipped_catalog("spotdnn"), request);
  // Table I: 17.75 on demand, 67.6 % saved at September-2022 prices.
  EXPECT_NEAR(*plan.on_demand_cost, 17.758, .001);
  EXPECT_NEAR(1 - plan.chosen.cost / *plan.on_demand_cost, .676, .001);
  ASSERT_TRUE(plan.all_fastest && plan.all_slowest);
  EXPECT_GT(plan.all_slowest->time, plan.chosen.time);
}

TEST(Planner, MachinesAndFunctionsCompeteInOneTable) {
  auto profile = shipped_profile("lambda-mobilenet");
  profile.types["g4dn.xlarge"] = {.batch = 64, .step = Seconds(1.5), .basis = Basis::given};
  const auto plan = planned(profile, shipped_catalog("default"),
                            {.target = ForEpochs{6}, .deadline = Seconds(4000), .quota = {{"*", 2}}});
  const auto is_fleet = [](const PlanOption& option) { return option.fleet.has_value(); };
  EXPECT_TRUE(std::any_of(plan.considered.begin(), plan.considered.end(), is_fleet));
  EXPECT_FALSE(std::all_of(plan.considered.begin(), plan.considered.end(), is_fleet));
  for (const auto& option : plan.considered) EXPECT_GE(option.cost, plan.chosen.cost);
}

TEST(Planner, FrontierFallsAndHoldsTheChosenPlan) {
  const auto plan = planned(shipped_profile("spotdnn-resnet110"), shipped_catalog("spotdnn"),
                            {.target = ToLoss{.8}, .deadline = Seconds(2700), .predictor = Predictor::spotdnn});
  ASSERT_GE(plan.frontier.size(), 3u);
  for (std::size_t i = 1; i < plan.frontier.size(); ++i) {
    EXPECT_GT(plan.frontier[i].time, plan.frontier[i - 1].time);
    EXPECT_LT(plan.frontier[i].cost, plan.frontier[i - 1].cost);
  }
  EXPECT_TRUE(std::any_of(plan.frontier.begin(), plan.frontier.end(),
                          [&](const auto& o) { return o.cluster == plan.chosen.cluster; }));
}

TEST(Planner, ClustersStayInOneCloudAndRegion) {
  const auto catalog = shipped_catalog("default");
  const auto plan = planned(shipped_profile("spotdnn-resnet110"), catalog,
                            {.target = ToLoss{.8}, .deadline = Seconds(1200), .quota = {{"*", 4}}});
  for (const auto& option : plan.frontier) {
    const auto* first = catalog.find(option.cluster.at(0).type);
    for (const auto* lines : {&option.cluster, &option.servers}) {
      for (const auto& line : *lines) {
        EXPECT_EQ(catalog.find(line.type)->cloud, first->cloud);
        EXPECT_EQ(catalog.find(line.type)->region, first->region);
      }
    }
  }
}

TEST(Planner, SaysWhichConstraintBinds) {
  const auto profile = shipped_profile("spotdnn-resnet110");
  const auto catalog = shipped_catalog("spotdnn");
  const PlanRequest base{.target = ToLoss{.8}, .deadline = Seconds(2600), .predictor = Predictor::spotdnn};

  PlanRequest hurried = base;
  hurried.deadline = Seconds(60);
  const auto deadline = refused(profile, catalog, hurried);
  EXPECT_EQ(deadline.binding, "deadline");
  ASSERT_TRUE(deadline.nearest.has_value());
  EXPECT_GT(deadline.nearest->time, 60);
  // The nearest promise can be kept.
  PlanRequest kept = base;
  kept.deadline = Seconds(deadline.nearest->time + 1);
  const auto near = make_plan(profile, catalog, kept);
  ASSERT_TRUE(near) << near.error().message;
  EXPECT_TRUE(std::holds_alternative<Plan>(*near));
  // In a minute no cluster gets below what the curve begins with, in 25 minutes one does.
  EXPECT_FALSE(deadline.nearest_loss.has_value());
  PlanRequest modest = base;
  modest.deadline = Seconds(1500);
  const auto lower = refused(profile, catalog, modest);
  ASSERT_TRUE(lower.nearest_loss.has_value());
  modest.target = ToLoss{*lower.nearest_loss};
  const auto answer = make_plan(profile, catalog, modest);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(std::holds_alternative<Plan>(*answer));

  PlanRequest few = base;
  few.quota = {{"*", 0}, {"g4dn.4xlarge", 1}};
  EXPECT_EQ(refused(profile, catalog, few).binding, "quota");
  few.quota = {{"*", 0}};
  EXPECT_EQ(refused(profile, catalog, few).binding, "quota");

  PlanRequest poor = base;
  poor.budget = Usd{.1};
  const auto budget = refused(profile, catalog, poor);
  EXPECT_EQ(budget.binding, "budget");
  EXPECT_GT(budget.nearest->cost, .1);

  PlanRequest dreamer = base;
  dreamer.target = ToLoss{.5};
  const auto loss = refused(profile, catalog, dreamer);
  EXPECT_EQ(loss.binding, "loss");
  EXPECT_GT(*loss.nearest_loss, .5);
}

TEST(Planner, RefusesWhatTheProfileCannotAnswer) {
  const auto catalog = shipped_catalog("default");
  EXPECT_FALSE(make_plan(shipped_profile("cynthia-example"), catalog, {.target = ForEpochs{3}}));
  EXPECT_FALSE(make_plan(shipped_profile("lambda-mobilenet"), catalog, {.target = ToLoss{1}}));
  EXPECT_FALSE(
      make_plan(shipped_profile("cynthia-example"), catalog, {.target = ToLoss{.6}, .predictor = Predictor::spotdnn}));
  const auto unknown =
      make_plan(shipped_profile("spotdnn-resnet110"), catalog, {.target = ToLoss{.8}, .quota = {{"g3.8xlrage", 1}}});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("did you mean 'g3.8xlarge'"), std::string::npos);
}

TEST(Kinds, TakeTheCheapestOffersFirstAndTheRunningMachinesBeforeThem) {
  // Quota 4 over both zones; 1 runs already and costs nothing more; 2 follow in b at 1 USD/h and 1 in a at 3.
  const Kind kind = make_kind({}, {{"t", Market::spot, "a", {3}, 2}, {"t", Market::spot, "b", {1}, 3}}, {{"t", 4, 1}});
  EXPECT_EQ(kind.limit(), 4);
  EXPECT_EQ(kind.existing, 1);
  EXPECT_EQ(kind.hourly, (std::vector<double>{0, 0, 1, 2, 5}));
}

// Llama 2 7B with Adam in fp32: 16 bytes of 6.74 billion parameters are 108 GB, which no GPU below 141 GB holds.
TEST(Planner, DoesNotOfferWhatTheNetworkDoesNotFitInto) {
  Profile profile{.name = "llama", .parameters = Bytes{27e9}, .exchange = Exchange::all_reduce};
  profile.sync = Sync::bsp;
  profile.recipe = {.precision = Precision::bf16,
                    .network = Network::transformer,
                    .parameters = 6.74e9,
                    .optimiser = Optimiser::adam,
                    .sequence = 2048};
  profile.types["p5en.48xlarge"] = {.batch = 8, .compute = Seconds(2)};
  const auto catalog = support::shipped_catalog("default");
  PlanRequest request{.target = ForSteps{1000}, .most_workers = 1};
  const auto answer = make_plan(profile, catalog, request);
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(std::holds_alternative<Plan>(*answer)) << std::get<Infeasible>(*answer).reason;
  const Plan& plan = std::get<Plan>(*answer);
  ASSERT_EQ(plan.chosen.cluster.size(), 1u);
  EXPECT_GE(catalog.find(plan.chosen.cluster[0].type)->gpu->memory_gib, 141);
  ASSERT_TRUE(plan.memory);
  EXPECT_GT(plan.memory->need.low, 108);
  request.wanted = [](const InstanceType& type) { return type.gpu && type.gpu->memory_gib <= 48; };
  const auto none = make_plan(profile, catalog, request);
  ASSERT_TRUE(none && std::holds_alternative<Infeasible>(*none));
  EXPECT_EQ(std::get<Infeasible>(*none).binding, "memory");
  EXPECT_NE(std::get<Infeasible>(*none).reason.find("ZeRO 3"), std::string::npos) << std::get<Infeasible>(*none).reason;
}

TEST(Planner, AnswersAtOnceWhereNothingIsLeftToTrain) {
  const Profile profile = support::shipped_profile("spotdnn-resnet110");
  const auto catalog = support::shipped_catalog("default");
  PlanRequest request{.target = ToLoss{0.8}, .progress = Progress{.reached = ToLoss{0.7}}};
  const auto done = make_plan(profile, catalog, request);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("nothing left to train"), std::string::npos);
  request = {.target = ToLoss{50}};
  const auto none = make_plan(profile, catalog, request);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("needs no training"), std::string::npos) << none.error().message;
}

// A running worker is free, a server that is not among the running machines is not.
TEST(Planner, ServersAreFreeOnlyWhereTheyRun) {
  const Profile profile = support::shipped_profile("spotdnn-resnet110");
  const auto catalog = support::shipped_catalog("default");
  PlanRequest request{.target = ToLoss{0.8},
                      .existing = {{"p3.2xlarge", 1}},
                      .exchanges = {Meeting::servers},
                      .servers = {{"m5.xlarge", 1}}};
  request.wanted = [](const InstanceType& type) { return type.name == "p3.2xlarge"; };
  request.most_workers = 1;
  const auto rented = make_plan(profile, catalog, request);
  ASSERT_TRUE(rented && std::holds_alternative<Plan>(*rented));
  const PlanOption& option = std::get<Plan>(*rented).chosen;
  const double server = catalog.find("m5.xlarge")->on_demand->rate.value;
  EXPECT_NEAR(option.added_cost, server * option.time / 3600, 1e-9);
  request.existing.push_back({"m5.xlarge", 1});
  const auto running = make_plan(profile, catalog, request);
  ASSERT_TRUE(running && std::holds_alternative<Plan>(*running)) << running.error().message;
  EXPECT_EQ(std::get<Plan>(*running).chosen.added_cost, 0);
}

}  // namespace
}  // namespace mayfly
