#include "engine/slurm_provider.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

// What stands in for Slurm: every program writes down how it was called; squeue prints the file `queue`, and sbatch
// fails with the text of the file `refusal`, where there is one.
constexpr const char* kSbatch = R"(#!/bin/sh
cd "${0%/*}"; echo "sbatch $*" >> calls; cat > script
[ -f refusal ] && { cat refusal >&2; exit 1; }
echo 40
)";
constexpr const char* kSqueue = R"(#!/bin/sh
cd "${0%/*}"; echo squeue >> calls
[ -f down ] && { echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }
cat queue
)";
constexpr const char* kScancel = R"(#!/bin/sh
cd "${0%/*}"; echo "scancel $*" >> calls
)";

class Site {
 public:
  Site() {
    for (const auto& [name, text] : {std::pair{"sbatch", kSbatch}, {"squeue", kSqueue}, {"scancel", kScancel}}) {
      write(name, text);
      ::chmod((folder_.path() / name).c_str(), 0755);
    }
    write("queue", "");
    before_ = std::getenv("PATH");
    ::setenv("PATH", fmt::format("{}:{}", folder_.path().string(), before_).c_str(), 1);
    run.spec.spot = SlurmQueue{.partition = "spot"};
    run.machine.terms = {
        .run = "run-1", .join = "127.0.0.1:7070", .directory = folder_.path(), .now = [] { return Seconds(100); }};
    start();
  }
  ~Site() { ::setenv("PATH", before_.c_str(), 1); }

  /// As in a new process.
  void start() {
    engine.reset();
    engine = SlurmProvider::choice(run).start(loop, run.machine.terms,
                                              {.seen = [this](const Sighting& sight) { seen.push_back(sight); },
                                               .said = [this](const std::string& text) { said.push_back(text); }});
  }
  void write(const std::string& name, std::string_view text) { ASSERT_TRUE(save_text(folder_.path() / name, text)); }
  std::string calls() const { return load_text(folder_.path() / "calls").value_or(""); }
  std::string script() const { return load_text(folder_.path() / "script").value_or(""); }
  /// Lets the loop run until it holds; a minute only ends a hang.
  bool until(std::function<bool()> holds) {
    wanted_ = std::move(holds);
    Timer end(loop), tick(loop);
    bool over = false;
    end.start(Seconds(60), [&] {
      over = true;
      loop.stop();
    });
    std::function<void()> look = [&] {
      if (wanted_()) return loop.stop();
      tick.start(Seconds(0.01), look);
    };
    look();
    if (!wanted_()) loop.run();
    return !over;
  }
  std::vector<Sighting> of(int launch, Sighting::Stage stage) const {
    std::vector<Sighting> found;
    std::ranges::copy_if(seen, std::back_inserter(found),
                         [&](const Sighting& sight) { return sight.launch == launch && sight.stage == stage; });
    return found;
  }

  SlurmRun run{};
  Loop loop{};
  std::vector<Sighting> seen{};
  std::vector<std::string> said{};
  std::unique_ptr<Engine> engine{};

 private:
  support::TempFolder folder_{};
  std::string before_{};
  std::function<bool()> wanted_{};
};

std::vector<Order> orders(int first, int last, const MachineRole& role = {}) {
  std::vector<Order> all;
  for (int launch = first; launch <= last; ++launch) all.push_back({.launch = launch, .role = role});
  return all;
}

using Stage = Sighting::Stage;

TEST(SlurmMachines, MachinesThatAreAlikeAreOneArrayOfTheFirstOnesName) {
  Site site;
  site.engine->order(orders(7, 9));
  ASSERT_TRUE(site.until([&] { return site.calls().find("squeue") != std::string::npos; }));
  EXPECT_NE(site.calls().find("--job-name=run-1-7 --array=0,1,2 "), std::string::npos) << site.calls();
  for (const char* option : {"--no-requeue", "--time=1440", "--signal=TERM@60", "--partition=spot"})
    EXPECT_NE(site.calls().find(option), std::string::npos) << option;
  EXPECT_NE(site.script().find("launch=$((7 + SLURM_ARRAY_TASK_ID))"), std::string::npos) << site.script();
}

TEST(SlurmMachines, WhatTheQueueSaysIsSeenOnce) {
  Site site;
  site.write("queue", "40|0|RUNNING|n3|spot|0:30|run-1-7|None\n40|1|PENDING||spot|0:00|run-1-7|Resources\n");
  site.engine->order(orders(7, 8));
  ASSERT_TRUE(site.until([&] { return !site.of(7, Stage::running).empty() && !site.said.empty(); }));
  EXPECT_EQ(site.of(7, Stage::running).front().where, "n3, job 40_0");
  EXPECT_EQ(site.of(7, Stage::running).front().age, Seconds(30));
  EXPECT_EQ(site.of(8, Stage::ordered).back().where, "job 40_1 waits in spot: Resources");
  EXPECT_EQ(site.said, std::vector<std::string>{"1 machine waits in partition spot: Resources"});
  EXPECT_EQ(site.engine->sights().size(), 2u);
}

