#include "train/reception.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "base/text.h"
#include "support/token.h"

namespace mayfly {
namespace {

/// Says hello to who is let in.
struct Door {
  explicit Door(const Credentials& credentials = support::known())
      : reception(Reception::open({.credentials = credentials}, [](Guest& guest) {
                    return guest.link.send({.kind = DataHeader::Kind::welcome});
                  }).value()) {}
  std::unique_ptr<Reception> reception;
};

bool served(DataLink& link, const Door& door) {
  return link.connect(door.reception->address(), Seconds(60)) && link.expect(DataHeader::Kind::welcome, 0);
}

/// Connected, and silent.
int idle(const Door& door) {
  const auto& address = door.reception->address();
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(parse_integer(address.substr(address.rfind(':') + 1)).value()));
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  return socket;
}

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

/// The number that the next descriptor will have.
rlim_t next_descriptor() {
  const int next = ::dup(0);
  ::close(next);
  return static_cast<rlim_t>(next);
}

/// Connections are accepted in their order: when the guest is served, all strangers before it have been seen.
void expect_strangers_get_no_thread(const Credentials& credentials) {
  const Door door(credentials);
  const auto threads_before = threads();
  std::vector<int> strangers;
  for (std::size_t i = 0; i < Reception::kMostUnproven + 44; ++i) strangers.push_back(idle(door));
  DataLink guest(credentials, nullptr);
  EXPECT_TRUE(served(guest, door));
  EXPECT_LE(threads(), threads_before + 1) << "that of the guest, while it is not gone";
  char none = 0;
  for (std::size_t i = 0; i < 44; ++i) EXPECT_LE(::recv(strangers[i], &none, 1, 0), 0) << "the oldest make room";
  for (const int stranger : strangers) ::close(stranger);
}

TEST(Reception, StrangersGetNoThreadAndNoMoreThanTheirRoom) { expect_strangers_get_no_thread(support::known()); }
TEST(Reception, StrangersGetNoThreadWhereItIsEncrypted) { expect_strangers_get_no_thread(support::sealed()); }

TEST(Reception, WhoSaysNothingIsTurnedAway) {
  const Door door;
  const int stranger = idle(door);
  char none = 0;
  EXPECT_LE(::recv(stranger, &none, 1, 0), 0);
  ::close(stranger);
}

TEST(Reception, AGuestWaitsUntilThereIsAThreadForIt) {
  const Door door;
  pthread_attr_t usual, huge;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 46), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);  // no stack so large can be had: no thread can be made
  DataLink guest(support::known(), nullptr);
  const bool let_in = guest.connect(door.reception->address(), Seconds(60)).has_value();
  DataLink other(support::known(), nullptr);
  const bool other_let_in = other.connect(door.reception->address(), Seconds(60)).has_value();
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  ASSERT_TRUE(let_in && other_let_in);
  EXPECT_TRUE(guest.expect(DataHeader::Kind::welcome, 0));
  EXPECT_TRUE(other.expect(DataHeader::Kind::welcome, 0));
}

// Only one descriptor is left for guests; the first gives it back when it is gone.
TEST(Reception, AGuestWaitsUntilThereIsADescriptorForIt) {
  const Door door;
  DataLink first(support::known(), nullptr), second(support::known(), nullptr);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit one{.rlim_cur = next_descriptor() + 1, .rlim_max = usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one), 0);
  const bool first_served = served(first, door), second_served = served(second, door);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_TRUE(first_served && second_served);
}

}  // namespace
}  // namespace mayfly
