#include "engine/local_engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "engine/process.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

/// What a machine that runs this text of a shell has written when it is gone.
std::string output_of(const std::string& text) {
  const support::TempFolder folder;
  Loop loop;
  LocalEngine engine(loop,
                     {.run = folder.path().filename().string(),
                      .script = ScriptCommand{.text = text, .directory = folder.path()},
                      .logs = folder.path()},
                     {.seen = [&](const Sighting& sight) {
                       if (sight.stage == Sighting::Stage::gone) loop.stop();
                     }});
  const Order order{.launch = 0};
  engine.order({&order, 1});
  loop.run();
  return load_text(engine.log(0)).value_or("");
}

// A lock is of an open file: a machine that had it too would hold it for longer than its controller lives.
TEST(LocalEngine, AMachineHasNoOpenFileOfItsController) {
  const support::TempFolder folder;
  const auto path = folder.path() / "lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  const std::string files = output_of("for file in /proc/$$/fd/*; do readlink $file; done; echo listed");
  ::close(file);
  EXPECT_NE(files.find("listed"), std::string::npos) << files;
  EXPECT_EQ(files.find(path.string()), std::string::npos) << files;
}

// First there is no room for another open file, then there is; a folder that is missing is another matter.
TEST(LocalEngine, WhatCannotBeStartedNowMayBeStartedLater) {
#ifdef MAYFLY_SANITIZED
  GTEST_SKIP() << "sanitizers need open files themselves";
#endif
  const support::TempFolder folder;
  Loop loop;
  std::vector<Ending> endings;
  const auto seen = [&](const Sighting& sight) {
    if (sight.ending) endings.push_back(*sight.ending);
    if (sight.ending) loop.stop();
  };
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const auto ordered = [&](const std::filesystem::path& directory, rlim_t files) {
    LocalEngine engine(loop,
                       {.run = folder.path().filename().string(),
                        .script = ScriptCommand{.text = "true", .directory = directory},
                        .logs = folder.path()},
                       {.seen = seen});
    const Order order{.launch = static_cast<int>(endings.size())};
    const rlimit few{.rlim_cur = files, .rlim_max = usual.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    engine.order({&order, 1});
    ::setrlimit(RLIMIT_NOFILE, &usual);
    loop.run();
  };
  ordered(folder.path(), 0);
  ordered(folder.path(), usual.rlim_cur);
  ordered(folder.path() / "nowhere", usual.rlim_cur);
  ASSERT_EQ(endings.size(), 3u);
  EXPECT_EQ(endings[0].kind, Ending::Kind::refused);
  EXPECT_EQ(endings[0].how, "a process cannot be started: Too many open files");
  EXPECT_EQ(endings[1].kind, Ending::Kind::finished) << endings[1].how;
  EXPECT_EQ(endings[2].kind, Ending::Kind::failed);
  EXPECT_EQ(endings[2].how, "true cannot be started: No such file or directory");
}

/// A script that leaves a process in a session of its own, whose number is in `child`.
struct Shop {
  explicit Shop(const std::string& rest) : script("setsid sleep 100000 & echo $! > part; mv part child\n" + rest) {}

  std::unique_ptr<LocalEngine> engine() {
    return std::make_unique<LocalEngine>(
        loop,
        LocalEngine::Options{.run = folder.path().filename().string(),
                             .script = ScriptCommand{.text = script, .directory = folder.path()},
                             .logs = folder.path()},
        Engine::Calls{.seen = [this](const Sighting& sight) {
          if (sight.stage == Sighting::Stage::gone) loop.stop();
        }});
  }
  /// Once it is there.
  pid_t child() const {
    std::optional<int> number;
    for (int i = 0; i < 6000 && !number; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (const auto text = load_text(folder.path() / "child")) number = parse_integer(trimmed(*text));
    }
    return number.value_or(0);
  }

  support::TempFolder folder{};
  std::string script;
  Loop loop{};
};

const std::array kOne{Order{}};

/// Waits for it, as the kernel takes its time.
bool ends(pid_t pid) {
  for (int i = 0; i < 6000 && start_ticks(pid) != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return start_ticks(pid) == 0;
}

TEST(LocalEngine, WhatAScriptHasLeftBehindEndsWithIt) {
  Shop shop("exit 0");
  const auto engine = shop.engine();
  engine->order(kOne);
  const pid_t child = shop.child();
  ASSERT_GT(child, 0);
  shop.loop.run();
  EXPECT_TRUE(ends(child));
}

TEST(LocalEngine, WhatAScriptHasStartedEndsWhenItIsEnded) {
  Shop shop("sleep 100000");
  const auto engine = shop.engine();
  engine->order(kOne);
  const pid_t child = shop.child();
  ASSERT_GT(child, 0);
  engine->end(0);
  shop.loop.run();
  EXPECT_TRUE(ends(child));
}

TEST(LocalEngine, ASweepEndsEverythingOfTheRun) {
  Shop shop("sleep 100000");
  const auto engine = shop.engine();
  engine->order(kOne);
  const pid_t child = shop.child();
  ASSERT_GT(child, 0);
  engine->sweep();
  EXPECT_TRUE(ends(child));
  shop.loop.run();
}

TEST(LocalEngine, WhatIsLeftOfAMachineThatEndedUnseenIsEnded) {
  Shop shop("sleep 100000");
  auto engine = shop.engine();
  engine->order(kOne);
  const pid_t child = shop.child(), machine = engine->pid(0);
  ASSERT_GT(child, 0);
  engine.reset();
  ASSERT_EQ(::kill(-machine, SIGKILL), 0);
  ASSERT_EQ(::waitpid(machine, nullptr, 0), machine);
  EXPECT_NE(start_ticks(child), 0) << "it is of another group";
  engine = shop.engine();
  engine->adopt(kOne);
  EXPECT_TRUE(ends(child));
}

TEST(LocalEngine, AMachineIsFoundAgainBesideWhatItHasStarted) {
  Shop shop("sleep 100000");
  auto engine = shop.engine();
  engine->order(kOne);
  const pid_t child = shop.child(), machine = engine->pid(0);
  ASSERT_GT(child, 0);
  engine.reset();
  engine = shop.engine();
  engine->adopt(kOne);
  EXPECT_EQ(engine->pid(0), machine);
  EXPECT_NE(start_ticks(child), 0);
  engine->end(0);
  shop.loop.run();
  EXPECT_TRUE(ends(child));
}

}  // namespace
}  // namespace mayfly
