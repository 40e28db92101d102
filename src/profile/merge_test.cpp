#include "profile/merge.h"

#include <gtest/gtest.h>

#include "job/profile.h"

namespace mayfly {
namespace {

Json profile(const std::string& type, double step, const std::string& basis) {
  return {{"format", "mayfly-profile/1"},
          {"name", "n"},
          {"origin", {{"source", "s of " + type}, {"basis", "measured"}}},
          {"job", {{"model", "mlp"}, {"samples", 1000}, {"parameters_mb", 4}}},
          {"types", {{type, {{"batch", 8}, {"step_s", step}, {"basis", basis}}}}}};
}

TEST(MergedProfiles, HaveTheTypesOfBoth) {
  const auto merged = merged_profiles(profile("a", 1, "measured"), profile("b", 2, "measured"));
  ASSERT_TRUE(merged) << merged.error().message;
  const auto parsed = parse_profile(merged->dump(), "merged");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->types.at("a").step, Seconds(1));
  EXPECT_EQ(parsed->types.at("b").step, Seconds(2));
  EXPECT_EQ(parsed->origin.source, "s of a; s of b");
}

TEST(MergedProfiles, MeasuredStandsBeforeScaledAndNewerBeforeOlder) {
  const auto step = [](const std::string& older, const std::string& newer) {
    return (*merged_profiles(profile("a", 1, older), profile("a", 2, newer)))["types"]["a"]["step_s"].get<double>();
  };
  EXPECT_EQ(step("measured", "scaled"), 1);
  EXPECT_EQ(step("measured", "measured"), 2);
  EXPECT_EQ(step("scaled", "measured"), 2);
  EXPECT_EQ(step("scaled", "scaled"), 2);
}

TEST(MergedProfiles, ATypeWithoutABasisKeepsThatOfItsOwnProfile) {
  Json older = profile("a", 1, "scaled");
  older["types"]["a"].erase("basis");
  older["origin"]["basis"] = "given";
  const auto merged = merged_profiles(older, profile("b", 2, "measured"));
  ASSERT_TRUE(merged);
  EXPECT_EQ((*merged)["types"]["a"]["basis"], "given");
}

TEST(MergedProfiles, OfTwoJobsAreAnError) {
  Json other = profile("b", 2, "measured");
  other["job"]["parameters_mb"] = 5;
  const auto merged = merged_profiles(profile("a", 1, "measured"), other);
  ASSERT_FALSE(merged);
  EXPECT_NE(merged.error().message.find("parameters_mb is 4 in one, 5 in the other"), std::string::npos)
      << merged.error().message;
  other = profile("b", 2, "measured");
  other["job"]["model"] = "cnn";
  EXPECT_FALSE(merged_profiles(profile("a", 1, "measured"), other));
}

}  // namespace
}  // namespace mayfly
