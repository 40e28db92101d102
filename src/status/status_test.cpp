#include "status/status.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "status/folder.h"
#include "status/story.h"
#include "status/summary.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

using support::TempFolder;

void write(const std::filesystem::path& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

TEST(RunStatus, ComesBackAsItWasWritten) {
  const RunStatus status{.job = "count",
                         .phase = "training",
                         .controller = {12, 345},
                         .front = {11, 344},
                         .host = "here",
                         .boot = "b",
                         .written = 1'700'000'000,
                         .time = Seconds(12.5),
                         .step = 7,
                         .samples = 700,
                         .target = 1000,
                         .epochs = 0.7,
                         .loss = 0.25,
                         .samples_per_s = 56,
                         .left = Seconds(5.25),
                         .deadline = Seconds(60),
                         .deadline_met = true,
                         .cost = Usd{0.5},
                         .budget = Usd{2},
                         .machines = {{.name = "w1",
                                       .launch = 0,
                                       .where = "pid 99",
                                       .stage = "running",
                                       .pid = 99,
                                       .type = "g4dn.xlarge",
                                       .zone = "a",
                                       .market = "spot",
                                       .price = {0.2},
                                       .since = Seconds(1),
                                       .state = "training"}},
                         .preemptions = 3,
                         .samples_redone = 20,
                         .checkpoint = "/a/b",
                         .remarks = {{Seconds(2), "w1 is ready"}}};
  const auto read = parse_status(status_json(status).dump(), "status.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, status);
}

TEST(RunStatus, AnotherFormatIsRefused) {
  const auto read = parse_status(R"({"format": "mayfly-status/9"})", "status.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "status.json: format 'mayfly-status/9', want mayfly-status/1");
  EXPECT_FALSE(parse_status("[1", "status.json"));
}

TEST(RunStatus, ValuesOfAnotherKindCountAsAbsent) {
  const auto read =
      parse_status(R"({"format": "mayfly-status/1", "loss": "low", "machines": [1, {}], "front": 3})", "f");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->loss);
  EXPECT_EQ(read->machines.size(), 1U);
  EXPECT_EQ(read->front.pid, 0);
}

TEST(RunLock, IsHeldByOneAndGivenBack) {
  const TempFolder folder;
  EXPECT_FALSE(driven(folder.path()));
  {
    const auto lock = RunLock::take(folder.path());
    ASSERT_TRUE(lock);
    EXPECT_TRUE(driven(folder.path()));
    const auto second = RunLock::take(folder.path());
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("is driven already"), std::string::npos);
  }
  EXPECT_FALSE(driven(folder.path()));
  EXPECT_TRUE(RunLock::take(folder.path()));
}

TEST(RunLock, IsNotTakenWhereOthersPutThings) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "run.lock").c_str(), 0600), 0);
  EXPECT_FALSE(RunLock::take(folder.path()));
  std::filesystem::remove(folder.path() / "run.lock");
  std::filesystem::create_symlink("/dev/null", folder.path() / "token");
  EXPECT_FALSE(RunLock::take(folder.path()));
  std::filesystem::remove(folder.path() / "token");
  EXPECT_TRUE(RunLock::take(folder.path()));
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives folders away";
  ASSERT_EQ(::chown(folder.path().c_str(), 12345, 12345), 0);
  EXPECT_FALSE(RunLock::take(folder.path()));
}

// Whoever opened one of these pipes would wait for a writer for ever.
TEST(RunView, PipesInAFolderAreNotWaitedFor) {
  const TempFolder folder;
  write(folder.path() / "request.json", "{}");
  for (const char* name : {"run.lock", "status.json", "summary.json", "journal.jsonl"})
    ASSERT_EQ(::mkfifo((folder.path() / name).c_str(), 0600), 0);
  EXPECT_FALSE(driven(folder.path()));
  EXPECT_EQ(view_run(folder.path()).life, RunLife::lost);
  EXPECT_FALSE(load_summary(folder.path()));
  EXPECT_TRUE(LineTail(folder.path() / "journal.jsonl").next(true).lines.empty());
}

