#include "job/engine_spec.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "job/job_spec.h"

namespace mayfly {
namespace {

constexpr const char* kWhole = R"(format: mayfly-engine/1
kind: slurm
slurm:
  spot: {partition: preempt, qos: low}
  on-demand: {partition: gpu, account: paid}
  account: vision
  reservation: autumn
  time: 8h
  hand_over: 2m
  setup: module load cuda
  types:
    a100: {gres: "gpu:a100:1", constraint: nvlink, cores: 8, memory_gb: 64, usd_per_hour: {spot: 0.4, on-demand: 1.1}}
    plain: {usd_per_hour: 0.05}
)";

std::string error_of(const std::string& slurm) {
  const auto engine = parse_engine("format: mayfly-engine/1\n" + slurm, "e.yaml");
  return engine ? "" : engine.error().message;
}

TEST(EngineSpec, SaysWhereMachinesComeFromAndWhatTheyCost) {
  const auto engine = parse_engine(kWhole, "e.yaml");
  ASSERT_TRUE(engine) << engine.error().message;
  const SlurmSpec& slurm = engine->slurm;
  EXPECT_EQ(engine->kind, "slurm");
  EXPECT_EQ(slurm.spot, (SlurmQueue{.partition = "preempt", .qos = "low"}));
  EXPECT_EQ(slurm.on_demand, (SlurmQueue{.partition = "gpu", .account = "paid"}));
  EXPECT_EQ(slurm.account, "vision");
  EXPECT_EQ(slurm.time, Seconds(8 * 3600));
  EXPECT_EQ(slurm.hand_over, Seconds(120));
  const SlurmType& a100 = slurm.types.at("a100");
  EXPECT_EQ(a100.gres, "gpu:a100:1");
  EXPECT_EQ(a100.cores, 8);
  EXPECT_EQ(a100.memory, Bytes{64e9});
  EXPECT_EQ(a100.spot, UsdPerHour{0.4});
  EXPECT_EQ(a100.on_demand, UsdPerHour{1.1});
  EXPECT_EQ(slurm.types.at("plain").spot, UsdPerHour{0.05}) << "one price is that of both markets";
  EXPECT_EQ(slurm.types.at("plain").on_demand, UsdPerHour{0.05});
}

TEST(EngineSpec, TheExampleOfTheFormatIsRead) {
  const auto text = load_text(MAYFLY_SOURCE_DIR "/examples/formats/engine.yaml");
  ASSERT_TRUE(text) << text.error().message;
  const auto engine = parse_engine(*text, "engine.yaml");
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(engine->slurm.types.at("p3.2xlarge").on_demand, UsdPerHour{1.2});
}

TEST(EngineSpec, WhatSlurmWouldNotTakeIsRefusedWithItsLine) {
  EXPECT_EQ(error_of("kind: slrm\n"), "e.yaml:2: kind: 'slrm', want one of local, none, slurm, ssh, exec");
  EXPECT_NE(error_of("slurm: {spot: {}}\n").find("want a partition, a qos or both"), std::string::npos);
  EXPECT_NE(error_of("slurm: {account: a b}\n").find("'a b', want a name without spaces"), std::string::npos);
  EXPECT_NE(error_of("slurm: {time: 10s}\n").find("want 1m or more"), std::string::npos);
  EXPECT_NE(error_of("slurm: {time: 10m, hand_over: 6m}\n").find("at most half of time"), std::string::npos);
  EXPECT_NE(error_of("slurm: {types: {a: {cores: 0}}}\n").find("cores"), std::string::npos);
  EXPECT_NE(error_of("slurm: {types: {a: {memory_gb: 1e7}}}\n").find("want 0.01 to 1000000"), std::string::npos);
  EXPECT_NE(error_of("slurm: {types: {a: {usd_per_hour: -1}}}\n").find("usd_per_hour"), std::string::npos);
  EXPECT_NE(error_of("slurm: {types: {a: {gpus: 1}}}\n").find("unknown key"), std::string::npos);
}

TEST(EngineSpec, InfraIsShortForAPartitionOfBothMarkets) {
  const auto job = parse_job("resources: {infra: slurm/gpu}\n", "job.yaml");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->engine->kind, "slurm");
  EXPECT_EQ(job->engine->slurm.spot, SlurmQueue{.partition = "gpu"});
  EXPECT_EQ(job->engine->slurm.on_demand, SlurmQueue{.partition = "gpu"});
  EXPECT_EQ(job->resources.front().cloud, "") << "it is no cloud of the catalogue";

