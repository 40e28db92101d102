#include "drill/drill.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "drill/drill_parts.h"
#include "engine/process.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

using support::TempFolder;

const std::string kJournal = R"j({"format":"mayfly-journal/1","job":"count"}
{"t_s":1,"event":"committed","generation":1,"first_sample":0,"samples":100}
{"t_s":2,"event":"committed","generation":1,"first_sample":100,"samples":100}
{"t_s":2.1,"remark":"drill: w1 (none)"}
{"t_s":2.5,"event":"committed","generation":1,"first_sample":200,"samples":100}
{"t_s":3,"event":"lost","worker":1}
)j";

// From 2.1 to 2.5 s, then nothing.
TEST(Aftermath, WithoutACommitSinceTheLossThereIsNone) {
  const auto seen = aftermath(kJournal, Seconds(2.1), Seconds(3));
  EXPECT_EQ(seen.committed, 300);
  EXPECT_EQ(seen.redone, 0);
  EXPECT_FALSE(seen.next_commit);
  EXPECT_DOUBLE_EQ(seen.longest_pause.count(), 0.4);
}

// 300 were committed, the checkpoint had 200; from 3 s to 4.5 s no worker trained.
TEST(Aftermath, ARollBackIsWhatIsTrainedAgain) {
  const std::string journal = kJournal + R"({"t_s":3.2,"event":"rolled-back","generation":2,"sample":200}
{"t_s":4.5,"event":"committed","generation":2,"first_sample":200,"samples":100}
{"t_s":4.6,"event":"committed","generation":2,"first_sam)";
  const auto seen = aftermath(journal, Seconds(2.1), Seconds(3));
  EXPECT_EQ(seen.redone, 100);
  EXPECT_EQ(seen.committed, 300);
  ASSERT_TRUE(seen.next_commit);
  EXPECT_DOUBLE_EQ(seen.next_commit->count(), 1.5);
  EXPECT_DOUBLE_EQ(seen.longest_pause.count(), 2);
}

TEST(Aftermath, WhatWasIgnoredOrBeforeDoesNotCount) {
  const std::string journal =
      R"({"t_s":1,"event":"committed","generation":1,"first_sample":0,"samples":100}
{"t_s":1.5,"event":"rolled-back","generation":1,"sample":0}
{"t_s":5,"event":"committed","generation":1,"first_sample":0,"samples":50,"ignored":"not of this generation"}
)";
  const auto seen = aftermath(journal, Seconds(2), Seconds(3));
  EXPECT_EQ(seen.redone, 0);
  EXPECT_FALSE(seen.next_commit);
}

/// This test's own process plays controller and workers.
std::string processes(int workers) {
  const auto pid = ::getpid();
  Json list = Json::array();
  for (int worker = workers; worker >= 1; --worker)
    list.push_back({{"worker", worker}, {"slot", 0}, {"pid", pid}, {"started", start_ticks(pid)}});
  return Json{
      {"controller", pid}, {"controller_started", start_ticks(pid)}, {"workers", list}, {"servers", Json::array()}}
      .dump();
}

TEST(DrillVictims, AreHalfOfTheWorkersRoundedUpTheOldestFirst) {
  const TempFolder folder;
  ASSERT_TRUE(save_text(folder.path() / "processes.json", processes(3)));
  const auto half = drill_victims({.directory = folder.path()});
  ASSERT_TRUE(half) << half.error().message;
  ASSERT_EQ(half->size(), 2U);
  EXPECT_EQ((*half)[0].worker, 1);
  EXPECT_EQ(drill_victims({.directory = folder.path(), .all = true})->size(), 3U);
  EXPECT_EQ(drill_victims({.directory = folder.path(), .count = 1})->size(), 1U);
}

TEST(DrillVictims, MoreThanThereAreOrNoneIsAnError) {
  const TempFolder folder;
  EXPECT_FALSE(drill_victims({.directory = folder.path()}));
  ASSERT_TRUE(save_text(folder.path() / "processes.json", processes(1)));
  EXPECT_FALSE(drill_victims({.directory = folder.path(), .count = 2}));
  EXPECT_FALSE(drill_victims({.directory = folder.path(), .lose = DrillRequest::Lose::server}));
}

TEST(DrillVictims, AProcessThatHasOnlyTheNumberIsNotTouched) {
  const TempFolder folder;
  Json json = Json::parse(processes(1));
  json["workers"][0]["started"] = 1;
  ASSERT_TRUE(save_text(folder.path() / "processes.json", json.dump()));
  EXPECT_FALSE(drill_victims({.directory = folder.path(), .all = true}));
  json["controller_started"] = 1;
  ASSERT_TRUE(save_text(folder.path() / "processes.json", json.dump()));
  EXPECT_FALSE(drill_victims({.directory = folder.path(), .lose = DrillRequest::Lose::controller}));
}

}  // namespace
}  // namespace mayfly
