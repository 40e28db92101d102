#include "engine/slurm_text.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

// As squeue of Slurm 22.05 prints them; the last element of an array has the array's own number.
constexpr const char* kQueue =
    "6|0|RUNNING|n1|spot|1:01|run-1234-7|None\n"
    "6|1|PENDING||spot|0:00|run-1234-7|Resources\n"
    "9|N/A|PENDING||ondemand|0:00|wrap|Priority\n"
    "8|0|PENDING||spot|0:00|run-1234-20|(ReqNodeNotAvail|x)\n"
    "3|0|RUNNING|n2|spot|0:09|run-12345-7|None\n"
    "4|0|RUNNING|n2|spot|0:09|run-1234-eval-7|None\n";

TEST(SlurmText, ElementsOfARunAreItsLaunches) {
  const auto elements = slurm_elements(kQueue, "run-1234");
  ASSERT_TRUE(elements) << elements.error().message;
  ASSERT_EQ(elements->size(), 3u) << "neither other jobs nor runs whose names begin alike";
  EXPECT_EQ((*elements)[0], (SlurmElement{.launch = 7,
                                          .id = "6_0",
                                          .state = "RUNNING",
                                          .node = "n1",
                                          .partition = "spot",
                                          .reason = "None",
                                          .elapsed = Seconds(61)}));
  EXPECT_EQ((*elements)[1].launch, 8) << "the array's first launch and the element's index";
  EXPECT_EQ((*elements)[1].reason, "Resources");
  EXPECT_EQ((*elements)[2].launch, 20);
  EXPECT_EQ((*elements)[2].reason, "(ReqNodeNotAvail|x)") << "free text to the end of the line";
}

TEST(SlurmText, AQueueThatCannotBeReadSaysNothingOfMachines) {
  const auto elements = slurm_elements("N/A|0|RUNNING|n1|spot|1:01|run-1234-7|None\n", "run-1234");
  ASSERT_FALSE(elements);
  EXPECT_NE(elements.error().message.find("want numbers of an array"), std::string::npos);
  EXPECT_EQ(slurm_elements("", "run-1234")->size(), 0u);
}

TEST(SlurmText, ANameIsOneWordAndTellsRunsApart) {
  EXPECT_EQ(slurm_name("my run|1-0a1b", 12), "my_run_1-0a1b-12");
  const auto elements = slurm_elements("6|2|RUNNING|n1|spot|1:01|my_run_1-0a1b-12|None\n", "my run|1-0a1b");
  ASSERT_TRUE(elements);
  EXPECT_EQ(elements->at(0).launch, 14);
}

TEST(SlurmText, StatesArePhases) {
  EXPECT_EQ(slurm_phase("PENDING"), Listed::Phase::waiting);
  EXPECT_EQ(slurm_phase("CONFIGURING"), Listed::Phase::starting);
  EXPECT_EQ(slurm_phase("RUNNING"), Listed::Phase::running);
  EXPECT_EQ(slurm_phase("COMPLETING"), Listed::Phase::ending);
  EXPECT_EQ(slurm_phase("NODE_FAIL"), Listed::Phase::over);
  EXPECT_EQ(slurm_phase("SOME_STATE_OF_THE_FUTURE"), Listed::Phase::running) << "nothing follows from it";
}

TEST(SlurmText, OnlyAProgramThatFailedCountsAsAFailure) {
  const auto kind = [](const char* state) {
    return slurm_ending({.state = state, .partition = "spot", .reason = "None"}).kind;
  };
  EXPECT_EQ(kind("FAILED"), Ending::Kind::failed);
  EXPECT_EQ(kind("OUT_OF_MEMORY"), Ending::Kind::failed);
  EXPECT_EQ(kind("COMPLETED"), Ending::Kind::finished);
  EXPECT_EQ(kind("PREEMPTED"), Ending::Kind::preempted);
  EXPECT_EQ(kind("CANCELLED"), Ending::Kind::preempted);
  EXPECT_EQ(slurm_ending({.state = "TIMEOUT", .partition = "spot", .reason = "TimeLimit"}).how,
            "TIMEOUT in partition spot (TimeLimit)");
}

TEST(SlurmText, TimesAreThoseOfSlurm) {
  EXPECT_EQ(slurm_time("1-02:03:04"), Seconds(86400 + 2 * 3600 + 3 * 60 + 4));
  EXPECT_EQ(slurm_time("2-00"), Seconds(2 * 86400)) << "days and hours";
  EXPECT_EQ(slurm_time("02:03:04"), Seconds(7384));
  EXPECT_EQ(slurm_time("3:04"), Seconds(184));
  EXPECT_EQ(slurm_time("90"), Seconds(5400)) << "minutes";
  for (const char* none : {"UNLIMITED", "INVALID", "", "1-", "-1", "1:2:3:4", "99999999-00:00:00"})
    EXPECT_EQ(slurm_time(none), std::nullopt) << none;
}

TEST(SlurmText, PartitionsSayHowTheyTakeMachinesBack) {
  const auto partitions = slurm_partitions(
      "PartitionName=spot AllowGroups=ALL Default=YES GraceTime=10 MaxTime=1-00:00:00 Nodes=n[1-3] PreemptMode=REQUEUE "
      "State=UP\nPartitionName=gpu Default=NO GraceTime=0 MaxTime=UNLIMITED Nodes=n1 PreemptMode=OFF State=DOWN\n");
  ASSERT_TRUE(partitions) << partitions.error().message;
  EXPECT_EQ(partitions->at(0), (SlurmPartition{.name = "spot",
                                               .state = "UP",
                                               .standard = true,
                                               .preempted = true,
                                               .grace = Seconds(10),
                                               .most_time = Seconds(86400),
                                               .nodes = "n[1-3]"}));
  EXPECT_EQ(partitions->at(1), (SlurmPartition{.name = "gpu", .state = "DOWN", .nodes = "n1"}));
  EXPECT_FALSE(slurm_partitions("slurm_load_partitions: Unable to contact slurm controller\n"));
}

TEST(SlurmText, LimitsAreTheClustersOrSlurmsOwn) {
  EXPECT_EQ(slurm_limits("KillWait                = 5 sec\nMaxArraySize            = 100001\n"),
            (SlurmLimits{.kill_wait = Seconds(5), .array_size = 100001}));
  EXPECT_EQ(slurm_limits("KillWait = soon\n"), (SlurmLimits{.kill_wait = Seconds(30), .array_size = 1001}));
}

TEST(SlurmText, SbatchAnswersWithANumberAndPerhapsACluster) {
  EXPECT_EQ(*submitted_array("17\n"), 17);
  EXPECT_EQ(*submitted_array("17;north\n"), 17);
  EXPECT_FALSE(submitted_array("Submitted batch job 17\n"));
}

}  // namespace
}  // namespace mayfly