  const auto both =
      parse_job("resources: {infra: slurm/gpu}\nengine: {slurm: {spot: {partition: cheap}}}\n", "job.yaml");
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->engine->slurm.spot, SlurmQueue{.partition = "cheap"}) << "what the block says stays";
  EXPECT_EQ(both->engine->slurm.on_demand, SlurmQueue{.partition = "gpu"});
}

TEST(EngineSpec, InfraAndBlockMustAgree) {
  const auto apart = parse_job("resources: {infra: slurm}\nengine: {kind: local}\n", "job.yaml");
  ASSERT_FALSE(apart);
  EXPECT_NE(apart.error().message.find("kind is local, and resources.infra says slurm"), std::string::npos);
  const auto several = parse_job("resources: {any_of: [{infra: slurm/a}, {infra: slurm/b}]}\n", "job.yaml");
  ASSERT_FALSE(several);
  EXPECT_NE(several.error().message.find("of one scheduler"), std::string::npos);
}

TEST(EngineSpec, HostsHaveATypeAMarketAndRoom) {
  const auto engine = parse_engine(
      "format: mayfly-engine/1\nkind: ssh\nssh:\n  options: [-p, 2222]\n  notice: 1m\n  hosts:\n"
      "    - {host: me@n1, type: g5.xlarge, zone: a, market: spot, usd_per_hour: 0.4, cores: 4, machines: 2}\n    - "
      "{host: n2}\n",
      "e.yaml");
  ASSERT_TRUE(engine) << engine.error().message;
  const SshSpec wanted{.hosts = {{.host = "me@n1",
                                  .type = "g5.xlarge",
                                  .zone = "a",
                                  .spot = true,
                                  .price = UsdPerHour{0.4},
                                  .cores = 4,
                                  .machines = 2},
                                 {.host = "n2"}},
                       .options = {"-p", "2222"},
                       .notice = Seconds(60)};
  EXPECT_EQ(engine->ssh, wanted);
}

TEST(EngineSpec, HostsThatCannotBeAreRefused) {
  const auto error_of_hosts = [](const std::string& hosts) { return error_of("ssh: {hosts: [" + hosts + "]}\n"); };
  EXPECT_NE(error_of_hosts("").find("want 1 to 1000"), std::string::npos);
  EXPECT_NE(error_of_hosts("{host: -oProxyCommand=x}").find("want [USER@]NAME"), std::string::npos)
      << "no option of ssh's";
  EXPECT_NE(error_of_hosts("{host: a}, {host: a}").find("stands there twice"), std::string::npos);
  EXPECT_NE(error_of_hosts("{host: a, market: cheap}").find("want spot or on-demand"), std::string::npos);
  EXPECT_NE(error_of_hosts("{host: a, usd_per_hour: 1}, {host: b, usd_per_hour: 2}").find("want that of a"),
            std::string::npos);
}

TEST(EngineSpec, AProgramHasItsWordsAndItsTimes) {
  const auto engine = parse_engine(
      "format: mayfly-engine/1\nkind: exec\nexec: {program: [./gcloud.py, --zone, a], patience: 20m, every: 30s, "
      "start: 10m, "
      "types: {a2-highgpu-1g: {cores: 12, usd_per_hour: {spot: 1.1, on-demand: 3.6}}}}\n",
      "e.yaml");
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(engine->exec.program, (std::vector<std::string>{"./gcloud.py", "--zone", "a"}));
  EXPECT_EQ(engine->exec.patience, Seconds(1200));
  EXPECT_EQ(engine->exec.types.at("a2-highgpu-1g").spot, UsdPerHour{1.1});
  EXPECT_FALSE(engine->exec.shared_files);
  EXPECT_NE(error_of("exec: {program: x, files: mine}\n").find("'mine', want own or shared"), std::string::npos);
  EXPECT_NE(error_of("exec: {program: []}\n").find("want a word, or a list of words"), std::string::npos);
}

}  // namespace
}  // namespace mayfly
