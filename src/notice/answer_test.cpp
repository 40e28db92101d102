#include "notice/answer.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

// 2020-01-07T01:03:47Z is 1578359027 s after 1970.
constexpr double kAwsEnd = 1578359027;
// Mon, 19 Sep 2016 18:29:47 GMT is 1474309787 s after 1970.
constexpr double kAzureEnd = 1474309787;

Answer ok(std::string body) { return {.status = 200, .body = std::move(body)}; }

std::string azure_body(const std::string& type, const std::string& machine, const std::string& status = "Scheduled",
                       const std::string& when = "Mon, 19 Sep 2016 18:29:47 GMT") {
  return R"({"DocumentIncarnation":2,"Events":[{"EventId":"602d9444-d2cd-49c7-8624-8643e7171297","EventType":")" +
         type + R"(","ResourceType":"VirtualMachine","Resources":["FrontEnd_IN_0",")" + machine +
         R"("],"EventStatus":")" + status + R"(","NotBefore":")" + when +
         R"(","Description":"","EventSource":"Platform","DurationInSeconds":-1}]})";
}

TEST(AwsNotice, SaysHowLongIsLeftUntilTheTimeItNames) {
  const auto notice = aws_instance_action(ok(R"({"action":"terminate","time":"2020-01-07T01:03:47Z"})"), kAwsEnd - 100);
  ASSERT_TRUE(notice && *notice);
  EXPECT_EQ((*notice)->source, "aws");
  EXPECT_EQ((*notice)->reason, "terminate");
  EXPECT_DOUBLE_EQ((*notice)->left->count(), 100);
}

TEST(AwsNotice, StopAndHibernateTakeTheMachineTooAndOtherWordsAreErrors) {
  for (const std::string action : {"stop", "hibernate"}) {
    const auto notice =
        aws_instance_action(ok(R"({"action":")" + action + R"(","time":"2020-01-07T01:03:47Z"})"), kAwsEnd);
    ASSERT_TRUE(notice && *notice);
    EXPECT_EQ((*notice)->reason, action);
  }
  EXPECT_FALSE(aws_instance_action(ok(R"({"action":"sing","time":"2020-01-07T01:03:47Z"})"), kAwsEnd));
}

TEST(AwsNotice, NotFoundMeansNone) {
  const auto notice = aws_instance_action({.status = 404, .body = "<html>404 - Not Found</html>"}, kAwsEnd);
  ASSERT_TRUE(notice);
  EXPECT_FALSE(*notice);
}

TEST(AwsNotice, AWrongClockNeitherAddsToTheTwoMinutesNorTakesMoreThanAll) {
  const Answer answer = ok(R"({"action":"terminate","time":"2020-01-07T01:03:47Z"})");
  EXPECT_DOUBLE_EQ((*aws_instance_action(answer, kAwsEnd - 3600))->left->count(), 120);
  EXPECT_DOUBLE_EQ((*aws_instance_action(answer, kAwsEnd + 3600))->left->count(), 0);
}

TEST(AwsNotice, AnythingElseIsAnErrorThatShowsIt) {
  for (const Answer& answer : {Answer{.status = 500, .body = "oops"}, ok(""), ok("[]"), ok(R"({"action":"terminate"})"),
                               ok(R"({"action":1,"time":2})"), ok(R"({"action":"terminate","time":"soon"})")}) {
    const auto notice = aws_instance_action(answer, kAwsEnd);
    ASSERT_FALSE(notice);
    EXPECT_NE(notice.error().message.find("spot/instance-action"), std::string::npos);
  }
}

TEST(AwsRebalance, IsARiskWithoutAnEnd) {
  const auto notice = aws_rebalance(ok(R"({"noticeTime":"2020-10-16T19:18:24Z"})"));
  ASSERT_TRUE(notice && *notice);
  EXPECT_FALSE((*notice)->left);
  EXPECT_FALSE(*aws_rebalance({.status = 404}));
  EXPECT_FALSE(aws_rebalance(ok("{}")));
}

TEST(GcpNotice, TrueLeavesThirtySeconds) {
  const auto notice = gcp_preempted(ok("TRUE\n"));
  ASSERT_TRUE(notice && *notice);
  EXPECT_DOUBLE_EQ((*notice)->left->count(), 30);
  EXPECT_FALSE(*gcp_preempted(ok("FALSE")));
  EXPECT_FALSE(gcp_preempted(ok("maybe")));
  EXPECT_FALSE(gcp_preempted({.status = 403, .body = "TRUE"}));
}

TEST(AzureNotice, OnlyAnEventThatNamesThisMachineCounts) {
  const auto mine = azure_events(ok(azure_body("Preempt", "vm1")), kAzureEnd - 31, "vm1");
  ASSERT_TRUE(mine && *mine);
  EXPECT_EQ((*mine)->reason, "Preempt");
  EXPECT_DOUBLE_EQ((*mine)->left->count(), 31);
  EXPECT_FALSE(*azure_events(ok(azure_body("Preempt", "vm10")), kAzureEnd - 31, "vm1"));
}

TEST(AzureNotice, TerminateTakesTheMachineAndARebootDoesNot) {
  EXPECT_TRUE(*azure_events(ok(azure_body("Terminate", "vm1")), kAzureEnd, "vm1"));
  for (const std::string type : {"Reboot", "Redeploy", "Freeze"})
    EXPECT_FALSE(*azure_events(ok(azure_body(type, "vm1")), kAzureEnd, "vm1"));
}

TEST(AzureNotice, AnEventThatHasStartedLeavesNothing) {
  const auto notice = azure_events(ok(azure_body("Preempt", "vm1", "Started", "")), kAzureEnd, "vm1");
  ASSERT_TRUE(notice && *notice);
  EXPECT_DOUBLE_EQ((*notice)->left->count(), 0);
  EXPECT_FALSE(*azure_events(ok(azure_body("Preempt", "vm1", "Canceled", "")), kAzureEnd, "vm1"));
}

TEST(AzureNotice, NoEventsAreNoneAndOtherBodiesErrors) {
  EXPECT_FALSE(*azure_events(ok(R"({"DocumentIncarnation":1,"Events":[]})"), 0, "vm1"));
  EXPECT_FALSE(azure_events(ok(R"({"DocumentIncarnation":1})"), 0, "vm1"));
  EXPECT_FALSE(azure_events(ok(R"({"Events":["Preempt"]})"), 0, "vm1"));
  EXPECT_FALSE(azure_events({.status = 400, .body = "Bad request"}, 0, "vm1"));
  EXPECT_FALSE(azure_events(ok(azure_body("Preempt", "vm1", "Scheduled", "tomorrow")), 0, "vm1"));
}

TEST(HttpDate, ReadsWhatItWritesAndNothingElse) {
  EXPECT_EQ(parse_http_date("Mon, 19 Sep 2016 18:29:47 GMT"), kAzureEnd);
  EXPECT_EQ(format_http_date(kAzureEnd), "Mon, 19 Sep 2016 18:29:47 GMT");
  for (const char* text : {"", "Mon, 19 Sep 2016 18:29:47", "Mon, 39 Sep 2016 18:29:47 GMT", "19 Sep 2016 18:29:47 GMT",
                           "Mon, 19 Foo 2016 18:29:47 GMT"})
    EXPECT_FALSE(parse_http_date(text)) << text;
}

}  // namespace
}  // namespace mayfly
