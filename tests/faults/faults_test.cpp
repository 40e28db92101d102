#include "faults/faults.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mayfly {
namespace {

#ifdef MAYFLY_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Under the sanitizers a seed costs about ten times as much, so they see a tenth of them.
constexpr std::uint64_t kSeeds = kSanitized ? 1'000 : 10'000;

class Faults : public testing::TestWithParam<PolicyName> {};

std::vector<PolicyName> all_policies() {
  std::vector<PolicyName> all;
  for (const std::string& word : policy_names()) all.push_back(*policy_named(word));
  return all;
}

// The seeds are dealt out to the policies, so each meets a ninth of them.
TEST_P(Faults, NoneMakesTheControllerBreakItsPromises) {
  const auto policies = static_cast<std::uint64_t>(all_policies().size());
  std::int64_t commits = 0;
  std::int64_t rollbacks = 0;
  std::int64_t finished = 0;
  std::int64_t saved = 0;
  for (auto seed = static_cast<std::uint64_t>(GetParam()); seed < kSeeds; seed += policies) {
    const FaultRun run = fault_run(seed, GetParam());
    ASSERT_EQ(run.broken, "") << "seed " << seed << ", as a scenario:\n" << fault_report(run);
    commits += run.commits;
    rollbacks += run.rollbacks;
    finished += run.finished ? 1 : 0;
    saved += run.saved ? 1 : 0;
  }
  // A storm in which nothing happens proves nothing.
  EXPECT_GT(commits, static_cast<std::int64_t>(kSeeds / policies) * 20);
  EXPECT_GT(rollbacks, static_cast<std::int64_t>(kSeeds / policies) / 2);
  EXPECT_GT(finished, static_cast<std::int64_t>(kSeeds / policies) / 20);
  EXPECT_GT(saved, static_cast<std::int64_t>(kSeeds / policies) / 20);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, Faults, testing::ValuesIn(all_policies()), [](const auto& policy) {
  std::string word(name(policy.param));
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
});

TEST(FaultRun, IsTheSameForTheSameSeed) {
  const FaultRun one = fault_run(7, PolicyName::deadline);
  EXPECT_EQ(fault_report(one), fault_report(fault_run(7, PolicyName::deadline)));
  EXPECT_GT(one.scenario.events.size(), 100u);
}

// The report of a run, read as a scenario file, gives the same transcript.
TEST(FaultRun, ReportsAScenario) {
  const std::string report = fault_report(fault_run(11, PolicyName::persist));
  const auto scenario = parse_scenario(report, "report");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  EXPECT_EQ("# every promise kept\n" + scenario_text(*scenario) + "----\n" + transcript(*scenario), report);
}

}  // namespace
}  // namespace mayfly
