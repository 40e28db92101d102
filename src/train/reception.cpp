#include "train/reception.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "train/log.h"

namespace mayfly {
namespace {

/// For a stranger to prove that it is none.
constexpr std::chrono::seconds kProof{5};
/// Between two tries to get what the system had not to give.
constexpr std::chrono::milliseconds kShortage{100};

using Clock = std::chrono::steady_clock;

/// Where no thread is to be had, the library throws.
Result<std::thread> started(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    return fail("no thread: {}", error.what());
  }
}

std::string name_of(const sockaddr_in& place) {
  std::array<char, INET_ADDRSTRLEN> host{};
  ::inet_ntop(AF_INET, &place.sin_addr, host.data(), host.size());
  return fmt::format("{}:{}", host.data(), ntohs(place.sin_port));
}

/// Milliseconds for poll().
int until(Clock::time_point end) {
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count()));
}

}  // namespace

Result<std::unique_ptr<Reception>> Reception::open(Options options, Serve serve) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, options.address.c_str(), &place.sin_addr) != 1)
    return fail("'{}' is no IPv4 address to listen on", options.address);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof place;
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&place), size) != 0 ||
      ::listen(listener, SOMAXCONN) != 0 || ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size) != 0) {
    const int error = errno;
    if (listener >= 0) ::close(listener);
    return fail("listening on {}: {}", options.address, std::strerror(error));
  }
  auto address = fmt::format("{}:{}", options.address, ntohs(place.sin_port));
  std::unique_ptr<Reception> reception(
      new Reception(std::move(options), std::move(serve), listener, std::move(address)));
  auto doorman = started([door = reception.get()] { door->keep_door(); });
  if (!doorman) return unexpected(doorman.error());
  reception->doorman_ = std::move(*doorman);
  return reception;
}

Reception::Reception(Options options, Serve serve, int listener, std::string address)
    : options_(std::move(options)), serve_(std::move(serve)), listener_(listener), address_(std::move(address)) {}

Reception::~Reception() {
  close();
  turn_out([](const Guest&) { return true; });
  ::close(listener_);
}

void Reception::close() {
  if (over_.exchange(true)) return;
  ::shutdown(listener_, SHUT_RDWR);
  if (doorman_.joinable()) doorman_.join();
}

void Reception::keep_door() {
  while (!over_) {
    await_news();
    for (Pause* pause : {&descriptors_, &threads_}) {
      if (*pause && Clock::now() >= **pause) pause->reset();
    }
    hear_newcomers();
    let_in_proven();
    // What is gone gives its descriptor back before the next one is asked for, and one comes at a time: whoever answers
    // is heard before another makes it the oldest.
    reap();
    if (!over_ && !descriptors_) accept_one();
  }
  newcomers_.clear();
}

void Reception::await_news() {
  std::vector<pollfd> events = {{.fd = descriptors_ ? -1 : listener_, .events = POLLIN, .revents = 0}};
  Pause end = descriptors_;
  const auto no_later_than = [&](const Pause& time) {
    if (time) end = end ? std::min(*end, *time) : *time;
  };
  no_later_than(threads_);
  for (auto& newcomer : newcomers_) {
    if (newcomer.proven) continue;
    events.push_back(newcomer.guest->link.awaited());
    no_later_than(newcomer.until);
  }
  ::poll(events.data(), events.size(), end ? until(*end) : -1);
}

void Reception::hear_newcomers() {
  std::erase_if(newcomers_, [&](Newcomer& newcomer) {
    if (newcomer.proven) return false;
    const auto proven = newcomer.guest->link.advance_proof();
    newcomer.proven = proven && *proven;
    const bool late = !newcomer.proven && Clock::now() >= newcomer.until;
    if (!proven || late) turn_away(*newcomer.guest, proven ? "it proves nothing" : proven.error().message);
    return !proven || late;
  });
}

void Reception::accept_one() {
  sockaddr_in from{};
  socklen_t size = sizeof from;
  const int socket = ::accept4(listener_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC);
  if (socket < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && !over_)
      wait_out(descriptors_, fmt::format("accept: {}", std::strerror(errno)));
    return;
  }
  const auto unproven = [](const Newcomer& newcomer) { return !newcomer.proven; };
  if (static_cast<std::size_t>(std::ranges::count_if(newcomers_, unproven)) >= kMostUnproven) {
    const auto oldest = std::ranges::find_if(newcomers_, unproven);
    turn_away(*oldest->guest, "it made room for others");
    newcomers_.erase(oldest);
  }
  newcomers_.push_back({.guest = std::make_unique<Guest>(socket, options_.credentials, options_.network, name_of(from)),
                        .until = Clock::now() + kProof});
}

void Reception::let_in_proven() {
  std::erase_if(newcomers_, [&](Newcomer& newcomer) {
    if (!newcomer.proven || threads_) return false;
    const auto inside = let_in(newcomer.guest);
    if (!inside) wait_out(threads_, inside.error().message);
    return inside.has_value();
  });
}

/// An error leaves the guest where it was.
Result<void> Reception::let_in(std::unique_ptr<Guest>& guest) {
  const std::lock_guard lock(mutex_);
  auto& entry = entries_.emplace_back();
  entry.guest = std::move(guest);
  auto thread = started([this, &entry] { attend(entry); });
  if (!thread) {
    guest = std::move(entry.guest);
    entries_.pop_back();
    return unexpected(thread.error());
  }
  entry.thread = std::move(*thread);
  return {};
}

void Reception::wait_out(Pause& pause, const std::string& shortage) {
  pause = Clock::now() + kShortage;
  if (std::has_single_bit(++shortages_)) log("{}; tried again, {} times so far", shortage, shortages_);
}

void Reception::reap() {
  std::list<Entry> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = entries_.begin(); at != entries_.end();) {
      const auto next = std::next(at);
      if (at->done) gone.splice(gone.end(), entries_, at);
      at = next;
    }
  }
  for (auto& entry : gone) entry.thread.join();
}

void Reception::attend(Entry& entry) {
  auto& guest = *entry.guest;
  if (auto served = serve_(guest); !served) log("connection from {} dropped: {}", guest.name, served.error().message);
  if (!guest.stays) guest.link.abort();
  entry.done = true;
}

/// Ten thousand of them fill no log.
void Reception::turn_away(const Guest& guest, const std::string& why) {
  if (std::has_single_bit(++strangers_))
    log("{} connections of strangers so far; the last from {}: {}", strangers_, guest.name, why);
}

void Reception::turn_out(const std::function<bool(const Guest&)>& whom) {
  std::list<Entry> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = entries_.begin(); at != entries_.end();) {
      const auto next = std::next(at);
      if (whom(*at->guest)) {
        at->guest->link.abort();
        gone.splice(gone.end(), entries_, at);
      }
      at = next;
    }
  }
  for (auto& entry : gone) entry.thread.join();
}

}  // namespace mayfly
