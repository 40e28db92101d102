#include "wire/loop.h"

#include "wire/loop_parts.h"
// loop_parts.h chooses asio without Boost for what follows.
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <utility>

namespace mayfly {

Loop::Loop() : parts_(std::make_unique<Parts>()) {}
Loop::~Loop() = default;

void Loop::run() {
  parts_->context.run();
  parts_->context.restart();
}
void Loop::stop() { parts_->context.stop(); }
void Loop::post(std::function<void()> work) { asio::post(parts_->context, std::move(work)); }

struct Timer::Parts {
  explicit Parts(Loop& loop) : timer(loop.parts().context) {}
  asio::steady_timer timer;
  /// A call that is already on its way cannot be taken back: it sees that its turn is over.
  std::shared_ptr<std::uint64_t> turn = std::make_shared<std::uint64_t>(0);
};

Timer::Timer(Loop& loop) : parts_(std::make_unique<Parts>(loop)) {}
Timer::Timer(Timer&&) noexcept = default;
Timer::~Timer() {
  if (parts_) cancel();
}

void Timer::start(Seconds after, std::function<void()> call) {
  parts_->timer.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(after));
  const auto mine = ++*parts_->turn;
  parts_->timer.async_wait([turn = parts_->turn, mine, call = std::move(call)](const asio::error_code& error) {
    if (!error && *turn == mine) call();
  });
}

void Timer::cancel() {
  ++*parts_->turn;
  parts_->timer.cancel();
}

struct SignalWatch::Parts : std::enable_shared_from_this<Parts> {
  Parts(Loop& loop, std::function<void(int)> todo) : signals(loop.parts().context), call(std::move(todo)) {}
  asio::signal_set signals;
  std::function<void(int)> call;
  sigset_t let_through{};  ///< were blocked before
  bool over = false;

  void wait() {
    signals.async_wait([self = shared_from_this()](const asio::error_code& error, int signal) {
      if (error || self->over) return;
      self->wait();
      self->call(signal);
    });
  }
};

SignalWatch::SignalWatch(Loop& loop, std::initializer_list<int> signals, std::function<void(int)> call)
    : parts_(std::make_shared<Parts>(loop, std::move(call))) {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  sigemptyset(&parts_->let_through);
  for (const int signal : signals) {
    parts_->signals.add(signal);
    if (sigismember(&blocked, signal) == 1) sigaddset(&parts_->let_through, signal);
  }
  parts_->wait();
  ::pthread_sigmask(SIG_UNBLOCK, &parts_->let_through, nullptr);
}
SignalWatch::~SignalWatch() {
  ::pthread_sigmask(SIG_BLOCK, &parts_->let_through, nullptr);
  parts_->over = true;
  parts_->signals.clear();
  parts_->signals.cancel();
}

struct DescriptorWatch::Parts {
  Parts(Loop& loop, int fd, std::function<void()> todo) : descriptor(loop.parts().context, fd), call(std::move(todo)) {}
  asio::posix::stream_descriptor descriptor;
  std::function<void()> call;
  bool over = false;
};

DescriptorWatch::DescriptorWatch(Loop& loop, int descriptor, std::function<void()> call)
    : parts_(std::make_shared<Parts>(loop, descriptor, std::move(call))) {
  parts_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                [parts = parts_](const asio::error_code& error) {
                                  if (!error && !parts->over) parts->call();
                                });
}
DescriptorWatch::~DescriptorWatch() {
  parts_->over = true;
  asio::error_code ignored;
  parts_->descriptor.close(ignored);
}

}  // namespace mayfly
