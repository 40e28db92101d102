#include "web/metrics.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(Metrics, AreNamedTypedAndLabelled) {
  RunView run{.directory = "/runs/a\"b", .life = RunLife::running, .status = RunStatus{.samples = 100}};
  run.status->time = Seconds(10);
  run.status->step = 4;
  run.status->left = Seconds(5);
  run.status->deadline = Seconds(60);
  run.status->machines = {{.stage = "ordered", .type = "g4dn.xlarge", .market = "spot"},
                          {.name = "w1", .type = "g4dn.xlarge", .market = "spot"},
                          {.name = "w2", .type = "g4dn.xlarge", .market = "spot"}};
  const std::string text = metrics_text(std::span(&run, 1));
  EXPECT_NE(
      text.find("# TYPE mayfly_samples_committed_total counter\nmayfly_samples_committed_total{run=\"a\\\"b\"} 100\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("mayfly_step_duration_seconds{run=\"a\\\"b\"} 2.5\n"), std::string::npos);
  // 60 s less 10 s gone and 5 s to go.
  EXPECT_NE(text.find("mayfly_deadline_slack_seconds{run=\"a\\\"b\"} 45\n"), std::string::npos);
  EXPECT_NE(text.find("mayfly_machines{run=\"a\\\"b\",type=\"g4dn.xlarge\",market=\"spot\"} 2\n"), std::string::npos);
  EXPECT_EQ(text.find("mayfly_cost_dollars_total"), std::string::npos) << "what is not known is left out";
}

TEST(Metrics, OfNoRunAreNothing) { EXPECT_EQ(metrics_text({}), ""); }

}  // namespace
}  // namespace mayfly
