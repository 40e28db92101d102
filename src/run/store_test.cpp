#include "run/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "support/temp_folder.h"

namespace mayfly {
namespace {

struct StoreTest : testing::Test {
  support::TempFolder own{};
  const std::filesystem::path& folder = own.path();
};

TEST_F(StoreTest, GivesBackWhatItWasTold) {
  {
    auto store = Store::open(folder / "state.db");
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->append({Seconds(1), Joined{.worker = 3, .type = "a"}}));
    ASSERT_TRUE(store->append_remark(R"({"t_s":1.5,"remark":"x"})"));
    ASSERT_TRUE(store->note("port", "1234"));
    ASSERT_TRUE(store->note("port", "4321"));
  }
  auto store = Store::open(folder / "state.db");
  ASSERT_TRUE(store);
  const auto lines = store->lines();
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 2);
  EXPECT_EQ(event_in((*lines)[0]), (TimedEvent{Seconds(1), Joined{.worker = 3, .type = "a"}}));
  EXPECT_EQ(store->noted("port"), "4321");
  EXPECT_FALSE(store->noted("nothing"));
}

TEST_F(StoreTest, StepsThatFollowEachOtherBecomeOne) {
  auto store = Store::open(folder / "state.db");
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->append({Seconds(1), StepCommitted{1, 0, 8}}));
  ASSERT_TRUE(store->append({Seconds(2), StepCommitted{1, 8, 8}}));
  ASSERT_TRUE(store->append({Seconds(3), StepCommitted{2, 16, 8}}));  // another generation
  ASSERT_TRUE(store->append({Seconds(4), Lost{1}}));
  ASSERT_TRUE(store->append({Seconds(5), StepCommitted{2, 24, 8}}));  // something came between
  const auto lines = store->lines();
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 4);
  EXPECT_EQ(event_in((*lines)[0]), (TimedEvent{Seconds(2), StepCommitted{1, 0, 16}}));
}

TEST_F(StoreTest, OneRunIsDrivenByOneProcess) {
  const auto first = Store::open(folder / "state.db");
  ASSERT_TRUE(first);
  const auto second = Store::open(folder / "state.db");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another process drives this run"), std::string::npos);
}

// A child that was being started when its parent was killed has the files for a moment longer.
TEST_F(StoreTest, WaitsForAProcessThatIsGoing) {
  auto first = std::make_unique<Result<Store>>(Store::open(folder / "state.db"));
  ASSERT_TRUE(*first);
  int held[2];
  ASSERT_EQ(::pipe(held), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(held[1]);
    char none = 0;
    static_cast<void>(::read(held[0], &none, 1));  // until the other end is closed
    ::_exit(0);
  }
  ::close(held[0]);
  first.reset();
  std::thread waits([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::close(held[1]);
  });
  const auto second = Store::open(folder / "state.db");
  waits.join();
  EXPECT_TRUE(second) << second.error().message;
  ::waitpid(child, nullptr, 0);
}

TEST_F(StoreTest, AFileThatIsNoStoreIsNamed) {
  const auto path = folder / "state.db";
  std::FILE* file = std::fopen(path.c_str(), "w");
  for (int i = 0; i < 100; ++i) std::fputs("this is no database, whatever its name says\n", file);
  std::fclose(file);
  const auto store = Store::open(path);
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("state.db"), std::string::npos);
}

}  // namespace
}  // namespace mayfly
