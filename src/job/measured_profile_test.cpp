#include "job/measured_profile.h"

#include <gtest/gtest.h>

#include "job/profile.h"

namespace mayfly {
namespace {

constexpr const char* kProfile = R"({
  "format": "mayfly-profile/1", "name": "n",
  "origin": {"basis": "measured", "source": "s", "date": "2026-01-02", "job": "00ff", "machine": "m, 2 cores",
             "notes": ["one", "two"]},
  "job": {"model": "mlp"},
  "types": {"local": {"batch": 32, "step_s": 0.5, "cores": 2, "gflops": 50, "batches": [
    {"batch": 16, "step_s": 0.3, "interval_s": 0.01, "compute_s": 0.25, "peak_mb": 200, "steps": 40},
    {"batch": 32, "step_s": 0.5}]}},
  "memory": {"fixed_mb": 100, "mb_per_sample": 2, "residual_mb": 1},
  "layers": {"batch": 32, "list": [
    {"name": "1", "forward_s": 0.01, "backward_s": 0.02, "parameters": 100, "output_mb": 0.5}]},
  "start": {"process_s": 1, "load_s": 0.5, "join_s": 0.1},
  "loader": {"prep_samples_per_s_per_vcpu": 10, "sample_bytes": 784, "storage_mb_per_s": 30, "memory_mb_per_s": 900,
             "basis": "measured"},
  "checkpoint": {"data_mb": 3, "graph_mb": 0, "stall_s": 0.01, "write_s": 0.2},
  "link": {"latency_s": 0.001, "basis": "measured"}, "server": {"cpu_s_per_update": 0.01, "basis": "scaled"}
})";

TEST(MeasuredProfile, IsReadWithEveryBlock) {
  const auto profile = parse_profile(kProfile, "p.json");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->origin.job, "00ff");
  EXPECT_EQ(profile->origin.notes, (std::vector<std::string>{"one", "two"}));
  const TypeProfile& local = profile->types.at("local");
  EXPECT_EQ(local.cores, 2);
  ASSERT_EQ(local.batches.size(), 2U);
  EXPECT_EQ(local.batches[0], (BatchPoint{.batch = 16,
                                          .step = Seconds(0.3),
                                          .interval = Seconds(0.01),
                                          .compute = Seconds(0.25),
                                          .peak_mb = 200,
                                          .steps = 40}));
  EXPECT_EQ(profile->memory, (MemoryProfile{.fixed_mb = 100, .mb_per_sample = 2, .residual_mb = 1}));
  ASSERT_EQ(profile->layers->layers.size(), 1U);
  EXPECT_EQ(profile->layers->layers[0].backward, Seconds(0.02));
  EXPECT_EQ(profile->start->join, Seconds(0.1));
  EXPECT_EQ(profile->loader.sample_bytes, 784);
  EXPECT_EQ(profile->loader.basis, Basis::measured);
  EXPECT_EQ(profile->checkpoint->write, Seconds(0.2));
  EXPECT_EQ(profile->server.basis, Basis::scaled);
}

TEST(MeasuredProfile, ABrokenBlockIsNamed) {
  std::string text = kProfile;
  text.replace(text.find("\"mb_per_sample\": 2"), 18, "\"mb_per_sample\": 0");
  const auto profile = parse_profile(text, "p.json");
  ASSERT_FALSE(profile);
  EXPECT_NE(profile.error().message.find("memory.mb_per_sample"), std::string::npos) << profile.error().message;
}

// 100 MB and 2 MB a sample: 1000 MB hold 450 samples, 256 as a power of two.
TEST(LargestBatch, IsThePowerOfTwoThatFits) {
  const MemoryProfile memory{.fixed_mb = 100, .mb_per_sample = 2};
  EXPECT_EQ(largest_batch(memory, 1000), 256);
  EXPECT_EQ(largest_batch(memory, 102), 1);
  EXPECT_EQ(largest_batch(memory, 101), 0);
  EXPECT_EQ(largest_batch(memory, 50), 0);
}

}  // namespace
}  // namespace mayfly
