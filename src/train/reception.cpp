#include "train/reception.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "train/log.h"

namespace mayfly {
namespace {

/// For a stranger to prove that it is none.
constexpr Seconds kProof{5};

}  // namespace

Result<std::unique_ptr<Reception>> Reception::open(Options options, Serve serve) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, options.address.c_str(), &place.sin_addr) != 1)
    return fail("'{}' is no IPv4 address to listen on", options.address);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof place;
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&place), size) != 0 ||
      ::listen(listener, SOMAXCONN) != 0 || ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size) != 0) {
    const int error = errno;
    if (listener >= 0) ::close(listener);
    return fail("listening on {}: {}", options.address, std::strerror(error));
  }
  auto address = fmt::format("{}:{}", options.address, ntohs(place.sin_port));
  return std::unique_ptr<Reception>(new Reception(std::move(options), std::move(serve), listener, std::move(address)));
}

Reception::Reception(Options options, Serve serve, int listener, std::string address)
    : options_(std::move(options)), serve_(std::move(serve)), listener_(listener), address_(std::move(address)) {
  acceptor_ = std::thread([this] { accept_guests(); });
}

Reception::~Reception() {
  close();
  turn_out([](const Guest&) { return true; });
  ::close(listener_);
}

void Reception::close() {
  if (over_.exchange(true)) return;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
}

void Reception::accept_guests() {
  while (true) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const int socket = ::accept4(listener_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC);
    const int error = errno;
    if (over_) {
      if (socket >= 0) ::close(socket);
      return;
    }
    if (socket >= 0) {
      std::array<char, INET_ADDRSTRLEN> host{};
      ::inet_ntop(AF_INET, &from.sin_addr, host.data(), host.size());
      admit(socket, fmt::format("{}:{}", host.data(), ntohs(from.sin_port)));
    } else if (error != EINTR && error != ECONNABORTED) {
      log("accept: {}", std::strerror(error));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // out of descriptors: some will be closed
    }
  }
}

void Reception::admit(int socket, const std::string& from) {
  std::list<Entry> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = entries_.begin(); at != entries_.end();) {
      const auto next = std::next(at);
      if (at->done) gone.splice(gone.end(), entries_, at);
      at = next;
    }
    auto& entry = entries_.emplace_back();
    entry.guest = std::make_unique<Guest>(socket, options_.credentials, options_.network, from);
    entry.thread = std::thread([this, &entry] { attend(entry); });
  }
  for (auto& entry : gone) entry.thread.join();
}

void Reception::attend(Entry& entry) {
  auto& guest = *entry.guest;
  if (auto proven = guest.link.prove(kProof); !proven) {
    turn_away(guest, proven.error().message);
  } else if (auto served = serve_(guest); !served) {
    log("connection from {} dropped: {}", guest.name, served.error().message);
  }
  guest.link.abort();
  entry.done = true;
}

/// Ten thousand of them fill no log.
void Reception::turn_away(const Guest& guest, const std::string& why) {
  const auto number = strangers_.fetch_add(1) + 1;
  if (std::has_single_bit(number))
    log("{} connections of strangers so far; the last from {}: {}", number, guest.name, why);
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
