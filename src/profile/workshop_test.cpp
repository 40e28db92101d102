#include "profile/workshop.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/temp_folder.h"

namespace mayfly {
namespace {

constexpr const char* kJob = R"(
name: shop
objective: {epochs: 1}
train:
  model: {name: mlp, hidden: [32]}
  data: {name: digits, samples: 2000}
  optimiser: {kind: sgd, rate: 0.05}
  batch: 16
)";

Result<std::unique_ptr<Workshop>> shop(const support::TempFolder& folder, int workers, int servers = 0,
                                       const std::string& text = kJob) {
  const auto job = parse_job(text, "job.yaml");
  if (!job) return unexpected(job.error());
  return Workshop::open({.spec = *job,
                         .job_text = text,
                         .job_file = folder.path() / "job.yaml",
                         .program = MAYFLY_TRAIN,
                         .directory = folder.path() / "shop",
                         .workers = workers,
                         .servers = servers});
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(Workshop, OneWorkerDoesTheStepsItIsAskedFor) {
  const support::TempFolder folder;
  auto open = shop(folder, 1);
  ASSERT_TRUE(open) << open.error().message;
  Workshop& workshop = **open;
  ASSERT_EQ(workshop.ready().size(), 1U);
  EXPECT_EQ(workshop.ready()[0].samples, 2000);
  EXPECT_GT(workshop.start_time().count(), workshop.ready()[0].load_s);

  const auto first = workshop.measure({.steps = 6, .batch = 8});
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(first->workers.size(), 1U);
  const WorkerSteps& steps = first->workers[0];
  EXPECT_EQ(steps.compute_s.size(), 6U);
  EXPECT_EQ(first->losses.size(), 6U);
  // What a step consists of is not longer than the steps, by two clocks.
  EXPECT_LE(sum(steps.compute_s) + sum(steps.exchange_s), sum(steps.step_s) * 1.01 + 1e-3);
  EXPECT_GT(steps.used.cpu_s, 0);
  EXPECT_GT(steps.used.peak_mb, 10);
  EXPECT_EQ(first->step_s.size(), 6U);

  // Every segment starts from the first weights and the first sample.
  const auto again = workshop.measure({.steps = 6, .batch = 8});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->losses, first->losses);

  // One batch over and over: the first loss is the same, and it is learnt by heart.
  const auto still = workshop.measure({.steps = 6, .batch = 8, .data = SampleSource::synthetic});
  ASSERT_TRUE(still) << still.error().message;
  EXPECT_EQ(still->losses[0], first->losses[0]);
  EXPECT_LT(still->losses[5], still->losses[0]);
  // Where samples lie makes no difference to what is learnt.
  for (const SampleSource source : {SampleSource::cold, SampleSource::warm}) {
    const auto same = workshop.measure({.steps = 6, .batch = 8, .data = source, .rehearse = 16});
    ASSERT_TRUE(same) << same.error().message;
    EXPECT_EQ(same->losses, first->losses) << name(source);
    EXPECT_EQ(same->looks.front().rehearsed, 16);
    EXPECT_GT(same->looks.front().prepare_s, 0);
  }
}

TEST(Workshop, ASegmentEndsWhenItIsEnough) {
  const support::TempFolder folder;
  auto open = shop(folder, 1);
  ASSERT_TRUE(open) << open.error().message;
  const auto result = (*open)->measure(
      {.steps = 1000, .batch = 4, .enough = [](const SegmentResult& so_far) { return so_far.step_s.size() >= 3; }});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->step_s.size(), 3U);
}

TEST(Workshop, TwoWorkersExchangeOrKeepToThemselves) {
  const support::TempFolder folder;
  auto open = shop(folder, 2);
  ASSERT_TRUE(open) << open.error().message;
  Workshop& workshop = **open;
  const auto together = workshop.measure({.steps = 4, .batch = 8, .exchanges = {1024, 65536}});
  ASSERT_TRUE(together) << together.error().message;
  ASSERT_EQ(together->workers.size(), 2U);
  EXPECT_GT(sum(together->workers[1].exchange_s), 0);
  ASSERT_EQ(together->looks.size(), 2U);
  ASSERT_EQ(together->looks[0].exchanges_s.size(), 2U);
  EXPECT_GT(together->looks[0].exchanges_s[1], 0);

  const auto one = workshop.measure({.steps = 4, .batch = 8}, 1);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->workers.size(), 1U);
  const auto saved = workshop.checkpoint();
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_GT(saved->size_mb, 0);
}

TEST(Workshop, WorkersTrainThroughAServer) {
  const support::TempFolder folder;
  auto open = shop(folder, 2, 1, std::string(kJob) + "  servers: {count: 1, sync: asp}\n");
  ASSERT_TRUE(open) << open.error().message;
  Workshop& workshop = **open;
  const auto served = workshop.measure({.steps = 10, .batch = 8});
  ASSERT_TRUE(served) << served.error().message;
  // No worker waits for another: each has steps of its own.
  EXPECT_EQ(served->losses.size(), 20U);
  EXPECT_EQ(served->workers[0].step_s.size() + served->workers[1].step_s.size(), 20U);
  EXPECT_GT(sum(served->workers[0].exchange_s), 0);
  EXPECT_GE(served->server_cpu_s, 0);
  const auto again = workshop.measure({.steps = 3, .batch = 8}, 1);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->losses.size(), 3U);
  const auto saved = workshop.checkpoint();
  ASSERT_TRUE(saved) << saved.error().message;
}

TEST(Workshop, AJobThatCannotBeLoadedIsAnError) {
  const support::TempFolder folder;
  std::string text = kJob;
  text.replace(text.find("{name: digits, samples: 2000}"), 29, "{name: idx, files: [nowhere-images, nowhere-labels]}");
  const auto open = shop(folder, 1, 0, text);
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().message.find("nowhere-images"), std::string::npos) << open.error().message;
}

}  // namespace
}  // namespace mayfly
