#include <gtest/gtest.h>

#include <filesystem>

#include "job/job_spec.h"
#include "job/profile.h"

namespace mayfly {
namespace {

TEST(Profiles, AllThatShipLoadAndAreNamedAfterTheirFile) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(MAYFLY_SOURCE_DIR) / "data/profiles")) {
    if (entry.path().extension() != ".json") continue;
    const auto profile = load_profile(entry.path());
    ASSERT_TRUE(profile.has_value()) << profile.error().message;
    EXPECT_EQ(profile->name, entry.path().stem().string());
    EXPECT_FALSE(profile->origin.source.empty());
    ++count;
  }
  EXPECT_EQ(count, 12);
}

TEST(Profiles, PipelinesCarryEveryMeasuredShape) {
  const auto bert = load_profile(std::filesystem::path(MAYFLY_SOURCE_DIR) / "data/profiles/parcae-bert.json");
  ASSERT_TRUE(bert && bert->pipeline);
  EXPECT_EQ(bert->pipeline->speeds.size(), 62u);
  // samples/s = nominal global batch / iteration time.
  for (const auto& shape : bert->pipeline->speeds) {
    EXPECT_NEAR(shape.speed->value * shape.iteration.count() / bert->pipeline->global_batch, 1, 1e-4);
  }
  EXPECT_EQ(bert->pipeline->transfers.size(), 29u);
  ASSERT_TRUE(bert->pipeline->restart.has_value());
  EXPECT_DOUBLE_EQ(bert->pipeline->restart->rendezvous.count(), 6.6);
}

std::string minimal(const std::string& more) {
  return "format: mayfly-profile/1\nname: p\norigin: {source: s}\njob: {model: m}\n" + more;
}

TEST(Profiles, SayWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {minimal("types: {a: {samples_per_s: 5}}\n"), "p.json:5: types.a.batch: missing beside a step time"},
      {minimal("types: {a: {batch: 1, step_s: 1, samples_per_s: 5}}\n"),
       "p.json:5: types.a.samples_per_s: stands beside step_s; give one of the two"},
      {minimal("loss: {form: magic}\n"), "p.json:5: loss.form: 'magic', want spotdnn, cynthia or common-start"},
      {minimal("link: {overlap: 1.5}\n"), "p.json:5: link.overlap: '1.5', want a number from 0 to 1"},
      {minimal("linc: {}\n"), "p.json:5: linc: unknown key (did you mean 'link'?)"},
      {"format: mayfly-profile/1\nname: p\norigin: {source: s}\njob: {model: m, sync: maybe}\n",
       "p.json:4: job.sync: 'maybe', want one of asp, bsp"},
  };
  for (const auto& [text, message] : wrong) {
    const auto profile = parse_profile(text, "p.json");
    ASSERT_FALSE(profile.has_value()) << text;
    EXPECT_EQ(profile.error().message, message);
  }
}

TEST(Jobs, ReadASkyPilotTaskAndSayWhatHasNoEffect) {
  const auto job = parse_job(R"(
name: my-task
workdir: ~/code
num_nodes: 4
resources:
  infra: aws/us-east-1
  accelerators: V100:1
  use_spot: true
  disk_size: 100
envs: {A: b}
setup: pip install x
run: |
  python train.py
objective: {deadline: 6h, loss: 0.8, budget: 40}
elastic: {min: 2, max: 8}
profile: profile.json
)",
                             "job.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  ASSERT_EQ(job->resources.size(), 1u);
  EXPECT_EQ(job->resources[0],
            (Resources{.cloud = "aws", .region = "us-east-1", .accelerators = {{"V100", 1}}, .use_spot = true}));
  EXPECT_EQ(job->nodes, 4);
  EXPECT_DOUBLE_EQ(job->deadline->count(), 21600);
  EXPECT_EQ(job->loss, .8);
  EXPECT_EQ(job->most_workers, 8);
  EXPECT_EQ(job->unused, (std::vector<std::string>{"resources.disk_size", "workdir", "envs", "setup", "run"}));
}

