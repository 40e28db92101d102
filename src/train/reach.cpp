#include "train/reach.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "train/data_link.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;

/// Connections that take longer are looked after.
constexpr Seconds kLooksAfter{1.5};
/// Between two looks at whether it is over.
constexpr int kSliceMs = 20;

void set(int socket, int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); }

/// The machine has said something, be it that nobody listens.
bool answered(int error) { return error == 0 || error == ECONNREFUSED || error == ECONNRESET; }

/// The attempt is on its way, or has been answered already (-1).
struct Attempt {
  int socket = -1;
  std::size_t place = 0;
};

Attempt begun(const std::string& place, std::size_t number, std::vector<std::size_t>& missing) {
  const auto address = socket_address(place);
  if (!address) return {};  // no place at all: others say so
  Attempt attempt{.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .place = number};
  const bool now = ::connect(attempt.socket, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0;
  if (!now && errno == EINPROGRESS) return attempt;
  if (!now && !answered(errno)) missing.push_back(number);
  ::close(attempt.socket);
  return {};
}

}  // namespace

std::vector<std::size_t> Reach::missing(std::span<const std::string> places, Seconds patience) {
  const auto end = Clock::now() + patience;
  std::vector<std::size_t> found;
  std::vector<Attempt> attempts;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (const Attempt attempt = begun(places[i], i, found); attempt.socket >= 0) attempts.push_back(attempt);
  }
  while (!attempts.empty() && !over_ && Clock::now() < end) {
    std::vector<pollfd> waiting;
    for (const Attempt& attempt : attempts) waiting.push_back({.fd = attempt.socket, .events = POLLOUT, .revents = 0});
    ::poll(waiting.data(), waiting.size(), kSliceMs);
    for (std::size_t i = attempts.size(); i-- > 0;) {
      if (waiting[i].revents == 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(attempts[i].socket, SOL_SOCKET, SO_ERROR, &error, &size);
      if (!answered(error)) found.push_back(attempts[i].place);
      ::close(attempts[i].socket);
      attempts.erase(attempts.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (const Attempt& attempt : attempts) {
    found.push_back(attempt.place);
    ::close(attempt.socket);
  }
  if (over_) return {};
  std::sort(found.begin(), found.end());
  return found;
}

ReachWatch::ReachWatch(std::vector<std::string> places, std::function<void()> missed)
    : places_(std::move(places)), thread_([this, missed = std::move(missed)] { look(missed); }) {}

ReachWatch::~ReachWatch() { end(); }

void ReachWatch::look(const std::function<void()>& missed) {
  {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, kLooksAfter, [&] { return over_; })) return;
  }
  auto missing = reach_.missing(places_, kReachPatience);
  if (missing.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    missing_ = std::move(missing);
  }
  missed();
}

std::vector<std::size_t> ReachWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  reach_.abort();
  if (thread_.joinable()) thread_.join();
  return missing_;
}

void limit_silence(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 4000);
}

}  // namespace mayfly
