#include "backtest/run_backtest.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/problems.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

/// A run of two p3.2xlarge of the market, 1 USD/h each: one is lost after 1,000 s of training and back 600 s later.
class Folder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) / ("run-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
    put("plan.json",
        R"({"format": "mayfly-plan/1", "cluster": [{"type": "p3.2xlarge", "market": "spot", "zone": null, "n": 2,
            "usd_per_hour": 1.0}], "servers": [], "time_s": 1500, "cost_usd": 0.9, "deadline_s": 3000,
            "deadline_probability": 0.95})");
    put("summary.json",
        R"({"format": "mayfly-summary/1", "end": "trained", "time_s": 2400, "cost_usd": 1.1, "preemptions": 1,
            "missed": []})");
    put("journal.jsonl", R"({"format":"mayfly-journal/1","job":"made"}
{"t_s":0,"event":"joined","worker":"w1","type":"p3.2xlarge","zone":"","market":"spot","usd_per_hour":1.0}
{"t_s":0,"event":"joined","worker":"w2","type":"p3.2xlarge","zone":"","market":"spot","usd_per_hour":1.0}
{"t_s":0,"command":"assign","generation":1,"data_parallel":2,"stages":1,"next_sample":0.0,"members":["w1","w2"]}
{"t_s":0,"event":"expected","ready_s":0}
{"t_s":1000,"event":"committed","generation":1,"first_sample":0.0,"samples":1000.0}
{"t_s":1000,"event":"lost","worker":"w2"}
{"t_s":1000,"command":"assign","generation":2,"data_parallel":1,"stages":1,"next_sample":1000.0,"members":["w1"]}
{"t_s":1000,"event":"expected","ready_s":1000}
{"t_s":1600,"event":"committed","generation":2,"first_sample":1000.0,"samples":300.0}
{"t_s":1600,"event":"joined","worker":"w3","type":"p3.2xlarge","zone":"","market":"spot","usd_per_hour":1.0}
{"t_s":1600,"command":"assign","generation":3,"data_parallel":2,"stages":1,"next_sample":1300.0,"members":["w1","w3"]}
{"t_s":1600,"event":"expected","ready_s":1600}
{"t_s":2400,"event":"committed","generation":3,"first_sample":1300.0,"samples":800.0}
{"t_s":2400,"command":"finish","why":"target"}
)");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const char* name, const std::string& text) { ASSERT_TRUE(save_text(folder_ / name, text)); }
  Result<RunBacktest> load() const { return load_run_backtest(folder_, support::shipped_catalog("default"), {}); }

  fs::path folder_;
};

using RunBacktestFolder = Folder;

// Trained: 2 x 1,000, 600 and 2 x 800 s of machines, so 2,100 s of both. The fixed cluster has 600 s saved of its first
// 1,000 and gives up; from 1,600 s on it starts for 120 s and trains the 1,500 s left, until 3,220 s. Paid: 2 USD/h for
// 1,000 and 1,620 s.
TEST_F(RunBacktestFolder, HoldsARunAgainstOtherRules) {
  const auto test = load();
  ASSERT_TRUE(test) << test.error().message;
  EXPECT_NEAR(test->work.count(), 2100, 1e-6);
  EXPECT_EQ(test->promised_time, Seconds(1500));
  EXPECT_EQ(test->promised_chance, 0.95);
  EXPECT_EQ(test->in_time, true);
  ASSERT_EQ(test->rules.size(), 3U);
  const RunRule& on_demand = test->rules[0];
  EXPECT_NEAR(on_demand.cost->value, 2 * 3.06 * 2100 / 3600, 1e-9);  // the catalogue's price
  const RunRule& fixed = test->rules[1];
  EXPECT_NEAR(fixed.run.time, 3220, 1e-6);
  EXPECT_EQ(fixed.in_time, false);
  EXPECT_NEAR(fixed.cost->value, 2 * 2620 / 3600.0, 1e-9);
  const RunRule& uniform = test->rules[2];
  EXPECT_EQ(uniform.rule, "uniform-progress");
  EXPECT_EQ(uniform.in_time, true);
}

TEST_F(RunBacktestFolder, OfARunWithoutAPlanNothingWasPromised) {
  fs::remove(folder_ / "plan.json");
  const auto test = load();
  ASSERT_FALSE(test);
  EXPECT_NE(test.error().message.find("promised nothing"), std::string::npos);
}

TEST_F(RunBacktestFolder, AStoppedRunTellsNothingOfTheRest) {
  put("summary.json", R"({"format": "mayfly-summary/1", "end": "stopped", "time_s": 100})");
  const auto test = load();
  ASSERT_FALSE(test);
  EXPECT_NE(test.error().message.find("ended 'stopped'"), std::string::npos);
}

}  // namespace
}  // namespace mayfly
