#include "web/answers.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

const std::string kData = MAYFLY_SOURCE_DIR "/data/";

Answers shipped() {
  return Answers({.profiles = {{"resnet", kData + "profiles/spotdnn-resnet110.json"},
                               {"bert", kData + "profiles/parcae-bert.json"},
                               {"broken", kData + "catalogs/spotdnn.yaml"}},
                  .catalogs = {{"default", kData + "catalogs/spotdnn.yaml"}, {"wide", kData + "catalogs/default.yaml"}},
                  .traces = {{"calm", kData + "traces/calm.json"}},
                  .gpus = load_catalog(kData + "gpus.yaml").value(),
                  .weather = load_weather(kData + "weather.yaml").value()});
}

std::string why_not(const Result<Json>& answer) { return answer ? "an answer" : answer.error().message; }

TEST(Answers, APlanIsTheCommandLinesPlan) {
  Answers answers = shipped();
  const auto plan = answers.plan(R"({"profile":"resnet","loss":0.8,"deadline_s":2600,"markets":["spot"]})");
  ASSERT_TRUE(plan) << why_not(plan);
  EXPECT_EQ((*plan)["format"], "mayfly-plan/1");
  EXPECT_EQ((*plan)["feasible"], true);
  EXPECT_LE((*plan)["time_s"], 2600);
  // The loss falls along the way, to the target.
  EXPECT_NEAR((*plan)["course"].back()["loss"].get<double>(), 0.8, 1e-6);
  EXPECT_GT((*plan)["course"][0]["loss"], (*plan)["course"].back()["loss"]);
}

TEST(Answers, NoPlanIsAnAnswerToo) {
  Answers answers = shipped();
  const auto plan = answers.plan(R"({"profile":"resnet","loss":0.8,"deadline_s":1})");
  ASSERT_TRUE(plan) << why_not(plan);
  EXPECT_EQ((*plan)["feasible"], false);
  EXPECT_EQ((*plan)["binding"], "deadline");
}

TEST(Answers, AReplayHasACurveForEachPolicy) {
  Answers answers = shipped();
  const auto replay =
      answers.replay(R"({"profile":"bert","catalog":"wide","trace":"calm","policies":["checkpoint","liveput"]})");
  ASSERT_TRUE(replay) << why_not(replay);
  ASSERT_EQ((*replay)["policies"].size(), 2u);
  for (const Json& policy : (*replay)["policies"]) {
    EXPECT_NEAR(policy["progress"]["samples"].back().get<double>(), policy["samples"].get<double>(), 1);
    EXPECT_NEAR(policy["money"]["usd"].back().get<double>(), policy["cost_usd"].get<double>(),
                0.01 * policy["cost_usd"].get<double>());
  }
}

TEST(Answers, AQuestionThatIsWrongIsToldWhere) {
  Answers answers = shipped();
  const auto plan = [&](const char* text) { return why_not(answers.plan(text)); };
  const auto replay = [&](const char* text) { return why_not(answers.replay(text)); };
  EXPECT_EQ(plan("[]"), "want a JSON object");
  EXPECT_EQ(plan("{"), "want a JSON object");
  EXPECT_EQ(plan((R"({"profile":)" + std::string(30'000, '[') + std::string(30'000, ']') + "}").c_str()),
            "want a JSON object");
  EXPECT_EQ(plan(R"({"profile":"resnet","loss":1e300})"), "loss: 1e+300, want a number from 1e-12 to 1e+12");
  EXPECT_EQ(plan(R"({"profile":"resnet","deadlin_s":1})"), "unknown key \"deadlin_s\" (did you mean 'deadline_s'?)");
  EXPECT_EQ(plan(R"({"loss":1})"), "profile: missing, want a name");
  EXPECT_EQ(plan(R"({"profile":"resnet"})"), "want exactly one of loss, epochs and steps");
  EXPECT_EQ(plan(R"({"profile":"resnet","loss":-1})"), "loss: -1, want a number from 1e-12 to 1e+12");
  EXPECT_EQ(plan(R"({"profile":"resnet","loss":1,"deadline_s":"6h"})"),
            "deadline_s: \"6h\", want a number from 0.001 to 1e+12");
  EXPECT_EQ(plan(R"({"profile":"../../../etc/passwd","loss":1})"),
            "profile: \"../../../etc/passwd\" is none of those here");
  EXPECT_EQ(plan(R"({"profile":"broken","loss":1})"), "profile: \"broken\" cannot be read");
  EXPECT_EQ(plan(R"({"profile":"resnet","loss":1,"markets":["black"]})").substr(0, 8), "markets:");
  EXPECT_EQ(replay(R"({"profile":"bert","trace":"calm","policies":[]})").substr(0, 18), "policies: missing,");
  EXPECT_EQ(replay(R"({"profile":"bert","trace":"calm","policies":["livepuz"]})"),
            "policies: \"livepuz\" is none (did you mean 'liveput'?)");
  EXPECT_EQ(replay(R"({"profile":"bert","trace":"calm","policies":["deadline"]})"),
            "policies: deadline needs samples and deadline_s");
}

TEST(Answers, ChoicesLeaveOutWhatCannotBeRead) {
  Answers answers = shipped();
  const Json choices = answers.choices();
  ASSERT_EQ(choices["profiles"].size(), 2u);
  EXPECT_EQ(choices["profiles"][0]["name"], "bert");
  EXPECT_TRUE(choices["profiles"][0]["losses"].is_null());
  const Json& losses = choices["profiles"][1]["losses"];
  EXPECT_LT(losses["from"], 0.8);
  EXPECT_GT(losses["to"], 0.8);
}

}  // namespace
}  // namespace mayfly
