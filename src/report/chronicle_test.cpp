#include "report/chronicle.h"

#include <gtest/gtest.h>

#include "report/replay_json.h"

namespace mayfly {
namespace {

Chronicle told(std::initializer_list<const char*> lines) {
  Chronicle chronicle;
  for (const char* line : lines) chronicle.add(line);
  return chronicle;
}

const Happening* happening(const Chronicle& chronicle, const std::string& kind) {
  for (const Happening& one : chronicle.happenings()) {
    if (one.kind == kind) return &one;
  }
  return nullptr;
}

// Two machines for 10 s at 3.6 USD/h each: 2 * 10 s * 0.001 USD/s = 0.02 USD.
TEST(Chronicle, MoneyIsEachMachinesPriceForAsLongAsItIsThere) {
  const auto chronicle =
      told({R"({"format":"mayfly-journal/1","job":"j"})",
            R"({"t_s":0,"event":"joined","worker":"w1","type":"a","market":"spot","usd_per_hour":3.6})",
            R"({"t_s":0,"event":"joined","worker":"w2","type":"a","market":"spot","usd_per_hour":3.6})",
            R"({"t_s":10,"event":"lost","worker":"w2"})"});
  EXPECT_EQ(chronicle.job(), "j");
  EXPECT_NEAR(chronicle.cost().value, 0.02, 1e-12);
  EXPECT_NEAR(chronicle.rate().value, 3.6, 1e-12);
  EXPECT_EQ(chronicle.preemptions(), 1);
  ASSERT_EQ(chronicle.gone().size(), 1u);
  EXPECT_EQ(chronicle.gone()[0].end, "lost");
  EXPECT_EQ(chronicle.present().size(), 1u);
}

// Servers at 7.2 USD/h are paid from the start: 5 s * 0.002 USD/s.
TEST(Chronicle, WhatStandsIsPaidWithoutAnyMachine) {
  const auto chronicle = told({R"({"format":"mayfly-journal/1","job":"j","standing_usd_per_hour":7.2})",
                               R"({"t_s":5,"remark":"nobody came"})"});
  EXPECT_NEAR(chronicle.cost().value, 0.01, 1e-12);
}

// 0-1 s no worker is assigned: 2 idle. 1-2 s until the first step: 1 reconfiguring, 1 idle. 2-6 s: 1 useful, 1 idle.
// Lost at 6, 7 s after which the next generation goes on from the checkpoint at sample 20 of 50: of the 4 s for 50
// samples 3/5 (of the 40 that came last, at 10 a second: 3 of 4 s) were in vain.
TEST(Chronicle, MachineTimeIsUsefulUntilItIsThrownAway) {
  const auto chronicle =
      told({R"({"t_s":0,"event":"joined","worker":"w1","type":"a"})",
            R"({"t_s":0,"event":"joined","worker":"w2","type":"a"})",
            R"({"t_s":1,"command":"assign","generation":1,"data_parallel":1,"stages":1,"members":["w1"],"why":"x"})",
            R"({"t_s":2,"event":"committed","generation":1,"first_sample":0,"samples":10})",
            R"({"t_s":6,"event":"committed","generation":1,"first_sample":10,"samples":40})",
            R"({"t_s":6,"event":"checkpointed","sample":20})", R"({"t_s":6,"event":"lost","worker":"w1"})",
            R"({"t_s":6,"command":"assign","generation":2,"data_parallel":1,"stages":1,"members":["w2"]})",
            R"({"t_s":6,"event":"rolled-back","generation":2})",
            R"({"t_s":8,"event":"committed","generation":2,"first_sample":20,"samples":10})"});
  EXPECT_DOUBLE_EQ(chronicle.usage().idle, 2 + 1 + 4);
  EXPECT_DOUBLE_EQ(chronicle.usage().reconfigure, 1 + 2);
  EXPECT_DOUBLE_EQ(chronicle.usage().lost, 3);
  EXPECT_DOUBLE_EQ(chronicle.usage().useful, 1);
  EXPECT_DOUBLE_EQ(chronicle.samples(), 30);
  EXPECT_DOUBLE_EQ(chronicle.redone(), 30);
  const Happening* loss = happening(chronicle, "lost");
  ASSERT_NE(loss, nullptr);
  EXPECT_DOUBLE_EQ(loss->stall.value_or(Seconds(0)).count(), 2);
}

TEST(Chronicle, AStepInHandWhenTheShapeChangesCountsForNothing) {
  const auto chronicle =
      told({R"({"t_s":0,"event":"joined","worker":"w1","type":"a"})",
            R"({"t_s":0,"command":"assign","generation":1,"data_parallel":1,"stages":1,"members":["w1"]})",
            R"({"t_s":1,"event":"committed","generation":1,"first_sample":0,"samples":10})",
            R"({"t_s":3,"command":"pause","generation":2,"why":"too few"})"});
  EXPECT_DOUBLE_EQ(chronicle.usage().lost, 2);
  EXPECT_EQ(happening(chronicle, "pause")->why, "too few");
}

TEST(Chronicle, WhatARunSaysOfALossIsToldOnce) {
  const auto chronicle =
      told({R"({"t_s":0,"event":"joined","worker":"w1","type":"a"})",
            R"({"t_s":2,"remark":"w1 lost: killed by signal 9"})", R"({"t_s":2,"event":"lost","worker":"w1"})"});
  ASSERT_EQ(chronicle.happenings().size(), 2u);
  EXPECT_EQ(chronicle.happenings()[1].kind, "lost");
  EXPECT_EQ(chronicle.happenings()[1].text, "w1 lost: killed by signal 9");
  EXPECT_EQ(chronicle.happenings()[1].id, 1);
}

TEST(Chronicle, LossesAndValidationsAreReadings) {
  const auto chronicle = told({R"({"t_s":1,"reading":"training","sample":10,"loss":2.5})",
                               R"({"t_s":2,"reading":"validation","sample":20,"loss":2.25,"accuracy":0.5})",
                               R"({"t_s":3,"reading":"training","sample":30,"loss":null})"});
  EXPECT_EQ(chronicle.losses().values(), (std::vector<double>{2.5}));
  ASSERT_EQ(chronicle.validations().size(), 1u);
  EXPECT_EQ(chronicle.validations()[0].accuracy, 0.5);
}

TEST(Chronicle, WhatIsNoJournalIsCountedAndPassedOver) {
  const auto chronicle =
      told({"[1,2]", "{\"t_s\":-1,\"event\":\"lost\"}", "not JSON", "", R"({"t_s":1,"event":"lost"})",
            R"({"t_s":"x","event":"joined","worker":"w1"})", R"({"t_s":2,"event":"joined","worker":7,"type":[]})",
            R"({"t_s":2,"command":"assign","members":{"w1":1},"data_parallel":"many"})"});
  EXPECT_EQ(chronicle.broken(), 4);
  EXPECT_EQ(chronicle.lines(), 7);
  EXPECT_TRUE(chronicle.present().empty());
}

TEST(Chronicle, KeepsWhatCanBeShownOfALongJournal) {
  Chronicle chronicle;
  for (int i = 0; i < 20'000; ++i) {
    const std::string worker = "w" + std::to_string(i);
    const std::string time = std::to_string(i);
    chronicle.add(R"({"t_s":)" + time + R"(,"event":"joined","worker":")" + worker +
                  R"(","type":"a","market":"spot"})");
    chronicle.add(R"({"t_s":)" + time + R"(,"event":"lost","worker":")" + worker + R"("})");
  }
  EXPECT_EQ(chronicle.machines_total(), 20'000);
  EXPECT_EQ(chronicle.happenings_total(), 40'000);
  EXPECT_EQ(chronicle.gone().size(), 400u);
  EXPECT_EQ(chronicle.happenings().size(), 500u);
  EXPECT_EQ(chronicle.happenings().back().id, 39'999);
  EXPECT_LE(chronicle.counts().times().size(), 1200u);
}

/// A week of weather in which machines come and go, four at a time.
Trace weather() {
  Series series;
  for (int i = 0; i < 300; ++i)
    series.changes.push_back({.time = Seconds(2000 * i),
                              .added = i == 0       ? 16
                                       : i % 2 == 0 ? 4
                                                    : 0,
                              .removed = i % 2 == 0 ? 0 : 4,
                              .available = i % 2 == 0 ? 16 : 12});
  return {.name = "hand-made", .duration = Seconds(600'000), .series = {series}};
}

/// The replay keeps its own account while it makes the journal; reading the journal must come to the same figures.
TEST(Chronicle, ReadsFromAReplaysJournalWhatTheReplayCounted) {
  const Profile profile = load_profile(MAYFLY_SOURCE_DIR "/data/profiles/parcae-bert.json").value();
  const Catalog catalog = load_catalog(MAYFLY_SOURCE_DIR "/data/catalogs/default.yaml",
                                       load_catalog(MAYFLY_SOURCE_DIR "/data/gpus.yaml").value())
                              .value();
  for (const PolicyName policy : {PolicyName::checkpoint, PolicyName::reactive, PolicyName::liveput}) {
    const ReplayQuestion question{.policies = {policy}, .options = {.journal = true}};
    const auto answer = replay_answer(profile, catalog, weather(), question);
    ASSERT_TRUE(answer) << answer.error().message;
    const Replay& replay = answer->rows[0].replay;
    Chronicle chronicle;
    for (const std::string& line : replay.journal) chronicle.add(line);
    chronicle.add(R"({"t_s":600000,"remark":"the end of the trace"})");
    SCOPED_TRACE(name(policy));
    const double total = replay.machine_time.total();
    EXPECT_NEAR(chronicle.samples(), replay.samples, 1e-6 * replay.samples);
    EXPECT_NEAR(chronicle.cost().value, replay.cost.value, 1e-6 * replay.cost.value);
    EXPECT_EQ(chronicle.preemptions(), replay.preemptions);
    EXPECT_NEAR(chronicle.usage().total(), total, 1e-6 * total);
    EXPECT_NEAR(chronicle.usage().useful, replay.machine_time.useful, 0.002 * total);
    EXPECT_NEAR(chronicle.usage().lost, replay.machine_time.lost, 0.002 * total);
    EXPECT_NEAR(chronicle.usage().reconfigure, replay.machine_time.reconfigure, 0.002 * total);
    EXPECT_NEAR(chronicle.usage().idle, replay.machine_time.idle, 0.002 * total);
  }
}

}  // namespace
}  // namespace mayfly
