#include "profile/fresh.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

constexpr double kDay = 86400;

Profile taken(const std::string& job_text) {
  return {.name = "x", .origin = {.date = "1970-02-01", .job = text_hash(job_text), .machine = "here"}};
}

TEST(FreshProfile, StandsBesideItsJob) {
  EXPECT_EQ(profile_beside("jobs/digits.yaml"), std::filesystem::path("jobs/digits.profile.json"));
  EXPECT_EQ(profile_beside("digits.yaml"), std::filesystem::path("digits.profile.json"));
}

// 1970-02-01 is day 31.
TEST(FreshProfile, IsOfThisJobOnThisMachineAndYoungerThanThirtyDays) {
  EXPECT_FALSE(staleness(taken("job"), "job", "here", 31 * kDay));
  EXPECT_FALSE(staleness(taken("job"), "job", "here", 61 * kDay));
  EXPECT_EQ(staleness(taken("job"), "job", "here", 61 * kDay + 1), "it is from 1970-02-01");
  EXPECT_EQ(staleness(taken("job"), "another", "here", 31 * kDay), "the job file has changed since");
  EXPECT_EQ(staleness(taken("job"), "job", "there", 31 * kDay), "it was measured on another machine (here)");
  EXPECT_EQ(staleness({}, "job", "here", 31 * kDay), "it was not measured from a job file");
}

// FNV-1a's published values.
TEST(TextHash, IsXxh3) { EXPECT_EQ(text_hash(""), "2d06800538d394c2"); }

}  // namespace
}  // namespace mayfly
