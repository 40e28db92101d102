#include "plan/quota.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/planner.h"
#include "plan/quota_groups.h"
#include "support/problems.h"

namespace mayfly {
namespace {

InstanceType machine(const char* type_name, double vcpus, const char* gpu = "", int gpus = 0,
                     const char* cloud = "aws") {
  InstanceType type{.name = type_name, .cloud = cloud, .region = "r", .vcpus = vcpus, .memory_gib = 64};
  if (gpus > 0) type.gpu = Gpu{.model = gpu, .memory_gib = 16};
  type.gpu_count = gpus;
  return type;
}

std::vector<FamilyQuota> families(std::string_view text) {
  const auto parsed = parse_quotas(text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? parsed->families : std::vector<FamilyQuota>();
}

TEST(Quota, IsWrittenAsCloudsNameIt) {
  const auto parsed = parse_quotas("g3.8xlarge=5, vcpus:P=96,spot-vcpus:p=192,*=8,gpus:A100=8,n1-standard-8+V100:1=4");
  ASSERT_TRUE(parsed);
  const std::vector<MachineCount> types{{"g3.8xlarge", 5}, {"*", 8}, {"n1-standard-8+V100:1", 4}};
  EXPECT_EQ(parsed->types, types);
  ASSERT_EQ(parsed->families.size(), 3u);
  EXPECT_EQ(name(parsed->families[0]), "vcpus:p");
  EXPECT_EQ(name(parsed->families[1]), "spot-vcpus:p");
  EXPECT_EQ(parsed->families[1].limit, 192);
  EXPECT_EQ(name(parsed->families[2]), "gpus:a100");
  for (const char* bad : {"vcpu:p=1", "vcpus:p", "vcpus:=3", "vcpus:p=-1", "vcpus:p=x", "gpus:A100=1.5",
                          "vcpus:p=1,vcpus:P=2", "spot:p=3", "vcpus:p=", "vcpus:p=1,,gpus:T4=2"})
    EXPECT_FALSE(parse_quotas(bad)) << bad;
}

TEST(Quota, CountsVcpusOfAFamilyAndGpusOfAModel) {
  const auto use = [](std::string_view text, const InstanceType& type) { return use_of(families(text).at(0), type); };
  const auto p5 = machine("p5en.48xlarge", 192, "H200-141GB", 8);
  EXPECT_EQ(use("vcpus:p=1", p5), 192);
  EXPECT_EQ(use("vcpus:p5=1", p5), 192);
  EXPECT_EQ(use("vcpus:p5en=1", p5), 192);
  EXPECT_EQ(use("vcpus:p4=1", p5), 0);
  EXPECT_EQ(use("vcpus:*48xlarge=1", p5), 192);
  EXPECT_EQ(use("vcpus:standard=1", p5), 0);
  EXPECT_EQ(use("vcpus:standard=1", machine("m5.xlarge", 4)), 4);
  EXPECT_EQ(use("vcpus:standard=1", machine("inf2.xlarge", 4)), 0);
  EXPECT_EQ(use("vcpus:g=1", machine("gr6.8xlarge", 32)), 32);
  // Other clouds name types otherwise: g2-standard-4 is not of AWS's G.
  EXPECT_EQ(use("vcpus:g=1", machine("g2-standard-4", 4, "L4-24GB", 1, "gcp")), 0);
  EXPECT_EQ(use("vcpus:g2-*=1", machine("g2-standard-4", 4, "L4-24GB", 1, "gcp")), 4);
  EXPECT_EQ(use("gpus:H200=1", p5), 8);
  EXPECT_EQ(use("gpus:h200-141gb=1", p5), 8);
  EXPECT_EQ(use("gpus:H20=1", p5), 0);
}

TEST(Quota, OfAUnitATypeCountsAgainstTheOneThatSaysMost) {
  const auto all = families("vcpus:p=96,vcpus:p5=0,spot-vcpus:p=8,gpus:H100=4,gpus:H100-80GB=2");
  const auto p5 = machine("p5.48xlarge", 192, "H100-80GB", 8);
  EXPECT_EQ(quotas_on(all, p5, Market::on_demand), (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(quotas_on(all, p5, Market::spot), (std::vector<std::size_t>{2}));
  EXPECT_EQ(quotas_on(all, machine("p3.2xlarge", 8, "V100-16GB", 1), Market::on_demand), (std::vector<std::size_t>{0}));
}

/// A random problem whose kinds take so many vCPUs each, and one or two sums over some of them.
Problem with_sums(const support::RandomProblem& shape, std::uint64_t seed, Profile& profile) {
  Problem problem = support::random_problem(shape, seed, profile);
  std::mt19937_64 random(seed);
  for (int g = 0; g < 1 + static_cast<int>(random() % 2); ++g) {
    QuotaGroup group{.name = "group"};
    double all = 0;
    for (const Kind& kind : problem.kinds) {
      const bool in = random() % 3 > 0;
      group.use.push_back(in ? std::exp2(static_cast<double>(random() % 4)) : 0);
      all += group.use.back() * kind.limit();
    }
    for (const ServerChoice& choice : problem.servers)
      group.server_use.push_back(random() % 2 > 0 ? choice.pool.count : 0);
    group.limit = std::floor(all * static_cast<double>(1 + random() % 8) / 10);
    problem.groups.push_back(group);
  }
  return problem;
}

struct SumFamily {
  const char* name;
  support::RandomProblem shape;
  int problems;
};
void PrintTo(const SumFamily& family, std::ostream* out) { *out << family.name; }

class Sums : public testing::TestWithParam<SumFamily> {};

// Of these problems a third to all have another best cluster than without the sums, or none.
TEST_P(Sums, ExactEqualsBruteForceAndNoSumIsExceeded) {
  int changed = 0;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(GetParam().problems); ++seed) {
    Profile profile;
    Problem problem = with_sums(GetParam().shape, seed, profile);
    const auto exact = exact_search(problem, {.keep = 3});
    const auto all = exhaustive_search(problem, {.keep = 3});
    ASSERT_EQ(exact.best.size(), all.best.size()) << "seed " << seed;
    ASSERT_TRUE(exact.optimal) << "seed " << seed;
    for (std::size_t i = 0; i < all.best.size(); ++i) {
      ASSERT_EQ(exact.best[i].counts, all.best[i].counts) << "seed " << seed << " rank " << i;
      ASSERT_EQ(exact.best[i].server, all.best[i].server) << "seed " << seed;
      ASSERT_TRUE(within_quotas(problem, exact.best[i].counts, exact.best[i].server)) << "seed " << seed;
    }
    for (const Candidate& one : window_search(problem).best)
      ASSERT_TRUE(within_quotas(problem, one.counts, one.server)) << "seed " << seed;
    const auto quickest = exact_search(problem, {.goal = Goal::fastest});
    const auto truly = exhaustive_search(problem, {.goal = Goal::fastest});
    ASSERT_EQ(quickest.best.size(), truly.best.size()) << "seed " << seed;
    if (!truly.best.empty()) {
      ASSERT_NEAR(quickest.best[0].time, truly.best[0].time, 1e-9 * truly.best[0].time);
    }
    problem.groups.clear();
    const auto free = exact_search(problem);
    changed += exact.best.empty() || free.best.empty() || free.best[0].counts != exact.best[0].counts ||
               free.best[0].server != exact.best[0].server;
  }
  EXPECT_GT(changed, GetParam().problems / 5);
}

INSTANTIATE_TEST_SUITE_P(
    Quotas, Sums,
    testing::Values(
        SumFamily{"spotdnn", {.kinds = 4, .quota = 4}, 400},
        SumFamily{"queue", {.predictor = Predictor::queue, .kinds = 3, .quota = 4, .servers = 2}, 200},
        SumFamily{
            "queue_epochs", {.predictor = Predictor::queue, .kinds = 3, .quota = 4, .servers = 2, .epochs = true}, 200},
        SumFamily{"additive", {.predictor = Predictor::additive, .kinds = 3, .quota = 4}, 200},
        SumFamily{
            "queue_ring_epochs",
            {.predictor = Predictor::queue, .kinds = 4, .quota = 4, .sync = Sync::bsp, .epochs = true, .ring = true},
            400},
        SumFamily{"queue_ring_scaled",
                  {.predictor = Predictor::queue,
                   .kinds = 3,
                   .quota = 4,
                   .sync = Sync::bsp,
                   .epochs = true,
                   .ring = true,
                   .scale_batch = true},
                  200}),
    [](const auto& family) { return std::string(family.param.name); });

/// p3.2xlarge (8 vCPUs) and g4dn.4xlarge (16), spot and on demand, with one server m5.xlarge, not counted anywhere.
struct Choices {
  Profile profile = support::shipped_profile("spotdnn-resnet110");
  Catalog catalog = support::shipped_catalog("default");
  PlanRequest request{};

  Choices() {
    std::erase_if(catalog.types, [](const InstanceType& type) {
      return type.name != "p3.2xlarge" && type.name != "g4dn.4xlarge" && type.name != "m5.xlarge";
    });
    catalog.server_type = "m5.xlarge";
    request.target = ToLoss{0.8};
    request.deadline = Seconds{2600};
    request.servers = {{"m5.xlarge", 1}};
    request.exchanges = {Meeting::servers};
    request.retired = true;
    request.frontier = false;
  }
  Result<std::variant<Plan, Infeasible>> plan() const { return make_plan(profile, catalog, request); }
};

/// The least cost over every number of each type in each market, with the quotas' sums added up here.
std::optional<double> least_cost(const Choices& all, int p, int spot_p, int g, int spot_g) {
  PlanRequest free = all.request;
  free.families.clear();
  free.default_quota = 8;
  const auto made = make_problems(all.profile, all.catalog, free);
  const Problem& problem = made->problems.at(0);
  Evaluator evaluator(problem);
  const auto kind = [&](const char* type) { return problem.kinds[0].name == type ? 0u : 1u; };
  const auto price = [&](const char* type, Market market) { return all.catalog.find(type)->price(market)->rate.value; };
  std::optional<double> least;
  for (int a = 0; 8 * a <= p; ++a) {
    for (int b = 0; 8 * b <= spot_p; ++b) {
      for (int c = 0; 16 * c <= g; ++c) {
        for (int d = 0; 16 * d <= spot_g; ++d) {
          if (a + b + c + d == 0) continue;
          std::vector<int> counts(2);
          counts[kind("p3.2xlarge")] = a + b;
          counts[kind("g4dn.4xlarge")] = c + d;
          Candidate made_of;
          if (!evaluator.evaluate(counts, 0, made_of) || made_of.time > all.request.deadline->count()) continue;
          const double hourly = problem.servers[0].hourly.value + a * price("p3.2xlarge", Market::on_demand) +
                                b * price("p3.2xlarge", Market::spot) + c * price("g4dn.4xlarge", Market::on_demand) +
                                d * price("g4dn.4xlarge", Market::spot);
          const double cost = hourly * made_of.time / 3600;
          least = std::min(least.value_or(cost), cost);
        }
      }
    }
  }
  return least;
}

TEST(Quota, PlansAreTheCheapestOverAllTypesAndMarketsThatTheSumsAllow) {
  Choices choices;
  std::mt19937_64 random(1);
  int found = 0, split = 0;
  for (int i = 0; i < 60; ++i) {
    const auto vcpus = [&](int each) { return each * static_cast<int>(random() % 5) + static_cast<int>(random() % 8); };
    const int p = vcpus(8), spot_p = vcpus(8), g = vcpus(16), spot_g = vcpus(16);
    choices.request.families =
        families(fmt::format("vcpus:p={},spot-vcpus:p={},vcpus:g={},spot-vcpus:g={}", p, spot_p, g, spot_g));
    const auto least = least_cost(choices, p, spot_p, g, spot_g);
    const auto answer = choices.plan();
    ASSERT_TRUE(answer) << answer.error().message;
    const auto* plan = std::get_if<Plan>(&*answer);
    ASSERT_EQ(plan != nullptr, least.has_value()) << i;
    if (plan == nullptr) {
      EXPECT_EQ(std::get<Infeasible>(*answer).binding, "quota") << i;
      continue;
    }
    EXPECT_NEAR(plan->chosen.cost, *least, 1e-9) << i;
    EXPECT_TRUE(plan->optimal);
    EXPECT_TRUE(within_families(plan->chosen, choices.catalog, choices.request));
    ++found;
    split += plan->chosen.cluster.size() > 1;
  }
  EXPECT_GT(found, 20);
  EXPECT_GT(split, 5);  // of both types, or of one in both markets
}

// Two g4dn.4xlarge on the spot market and none on demand, of four machines that the type's own quota allows: 2 x 16
// = 32.
TEST(Quota, AQuotaOfATypeHoldsBesideTheSums) {
  Choices choices;
  choices.request.quota = {{"g4dn.4xlarge", 4}, {"p3.2xlarge", 0}};
  choices.request.deadline = Seconds{1e6};
  choices.request.families = families("vcpus:g=64,spot-vcpus:g=47");
  auto made = make_problems(choices.profile, choices.catalog, choices.request);
  ASSERT_TRUE(made);
  const Problem& problem = made->problems.at(0);
  ASSERT_EQ(problem.kinds.size(), 2u);  // spot and on demand
  EXPECT_EQ(problem.kinds[0].limit(), 2);
  EXPECT_EQ(problem.kinds[1].limit(), 4);
  EXPECT_TRUE(within_quotas(problem, {2, 2}, 0));
  EXPECT_FALSE(within_quotas(problem, {2, 3}, 0));
  EXPECT_EQ(room_for(problem, {1, 1}, 0, 1), 2);
  EXPECT_EQ(room_for(problem, {1, 1}, 0, 0), 1);
}

TEST(Quota, BindsOnlyWhereWithoutItThereWasAPlan) {
  Choices choices;
  choices.request.families = families("vcpus:p=0,spot-vcpus:p=0,vcpus:g=0,spot-vcpus:g=0");
  auto answer = choices.plan();
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<Infeasible>(*answer).binding, "quota");
  choices.request.families = families("vcpus:p=800,spot-vcpus:p=800,vcpus:g=1600,spot-vcpus:g=1600");
  choices.request.deadline = Seconds{1};
  answer = choices.plan();
  EXPECT_EQ(std::get<Infeasible>(*answer).binding, "deadline");
  choices.request.wanted = [](const InstanceType&) { return false; };
  answer = choices.plan();
  EXPECT_EQ(std::get<Infeasible>(*answer).binding, "gpu");
  choices.request.families = families("gpus:X9000=4");
  EXPECT_FALSE(choices.plan());
}

// Without a sum over it a type has the default of 16; with one that allows 24, 24.
TEST(Quota, ASumReplacesTheDefaultOfATypeNotItsOwnQuota) {
  PlanRequest request;
  auto type = machine("p3.2xlarge", 8, "V100-16GB", 1);
  request.families = families("spot-vcpus:p=192");
  std::vector<int> mosts;
  for (const auto& quota : {std::optional<int>(), std::optional<int>(5)}) {
    type.quota = quota;
    for (const Market market : {Market::spot, Market::on_demand}) mosts.push_back(most_of(type, request, market));
  }
  EXPECT_EQ(mosts, (std::vector<int>{24, 16, 5, 5}));
}

// Each star could be tried at each character: 31 of them in a name of 40 took longer than anybody waits.
TEST(Quota, PatternsOfManyStarsAreReadInNoTime) {
  std::string stars;
  for (int i = 0; i < 31; ++i) stars += "*a";
  const auto type = machine(std::string(200, 'a').c_str(), 8);
  const auto use = [&](const std::string& pattern) { return use_of(families("vcpus:" + pattern + "=1").at(0), type); };
  EXPECT_EQ(use(stars + "b"), 0);
  EXPECT_EQ(use(stars), 8);
  EXPECT_EQ(use("a**"), 8);
  const auto mixed = machine("abcabd", 8);
  for (const char* pattern : {"*", "ab*", "*abd", "a*d", "abcabd*", "*b*b*", "*c*", "a*a*"})
    EXPECT_EQ(use_of(families(fmt::format("vcpus:*{}=1", pattern)).at(0), mixed), 8) << pattern;
  for (const char* pattern : {"*abc", "abd*", "a*c", "*e*", "abcabd*d", "b*"})
    EXPECT_EQ(use_of(families(fmt::format("vcpus:{}=1", pattern)).at(0), mixed), 0) << pattern;
}

}  // namespace
}  // namespace mayfly
