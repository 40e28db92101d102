#include <gtest/gtest.h>

#include <algorithm>

#include "plan/planner.h"
#include "support/problems.h"

namespace mayfly {
namespace {

/// Of spotDNN's job, on its five types in today's catalogue: p3, g3 (two) are retired, g4dn and p2 are not marked.
struct Old {
  Profile profile = support::shipped_profile("spotdnn-resnet110");
  Catalog catalog = support::shipped_catalog("default");
  PlanRequest request{.target = ToLoss{0.8}, .deadline = Hours(2), .frontier = false};

  Old() {
    std::erase_if(catalog.types, [&](const InstanceType& type) {
      return !profile.types.contains(type.name) && type.name != "m5.xlarge";
    });
  }
  std::vector<std::string> offered() const {
    std::vector<std::string> types;
    const auto made = make_problems(profile, catalog, request);
    EXPECT_TRUE(made) << made.error().message;
    if (!made) return types;
    for (const Problem& problem : made->problems) {
      for (const Kind& kind : problem.kinds) types.push_back(kind.name);
    }
    std::sort(types.begin(), types.end());
    types.erase(std::unique(types.begin(), types.end()), types.end());
    return types;
  }
};

TEST(Retired, TypesAreOfferedOnlyWhereTheyAreAskedForOrRun) {
  Old old;
  EXPECT_EQ(old.offered(), (std::vector<std::string>{"g4dn.4xlarge", "p2.8xlarge"}));
  const auto made = make_problems(old.profile, old.catalog, old.request);
  EXPECT_TRUE(std::any_of(made->notes.begin(), made->notes.end(), [](const std::string& note) {
    return note.starts_with("3 types left out that clouds offer no longer");
  }));
  old.request.named = {"p3.2xlarge"};
  EXPECT_EQ(old.offered(), (std::vector<std::string>{"g4dn.4xlarge", "p2.8xlarge", "p3.2xlarge"}));
  old.request.named.clear();
  old.request.existing = {{"g3.16xlarge", 1}};
  EXPECT_EQ(old.offered(), (std::vector<std::string>{"g3.16xlarge", "g4dn.4xlarge", "p2.8xlarge"}));
  old.request.existing.clear();
  old.request.retired = true;
  EXPECT_EQ(old.offered().size(), 5u);
}

TEST(Retired, WhereNothingElseIsLeftTheAnswerNamesThem) {
  Old old;
  old.request.wanted = [](const InstanceType& type) { return type.name == "p3.2xlarge"; };
  const auto answer = make_plan(old.profile, old.catalog, old.request);
  ASSERT_TRUE(answer);
  const auto& no = std::get<Infeasible>(*answer);
  EXPECT_EQ(no.binding, "gpu");
  EXPECT_NE(no.reason.find("p3.2xlarge"), std::string::npos);
  EXPECT_NE(no.reason.find("--retired"), std::string::npos);
}

// A prediction asks nobody: what runs or is compared may be old.
TEST(Retired, TypesAreScaledFromAndPredictedAsBefore) {
  const Old old;
  const auto worker = make_worker(old.profile, *old.catalog.find("p3.2xlarge"), old.catalog);
  ASSERT_TRUE(worker);
  EXPECT_EQ(worker->basis, old.profile.origin.basis);
}

}  // namespace
}  // namespace mayfly
