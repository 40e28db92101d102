#include "wire/loop.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace mayfly {
namespace {

/// Runs until stopped; a test that hangs ends with a failure.
void run(Loop& loop, Seconds most = Seconds(5)) {
  Timer timer(loop);
  bool late = false;
  timer.start(most, [&] {
    late = true;
    loop.stop();
  });
  loop.run();
  EXPECT_FALSE(late) << "nothing happened in " << most.count() << " s";
}

TEST(Loop, StopBeforeRunIsNotLost) {
  Loop loop;
  loop.stop();
  run(loop);
}

TEST(Loop, WorkFromOtherThreadsRunsInItsOwn) {
  Loop loop;
  std::thread::id where;
  std::thread other([&] {
    loop.post([&] {
      where = std::this_thread::get_id();
      loop.stop();
    });
  });
  run(loop);
  other.join();
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Timer, StartedAgainForgetsTheEarlierCall) {
  Loop loop;
  Timer timer(loop);
  int calls = 0;
  timer.start(Seconds(0), [&] { calls += 100; });
  timer.start(Seconds(0.01), [&] {
    ++calls;
    loop.stop();
  });
  run(loop);
  EXPECT_EQ(calls, 1);
}

TEST(Timer, CancelledWhileItsCallWaitsItStaysSilent) {
  Loop loop;
  Timer first(loop), second(loop), end(loop);
  int calls = 0;
  // Both are due when the loop wakes: the one that runs cancels the other, whose call is already in the queue.
  const auto call = [&] {
    ++calls;
    first.cancel();
    second.cancel();
  };
  first.start(Seconds(0.001), call);
  second.start(Seconds(0.001), call);
  std::this_thread::sleep_for(Seconds(0.01));
  end.start(Seconds(0.02), [&] { loop.stop(); });
  run(loop);
  EXPECT_EQ(calls, 1);
}

TEST(Timer, MayBeDestroyedByItsOwnCall) {
  Loop loop;
  auto timer = std::make_unique<Timer>(loop);
  timer->start(Seconds(0), [&] {
    timer.reset();
    loop.stop();
  });
  run(loop);
  EXPECT_EQ(timer, nullptr);
}

TEST(SignalWatch, CallsEveryTime) {
  Loop loop;
  int calls = 0;
  SignalWatch watch(loop, {SIGUSR1}, [&](int signal) {
    EXPECT_EQ(signal, SIGUSR1);
    if (++calls == 2) return loop.stop();
    ::raise(SIGUSR1);
  });
  ::raise(SIGUSR1);
  run(loop);
  EXPECT_EQ(calls, 2);
}

TEST(SignalWatch, HearsWhatCameBeforeAndLeavesNoGapBehind) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, nullptr), 0);
  ::raise(SIGUSR1);
  Loop loop;
  {
    SignalWatch watch(loop, {SIGUSR1}, [&](int) { loop.stop(); });
    run(loop);
  }
  ::raise(SIGUSR1);  // would end this process
  int signal = 0;
  EXPECT_EQ(::sigwait(&blocked, &signal), 0);
  EXPECT_EQ(signal, SIGUSR1);
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
}

TEST(DescriptorWatch, CallsWhenAProcessHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  ASSERT_GE(descriptor, 0);
  Loop loop;
  bool killed = false;
  DescriptorWatch watch(loop, descriptor, [&] {
    EXPECT_TRUE(killed);
    loop.stop();
  });
  Timer timer(loop);
  timer.start(Seconds(0.02), [&] {
    killed = true;
    ::kill(child, SIGKILL);
  });
  run(loop);
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), child);
}

TEST(DescriptorWatch, ClosesItsDescriptor) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Loop loop;
  {
    DescriptorWatch watch(loop, ends[0], [] { ADD_FAILURE(); });
  }
  EXPECT_EQ(::read(ends[0], ends, 1), -1);
  EXPECT_EQ(errno, EBADF);
  ::close(ends[1]);
}

}  // namespace
}  // namespace mayfly
