#include "engine/slurm_script.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mayfly {
namespace {

SlurmRun small_run() {
  SlurmRun run{.time = Seconds(3601)};
  run.machine = {.program = "/opt/may fly/mayfly-train",
                 .arguments = {"--interface", "auto"},
                 .notice = {{Market::spot, Seconds(10)}},
                 .setup = "module load cuda"};
  run.machine.terms = {.run = "count-1", .join = "10.0.0.5:7070", .directory = "/shared/100%/run"};
  run.spec.spot = SlurmQueue{.partition = "preempt", .qos = "low"};
  run.spec.on_demand = SlurmQueue{.partition = "gpu", .account = "paid"};
  run.spec.account = "vision";
  run.spec.types["a100"] = {.gres = "gpu:a100:1", .constraint = "nvlink", .cores = 8, .memory = Bytes{64e9}};
  return run;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// 64e9 bytes are 61035.2 of Slurm's M; 3601 s are begun minutes.
TEST(SlurmScript, AMachineIsAskedForInItsMarketAndOfItsType) {
  const auto words = slurm_options(small_run(), {.type = "a100", .market = Market::spot});
  ASSERT_TRUE(words) << words.error().message;
  for (const char* word :
       {"--partition=preempt", "--qos=low", "--account=vision", "--gres=gpu:a100:1", "--constraint=nvlink",
        "--cpus-per-task=8", "--mem=61036M", "--time=61", "--signal=TERM@60", "--no-requeue"})
    EXPECT_TRUE(has(*words, word)) << word;
  const auto paid = slurm_options(small_run(), {.type = "a100", .market = Market::on_demand});
  EXPECT_TRUE(has(*paid, "--account=paid")) << "a market's own account";
  EXPECT_FALSE(slurm_options(small_run(), {.type = "h100"}));
  EXPECT_FALSE(slurm_options(small_run(), {.type = "a100", .market = Market::serverless}));
}

TEST(SlurmScript, AnElementIsItsLaunchWithoutTheFirst) {
  const auto words = sbatch_words(small_run(), {.launches = {5, 6, 9}, .role = {.type = "a100"}});
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_TRUE(has(*words, "--array=0,1,4"));
  EXPECT_TRUE(has(*words, "--job-name=count-1-5"));
  EXPECT_TRUE(has(*words, "--output=/shared/100%%/run/logs/slurm-5.log")) << "Slurm replaces what stands behind %";
}

TEST(SlurmScript, TheWorkerRunsUnderSrunWithItsNameAndNotice) {
  const std::string script = batch_script(small_run(), {.launches = {5}, .role = {.type = "a100"}});
  for (const char* line :
       {"launch=$((5 + SLURM_ARRAY_TASK_ID))\n", "export MAYFLY_MACHINE='count-1-'\"$launch\"\n",
        "export MAYFLY_NOTICE_S='10'\n", "export OMP_NUM_THREADS=8\n", "module load cuda\n",
        "--output='/shared/100%%/run/logs/worker-'\"$launch\".log '/opt/may fly/mayfly-train' worker --join "
        "'10.0.0.5:7070' --token-file '/shared/100%/run/token' --slot \"$launch\" '--interface' 'auto'\n"})
    EXPECT_NE(script.find(line), std::string::npos) << line << "\n" << script;
}

TEST(SlurmScript, AScriptRunsInItsFolderAndServersDoNot) {
  SlurmRun run = small_run();
  run.machine.script = ScriptCommand{
      .text = "python3 train.py --name 'a b'", .directory = "/shared/job", .environment = {{"SEED", "it's"}}};
  const std::string worker = batch_script(run, {.launches = {0}, .role = {.type = "a100"}});
  EXPECT_NE(worker.find("--chdir='/shared/job' /bin/sh -c 'trap : TERM\npython3 train.py --name '\\''a b'\\'''\n"),
            std::string::npos)
      << worker;
  EXPECT_NE(worker.find("export SEED='it'\\''s'\n"), std::string::npos);
  EXPECT_NE(worker.find("export MAYFLY_TOKEN_FILE='/shared/100%/run/token'\n"), std::string::npos)
      << "not the token itself";
  const std::string server = batch_script(run, {.launches = {1}, .role = {.server = true}});
  EXPECT_NE(server.find("mayfly-train' server --join"), std::string::npos) << server;
}

}  // namespace
}  // namespace mayfly
