#include "data/shared_prep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "base/rng.h"

namespace mayfly {
namespace {

using namespace std::chrono_literals;

/// What the processes of a test tell each other.
struct Board {
  std::array<std::atomic<int>, 1000> prepared{};  ///< times, by chunk
  std::atomic<int> arrived = 0;
  std::atomic<int> stuck = 0;
  std::atomic<std::int64_t> taken = 0;
};

/// A board, a name of its own, and processes that work; those that are left at the end are killed.
class SharedPrepTest : public testing::Test {
 protected:
  SharedPrepTest()
      : board_(new(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board{}),
        options_{
            .name = fmt::format("test-{}-{}", ::getpid(), testing::UnitTest::GetInstance()->random_seed() + count_++),
            .key = 1,
            .inputs = 100,
            .labels = 3,
            .buffers = 4,
            .ahead = 4,
            .patience = Seconds(60)} {}
  ~SharedPrepTest() override {
    for (const auto child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    std::filesystem::remove(path());
    ::munmap(board_, sizeof(Board));
  }
  std::string path() const { return fmt::format("/dev/shm/mayfly-{}-{}", ::geteuid(), options_.name); }

  /// The process ends with what `work` returns.
  pid_t start(const std::function<int()>& work) {
    const auto child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(work());
    }
    children_.push_back(child);
    return child;
  }
  /// How a process ended; below 0: by this signal.
  int ending(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    std::erase(children_, child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  SharedPrep::Prepare preparing() {
    return [this](std::int64_t chunk, std::span<float> inputs, std::span<std::int64_t> labels) -> Result<void> {
      ++board_->prepared[static_cast<std::size_t>(chunk)];
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(chunk * 1000 + std::int64_t(i));
      for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = chunk * 10 + std::int64_t(i);
      return {};
    };
  }
  /// Whether the chunk came, and came right.
  bool take(SharedPrep& prep, std::int64_t chunk, const SharedPrep::Prepare& prepare) {
    std::vector<float> inputs(options_.inputs, -1);
    std::vector<std::int64_t> labels(options_.labels, -1);
    if (!prep.take(chunk, prepare, inputs, labels)) return false;
    ++board_->taken;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != static_cast<float>(chunk * 1000 + std::int64_t(i))) return false;
    }
    return labels == std::vector<std::int64_t>{chunk * 10, chunk * 10 + 1, chunk * 10 + 2};
  }
  bool take(SharedPrep& prep, std::int64_t chunk) { return take(prep, chunk, preparing()); }
  void meet(int members) {
    ++board_->arrived;
    while (board_->arrived < members) std::this_thread::sleep_for(1ms);
  }
  /// Takes `chunks` chunks; the first one before the others come, so that all are in step.
  int run_member(int members, std::int64_t chunks) {
    auto prep = SharedPrep::join(options_);
    if (!prep || !take(**prep, 0)) return 2;
    meet(members);
    for (std::int64_t chunk = 1; chunk < chunks; ++chunk) {
      if (!take(**prep, chunk)) return 3;
    }
    return 0;
  }

  static inline int count_ = 0;
  Board* board_;
  SharedPrep::Options options_;
  std::vector<pid_t> children_{};
};

TEST_F(SharedPrepTest, EveryChunkIsPreparedOnceAndTakenByAll) {
  constexpr int kChunks = 300;
  for (int i = 0; i < 3; ++i) start([&] { return run_member(3, kChunks); });
  for (const auto child : std::vector(children_)) EXPECT_EQ(ending(child), 0);
  EXPECT_EQ(board_->taken, 3 * kChunks);
  for (int chunk = 0; chunk < kChunks; ++chunk) EXPECT_EQ(board_->prepared[chunk], 1) << chunk;
  for (int chunk = kChunks + options_.ahead + 1; chunk < 1000; ++chunk) EXPECT_EQ(board_->prepared[chunk], 0) << chunk;
  EXPECT_FALSE(std::filesystem::exists(path())) << "the last to leave removes it";
}

TEST_F(SharedPrepTest, ThreadsOfOneMemberTakeChunksSideBySide) {
  auto prep = SharedPrep::join(options_);
  ASSERT_TRUE(prep) << prep.error().message;
  std::atomic<std::int64_t> next = 0;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        for (auto chunk = next++; chunk < 300; chunk = next++) wrong += take(**prep, chunk) ? 0 : 1;
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(board_->taken, 300);
}

TEST_F(SharedPrepTest, WhatAKilledMemberWasPreparingIsPreparedByAnother) {
  const auto dying = start([&] {
    auto prep = SharedPrep::join(options_);
    return prep && take(**prep, 0, [&](auto, auto, auto) -> Result<void> {
             board_->stuck = 1;
             while (true) ::pause();
           });
  });
  while (board_->stuck == 0) std::this_thread::sleep_for(1ms);
  const auto living = start([&] { return run_member(1, 50); });
  std::this_thread::sleep_for(20ms);
  ::kill(dying, SIGKILL);
  EXPECT_EQ(ending(dying), -SIGKILL);
  EXPECT_EQ(ending(living), 0);
}

// With a patience of a minute and an alarm after one, waiting for the dead would fail.
TEST_F(SharedPrepTest, WhoeverIsKilledAtAnyMomentHoldsNobodyUp) {
  Rng rng(7);
  int killed = 0;
  for (int round = 0; round < 30; ++round) {
    board_->arrived = 0;
    for (int i = 0; i < 3; ++i) start([&] { return run_member(3, 400); });
    while (board_->arrived < 3) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(5000)));
    const auto victim = children_[static_cast<std::size_t>(rng.below(3))];
    ::kill(victim, SIGKILL);
    for (const auto child : std::vector(children_)) {
      const int end = ending(child);
      EXPECT_TRUE(end == 0 || (child == victim && end == -SIGKILL)) << end;
      killed += end == 0 ? 0 : 1;
    }
  }
  EXPECT_GT(killed, 0);
}

TEST_F(SharedPrepTest, AllKilledLeaveAPlaceThatTheNextTakeAnew) {
  for (int i = 0; i < 2; ++i) start([&] { return run_member(3, 400); });  // the third never comes
  while (board_->arrived < 2) std::this_thread::sleep_for(1ms);
  for (const auto child : std::vector(children_)) {
    ::kill(child, SIGKILL);
    ending(child);
  }
  EXPECT_TRUE(std::filesystem::exists(path()));
  options_.key = 2;  // even other data
  auto prep = SharedPrep::join(options_);
  ASSERT_TRUE(prep) << prep.error().message;
  EXPECT_TRUE(take(**prep, 0));
}

TEST_F(SharedPrepTest, AFrozenMemberIsLeftBehindAndGoesOnWhenItThaws) {
  options_.patience = Seconds(0.2);
  const auto frozen = start([&] {
    auto prep = SharedPrep::join(options_);
    if (!prep || !take(**prep, 0)) return 2;
    meet(2);
    ::raise(SIGSTOP);
    for (std::int64_t chunk = 1; chunk < 200; ++chunk) {
      if (!take(**prep, chunk)) return 3;
    }
    return 0;
  });
  const auto awake = start([&] { return run_member(2, 200); });
  EXPECT_EQ(ending(awake), 0);
  ::kill(frozen, SIGCONT);
  EXPECT_EQ(ending(frozen), 0);
}

TEST_F(SharedPrepTest, AFrozenPreparerLosesItsLeaseAndHarmsNothingWhenItThaws) {
  options_.patience = Seconds(0.2);
  const auto prepare = preparing();
  const auto frozen = start([&] {
    auto prep = SharedPrep::join(options_);
    const auto slow = [&](auto chunk, auto inputs, auto labels) -> Result<void> {
      for (auto& input : inputs.first(inputs.size() / 2)) input = -7;
      if (chunk == 0) ::raise(SIGSTOP);
      for (auto& input : inputs) input = -7;
      return prepare(chunk, inputs, labels);
    };
    for (std::int64_t chunk = 0; chunk < 100; ++chunk) {
      if (!prep || !take(**prep, chunk, slow)) return 3;
    }
    return 0;
  });
  int status = 0;
  ASSERT_EQ(::waitpid(frozen, &status, WUNTRACED), frozen);
  ASSERT_TRUE(WIFSTOPPED(status));
  const auto awake = start([&] { return run_member(1, 300); });
  while (board_->taken < 100) std::this_thread::sleep_for(1ms);
  ::kill(frozen, SIGCONT);
  EXPECT_EQ(ending(frozen), 0);
  EXPECT_EQ(ending(awake), 0);
}

TEST_F(SharedPrepTest, WhoeverFreezesWithTheLockLeavesTheOthersAlone) {
  options_.patience = Seconds(0.2);
  auto prep = SharedPrep::join(options_);
  ASSERT_TRUE(prep) << prep.error().message;
  EXPECT_TRUE(take(**prep, 0));
  const auto frozen = start([&] {
    auto place = MeetingPlace::enter(SharedPrep::place_of(options_));
    if (!place || !(*place)->lock()) return 2;
    ::raise(SIGSTOP);
    (*place)->unlock(true);
    return 0;
  });
  int status = 0;
  ASSERT_EQ(::waitpid(frozen, &status, WUNTRACED), frozen);
  for (std::int64_t chunk = 1; chunk < 20; ++chunk) EXPECT_TRUE(take(**prep, chunk)) << chunk;
  EXPECT_EQ((*prep)->in_step(), 0);
  EXPECT_FALSE(std::filesystem::exists(path())) << "the next to come make another";
  ::kill(frozen, SIGCONT);
  EXPECT_EQ(ending(frozen), 0);
}

// Two members in one process, to take turns by hand. 4 buffers each: a window of 8, a reach of 64.
TEST_F(SharedPrepTest, WhoComesALittleLateIsInStepAndWhoComesFarTooLateGoesAlone) {
  auto first = SharedPrep::join(options_);
  auto second = SharedPrep::join(options_);
  ASSERT_TRUE(first && second);
  for (std::int64_t chunk = 0; chunk < 10; ++chunk) EXPECT_TRUE(take(**first, chunk));
  EXPECT_TRUE(take(**second, 0));
  EXPECT_EQ((*second)->in_step(), 2);
  second->reset();
  for (std::int64_t chunk = 10; chunk < 100; ++chunk) EXPECT_TRUE(take(**first, chunk));
  auto third = SharedPrep::join(options_);
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_TRUE(take(**third, 0));
  EXPECT_EQ((*third)->in_step(), 0);
  EXPECT_TRUE(take(**third, 100)) << "where the others are";
  EXPECT_EQ((*third)->in_step(), 2);
}

TEST_F(SharedPrepTest, WhatCannotBePreparedIsAnErrorForWhoAsksForIt) {
  auto prep = SharedPrep::join(options_);
  ASSERT_TRUE(prep) << prep.error().message;
  std::vector<float> inputs(options_.inputs);
  std::vector<std::int64_t> labels(options_.labels);
  const auto broken = [](auto, auto, auto) -> Result<void> { return fail("cat.jpg: broken"); };
  const auto taken = (*prep)->take(0, broken, inputs, labels);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "cat.jpg: broken");
  EXPECT_TRUE(take(**prep, 0)) << "and may be tried again";
}

TEST_F(SharedPrepTest, OtherDataUnderTheSameNameIsRefused) {
  auto first = SharedPrep::join(options_);
  ASSERT_TRUE(first) << first.error().message;
  auto others = options_;
  others.key = 2;
  const auto refused = SharedPrep::join(others);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, path() + ": what others share there is of another kind");
  others = options_;
  others.labels = 4;
  EXPECT_FALSE(SharedPrep::join(others));
  EXPECT_TRUE(take(**first, 0)) << "and the first is none the worse";
}

TEST_F(SharedPrepTest, ANameIsOfAFewSigns) {
  for (const auto* name : {"", "../up", "a b", "a/b"}) {
    options_.name = name;
    EXPECT_FALSE(SharedPrep::join(options_)) << name;
  }
}

}  // namespace
}  // namespace mayfly
