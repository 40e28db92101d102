#include "wire/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace mayfly {
namespace {

struct Interface {
  std::string name{};
  std::string address{};
};

std::string text_of(const sockaddr* address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  return text.data();
}

/// Those with an IPv4 address.
std::vector<Interface> interfaces() {
  std::vector<Interface> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const auto* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET)
      found.push_back({one->ifa_name, text_of(one->ifa_addr)});
  }
  ::freeifaddrs(all);
  return found;
}

/// To connect a datagram socket chooses the way and sends nothing.
std::string local_end(const addrinfo& target) {
  const int socket = ::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  sockaddr_in own{};
  socklen_t size = sizeof own;
  const bool known = ::connect(socket, target.ai_addr, target.ai_addrlen) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  ::close(socket);
  return known ? text_of(reinterpret_cast<const sockaddr*>(&own)) : "";
}

}  // namespace

Result<std::string> interface_address(const std::string& interface) {
  for (const Interface& one : interfaces()) {
    if (one.name == interface) return one.address;
  }
  return fail("network interface '{}': not there, or without an IPv4 address", interface);
}

Result<std::string> interface_towards(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list); code != 0)
    return fail("--interface auto: {}: {}", host, ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const auto* target = list; target != nullptr; target = target->ai_next) {
    const std::string address = local_end(*target);
    for (const Interface& one : interfaces()) {
      if (one.address == address) return one.name;
    }
    // All of 127/8 is this machine's.
    if (address.starts_with("127.")) return std::string("lo");
  }
  return fail("--interface auto: no way to {} over IPv4; name an interface", host);
}

}  // namespace mayfly
