#include "engine/exec_text.h"

#include <gtest/gtest.h>

#include "base/untrusted.h"

namespace mayfly {
namespace {

using Phase = Listed::Phase;

Listed only(std::string_view line) {
  const auto all = exec_listed(line);
  EXPECT_TRUE(all) << all.error().message;
  return all && all->size() == 1 ? all->front() : Listed{};
}

std::string refusal(std::string_view output) {
  const auto all = exec_listed(output);
  return all ? "" : all.error().message;
}

TEST(ExecText, AnOrderSaysWhatIsWantedInOneLine) {
  const Order order{.launch = 7, .role = {.type = "g5.xlarge", .zone = "a", .market = Market::on_demand}};
  const std::string line = exec_order(order, "run-1", "echo 'a\nb'");
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "whatever the command holds";
  const Json json = parsed_json(line);
  EXPECT_EQ(json["launch"], 7);
  EXPECT_EQ(json["name"], "run-1-7");
  EXPECT_EQ(json["role"], "worker");
  EXPECT_EQ(json["type"], "g5.xlarge");
  EXPECT_EQ(json["zone"], "a");
  EXPECT_EQ(json["market"], "on-demand");
  EXPECT_EQ(json["command"], "echo 'a\nb'");
}

TEST(ExecText, AnswersAreByLaunchInWhateverOrder) {
  const auto placed = exec_placed("{\"launch\": 8, \"refused\": \"no quota\"}\n\n{\"launch\": 7, \"id\": \"i-1\"}\n");
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_EQ(placed->at(7), Granted{.id = "i-1"});
  EXPECT_EQ(placed->at(8), Granted{.refused = "no quota"});
  EXPECT_FALSE(exec_placed(R"({"launch": 7, "id": "i-1", "refused": "both"})"));
  EXPECT_FALSE(exec_placed(R"({"launch": 7})"));
}

TEST(ExecText, AMachineIsListedWithWhatIsKnownOfIt) {
  EXPECT_EQ(only(R"({"launch": 3, "id": "i-3", "stage": "running", "age_s": 12.5, "where": "eu-1"})"),
            (Listed{.launch = 3, .id = "i-3", .phase = Phase::running, .where = "eu-1", .age = Seconds(12.5)}));
  const Listed waits = only(R"({"launch": 3, "id": "i-3", "stage": "ordered", "why": "capacity", "where": "eu-1"})");
  EXPECT_EQ(waits.waits, "for capacity");
  EXPECT_EQ(waits.where, "eu-1, waits for capacity");
}

TEST(ExecText, AnEndingIsOneOfFour) {
  const Listed gone = only(R"({"launch": 3, "id": "i-3", "stage": "gone", "ending": "failed", "why": "code 3"})");
  EXPECT_EQ(gone.phase, Phase::over);
  EXPECT_EQ(gone.ending.kind, Ending::Kind::failed);
  EXPECT_EQ(gone.ending.how, "code 3");
  EXPECT_NE(
      refusal(R"({"launch": 3, "id": "i", "stage": "gone", "ending": "lost"})").find("ending 'lost', want preempted"),
      std::string::npos);
}

TEST(ExecText, WhatIsWrongIsShownWithItsLine) {
  EXPECT_NE(refusal("hello").find("'hello': want a JSON object"), std::string::npos);
  EXPECT_NE(refusal(R"({"launch": 1.5, "id": "i", "stage": "running"})").find("want a launch"), std::string::npos);
  EXPECT_NE(refusal(R"({"launch": 1, "stage": "running"})").find("want an id"), std::string::npos);
  EXPECT_NE(refusal(R"({"launch": 1, "id": "i", "stage": "up"})").find("stage 'up', want ordered"), std::string::npos);
  EXPECT_NE(refusal(R"({"launch": 1, "id": "i", "stage": "running", "age_s": -1})").find("age_s"), std::string::npos);
  const std::string one = R"({"launch": 1, "id": "i", "stage": "running"})";
  EXPECT_NE(refusal(one + "\n" + one).find("twice"), std::string::npos);
  EXPECT_EQ(refusal("\x1b[2J").find('\x1b'), std::string::npos) << "a terminal is not steered";
}

}  // namespace
}  // namespace mayfly