TEST(Jobs, HonourEveryLimitOfAChoice) {
  const auto job = parse_job(R"(
resources:
  infra: gcp/us-central1/us-central1-a
  cpus: 8+
  max_hourly_cost: 12.5
  any_of:
    - {accelerators: [A100:8, H100:8]}
    - {accelerators: {L4: 1}, use_spot: false, memory: 32, zone: us-central1-b}
)",
                             "job.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  ASSERT_EQ(job->resources.size(), 2u);
  const Resources both{.cloud = "gcp",
                       .region = "us-central1",
                       .zone = "us-central1-a",
                       .cpus = Amount{8, true},
                       .most_hourly = UsdPerHour{12.5}};
  Resources first = both, second = both;
  first.accelerators = {{"A100", 8}, {"H100", 8}};
  second.accelerators = {{"L4", 1}};
  second.use_spot = false;
  second.memory_gib = Amount{32, false};
  second.zone = "us-central1-b";
  EXPECT_EQ(job->resources[0], first);
  EXPECT_EQ(job->resources[1], second);
  EXPECT_EQ(job->unused, std::vector<std::string>{});
}

TEST(Jobs, SayWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"objective: {loss: 1, epochs: 2}\n", "j.yaml:1: objective: want one of loss, epochs and steps"},
      {"objective: {deadline: soon}\n",
       "j.yaml:1: objective.deadline: duration 'soon': want for example 90s, 15m, 6h, 2d or 1h30m"},
      {"elastic: {min: 4, max: 2}\n", "j.yaml:1: elastic.min: is above max"},
      {"objetive: {}\n", "j.yaml:1: objetive: unknown key (did you mean 'objective'?)"},
      {"resources: {accelerators: 'V100:x'}\n",
       "j.yaml:1: resources.accelerators: count 'x', want a whole number above 0"},
      {"resources: {accelerators: 'A100:8:9'}\n",
       "j.yaml:1: resources.accelerators: 'A100:8:9', want NAME or NAME:COUNT"},
      {"resources: {accelerators: {A100: [8]}}\n",
       "j.yaml:1: resources.accelerators: of A100, want a whole number above 0"},
      {"resources: {cpus: many}\n", "j.yaml:1: resources.cpus: 'many', want a number above 0, or one and a plus sign"},
      {"resources: {image_id: x}\n",
       "j.yaml:1: resources.image_id: mayfly starts no images; what machines run is set up before"},
      {"resources: {ordered: []}\n",
       "j.yaml:1: resources.ordered: mayfly takes what is cheapest, in no order of preference: want any_of"},
      {"num_nodes: 0\n", "j.yaml:1: num_nodes: '0', want a number above 0"},
  };
  for (const auto& [text, message] : wrong) {
    const auto job = parse_job(text, "j.yaml");
    ASSERT_FALSE(job.has_value()) << text;
    EXPECT_EQ(job.error().message, message);
  }
}

TEST(Jobs, NamesStayInTheFolderOfRuns) {
  for (const char* name : {"count", "my job, 3rd try", "a.b", "gr\u00fcn"})
    EXPECT_EQ(parse_job(fmt::format("name: {}\n", name), "job.yaml").value().name, name);
  EXPECT_EQ(parse_job("profile: p\n", "job.yaml").value().name, "");
  const std::string wanted = ", want at most 200 bytes without '/' or control characters, and no '.' in front";
  for (const char* name : {"../../x", "/abs", ".", "..", "a/b", ".hidden"}) {
    const auto job = parse_job(fmt::format("profile: p\nname: {}\n", name), "job.yaml");
    ASSERT_FALSE(job) << name;
    EXPECT_EQ(job.error().message, fmt::format("job.yaml:2: name: '{}'{}", name, wanted));
  }
  EXPECT_EQ(parse_job("name: \"a\\e[2J\"\n", "job.yaml").error().message, "job.yaml:1: name: 'a\\x1b[2J'" + wanted);
  EXPECT_FALSE(parse_job("name: ''\n", "job.yaml"));
  EXPECT_FALSE(parse_job("name: " + std::string(201, 'x') + "\n", "job.yaml"));
}

}  // namespace
}  // namespace mayfly