TEST(SlurmMachines, ARefusalIsAnEndingInSlurmsWords) {
  Site site;
  site.write("refusal",
             "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates "
             "accounting/QOS policy (job submit limit, user's size and/or time limits)\n");
  site.engine->order(orders(0, 1));
  ASSERT_TRUE(site.until([&] { return !site.of(1, Stage::gone).empty(); }));
  const Ending ending = *site.of(0, Stage::gone).front().ending;
  EXPECT_EQ(ending.kind, Ending::Kind::refused);
  EXPECT_EQ(ending.how,
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's "
            "size and/or time limits)");
  EXPECT_TRUE(site.engine->sights().empty());
}

TEST(SlurmMachines, AfterARestartTheQueueSaysWhoIsThereAndStrangersAreEnded) {
  Site site;
  // 7 runs; 8 ended with a code of its own as nobody drove it; 9 is in no queue; 12 was asked for, and that was never
  // noted.
  site.write("queue",
             "40|0|RUNNING|n3|spot|0:30|run-1-7|None\n40|1|FAILED|n3|spot|0:30|run-1-7|NonZeroExitCode\n"
             "41|0|PENDING||spot|0:00|run-1-12|Priority\n50|0|RUNNING|n1|spot|0:30|another-7|None\n");
  site.engine->adopt(orders(7, 9));
  ASSERT_TRUE(site.until([&] { return site.calls().find("scancel") != std::string::npos; }));
  EXPECT_EQ(site.calls(), "squeue\nscancel 41_0\n") << "nothing is asked for twice";
  ASSERT_TRUE(site.until([&] { return !site.of(9, Stage::gone).empty(); }));
  EXPECT_EQ(site.of(8, Stage::gone).front().ending->kind, Ending::Kind::preempted) << "no failure of its own";
  EXPECT_EQ(site.of(7, Stage::running).size(), 1u);
  EXPECT_EQ(site.engine->sights().size(), 1u);
}

TEST(SlurmMachines, AQueueThatDoesNotAnswerChangesNothing) {
  Site site;
  site.write("down", "");
  site.engine->adopt(orders(7, 7));
  ASSERT_TRUE(site.until([&] { return !site.said.empty(); }));
  EXPECT_EQ(site.said.front(),
            "Slurm does not say where machines are: slurm_load_jobs error: Unable to contact slurm controller");
  EXPECT_EQ(site.engine->sights().size(), 1u);
  EXPECT_TRUE(site.of(7, Stage::gone).empty());
}

TEST(SlurmMachines, WhatIsEndedIsCancelledOnceItsNumberIsKnown) {
  Site site;
  site.write("queue", "40|0|RUNNING|n3|spot|0:30|run-1-7|None\n40|1|CANCELLED||spot|0:00|run-1-7|None\n");
  site.engine->order(orders(7, 8));
  site.engine->end(8);  // sbatch is still at it
  ASSERT_TRUE(site.until([&] { return !site.of(8, Stage::gone).empty(); }));
  EXPECT_NE(site.calls().find("scancel 40_1\n"), std::string::npos) << site.calls();
  site.engine->tell(7);
  ASSERT_TRUE(site.until([&] { return site.calls().find("scancel --signal=TERM 40_0\n") != std::string::npos; }));
}

TEST(SlurmMachines, TheEndLeavesNothingOfTheRunInTheQueue) {
  Site site;
  site.write("queue", "40|0|RUNNING|n3|spot|0:30|run-1-7|None\n39|4|PENDING||spot|0:00|run-1-0|Priority\n");
  site.engine->order(orders(7, 7));
  site.engine->finish();
  EXPECT_NE(site.calls().find("scancel 39_4 40_0\n"), std::string::npos) << site.calls();
}

TEST(SlurmMachines, WhatCannotBeEndedIsToldAtTheEnd) {
  Site site;
  site.write("down", "");
  site.engine->finish();
  ASSERT_EQ(site.said.size(), 1u);
  EXPECT_NE(site.said.front().find("with: mayfly sweep "), std::string::npos) << site.said.front();
}

TEST(SlurmMachines, AMarketWithoutAPartitionIsRefused) {
  Site site;
  site.engine->order(orders(0, 0, {.market = Market::on_demand}));
  ASSERT_TRUE(site.until([&] { return !site.of(0, Stage::gone).empty(); }));
  EXPECT_EQ(site.of(0, Stage::gone).front().ending->how, "engine.slurm has no partition for the on-demand market");
}

}  // namespace
}  // namespace mayfly