TEST(RunView, AFolderWithoutARequestHoldsNoRun) {
  const TempFolder folder;
  EXPECT_EQ(view_run(folder.path()).life, RunLife::none);
  write(folder.path() / "request.json", "{}");
  EXPECT_EQ(view_run(folder.path()).life, RunLife::lost);
  const auto lock = RunLock::take(folder.path());
  EXPECT_EQ(view_run(folder.path()).life, RunLife::starting);
}

TEST(RunView, ARunThatNobodyDrivesIsLostUnlessItSaidThatItEnded) {
  const TempFolder folder;
  write(folder.path() / "request.json", "{}");
  RunStatus status{.phase = "training"};
  write(folder.path() / "status.json", status_json(status).dump());
  EXPECT_EQ(view_run(folder.path()).life, RunLife::lost);
  status = {.phase = "ended", .end = "stopped"};
  write(folder.path() / "status.json", status_json(status).dump());
  EXPECT_EQ(view_run(folder.path()).life, RunLife::stopped);
  status.end = "trained";
  write(folder.path() / "status.json", status_json(status).dump());
  EXPECT_EQ(view_run(folder.path()).life, RunLife::finished);
}

TEST(ProcessId, ANumberWithAnotherStartIsAnotherProcess) {
  ProcessId self = process_numbered(::getpid());
  EXPECT_TRUE(alive(self));
  EXPECT_TRUE(send_signal(self, 0));
  ++self.started;
  EXPECT_FALSE(alive(self));
  EXPECT_FALSE(send_signal(self, 0));
  EXPECT_FALSE(alive({}));
}

TEST(ProcessId, AFrozenProcessIsToldFromOneThatWaits) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  const ProcessId process = process_numbered(child);
  EXPECT_FALSE(frozen(process));
  ::kill(child, SIGSTOP);
  ::waitpid(child, nullptr, WUNTRACED);
  EXPECT_TRUE(frozen(process));
  EXPECT_FALSE(frozen({.pid = child, .started = process.started + 1}));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(frozen(process));
}

TEST(StoryLine, TellsEventsInWordsAndLeavesStepsOut) {
  EXPECT_EQ(story_line(R"({"t_s":61.04,"remark":"w2 lost: ended"})"), "     1m1s  w2 lost: ended");
  EXPECT_EQ(story_line(R"({"t_s":1,"event":"committed","generation":1})"), std::nullopt);
  EXPECT_EQ(story_line(R"({"t_s":1,"event":"lost","worker":"w1","ignored":"twice"})"), std::nullopt);
  EXPECT_EQ(story_line("{torn"), std::nullopt);
  EXPECT_EQ(story_line(R"({"t_s":2,"event":"joined","worker":"w3","type":"local","market":"spot","usd_per_hour":0.0})"),
            "       2s  w3 joins: local, spot");
}

TEST(LineTail, GivesWholeLinesOnceAndSeesThatAFileWasWrittenAnew) {
  const TempFolder folder;
  const auto path = folder.path() / "log";
  LineTail tail(path);
  EXPECT_TRUE(tail.next().lines.empty());
  write(path, "a\nb\nhal");
  EXPECT_EQ(tail.next().lines, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(tail.next().lines.empty());
  write(path, "a\nb\nhalf\n");
  EXPECT_EQ(tail.next().lines, std::vector<std::string>{"half"});
  // Longer than before, but another text.
  write(path, "a\nc\nd\ne\nf\ng");
  const auto anew = tail.next();
  EXPECT_TRUE(anew.anew);
  EXPECT_EQ(anew.lines, (std::vector<std::string>{"a", "c", "d", "e", "f"}));
  EXPECT_EQ(tail.next(true).lines, std::vector<std::string>{"g"});
}

}  // namespace
}  // namespace mayfly
