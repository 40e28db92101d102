#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <future>

#include "support/token.h"
#include "wire/frame.h"
#include "wire/loop.h"

namespace mayfly {
namespace {

using support::known;

/// A listener and what it accepted, on a loop that ends by itself.
struct Room {
  Loop loop{};
  Timer late{loop};
  Credentials credentials;
  std::unique_ptr<Link> inside{};
  std::unique_ptr<Listener> listener{};
  std::function<void()> arrived = [] {};
  std::function<void()> turned_away = [] {};

  explicit Room(Credentials its = known()) : credentials(std::move(its)) {
    auto opened = Listener::open(loop, "127.0.0.1", 0, credentials,
                                 {.accepted =
                                      [this](std::unique_ptr<Link> link) {
                                        inside = std::move(link);
                                        arrived();
                                      },
                                  .stranger = [this](const std::string&) { turned_away(); }});
    listener = std::move(opened.value());
  }
  void run() {
    bool over = false;
    late.start(Seconds(60), [&] {  // only ends a hang
      over = true;
      loop.stop();
    });
    loop.run();
    late.cancel();
    EXPECT_FALSE(over) << "nothing happened";
  }
  std::unique_ptr<Link> visitor() {
    arrived = [this] { loop.stop(); };
    auto link = connect(loop, "localhost", listener->port(), credentials, Seconds(1));
    EXPECT_TRUE(link) << link.error().message;
    run();
    return std::move(*link);
  }
};

/// A plain socket, to send what no Link would.
int plain_socket(std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return descriptor;
}

/// The proof of one that belongs to the run.
void prove(int descriptor) {
  Channel channel(Channel::Side::guest, known());
  std::array<char, 64> answer{};
  EXPECT_EQ(::write(descriptor, channel.outgoing().data(), channel.outgoing().size()), 40);
  EXPECT_EQ(::recv(descriptor, answer.data(), answer.size(), MSG_WAITALL), 64);
  channel.outgoing().clear();
  EXPECT_TRUE(channel.take({answer.data(), answer.size()}));
  EXPECT_EQ(::write(descriptor, channel.outgoing().data(), channel.outgoing().size()), 32);
}

/// What a Link says when a peer that has proven itself sends these bytes.
std::string reason_after(const std::string& bytes) {
  Room room;
  std::string reason;
  room.arrived = [&] {
    room.inside->start<ToController>({.message = [](const ToController&) {},
                                      .closed =
                                          [&](std::string why) {
                                            reason = std::move(why);
                                            room.loop.stop();
                                          }});
  };
  const int descriptor = plain_socket(room.listener->port());
  const auto sent = std::async(std::launch::async, [&] {
    prove(descriptor);
    return ::write(descriptor, bytes.data(), bytes.size());
  });
  room.run();
  ::close(descriptor);
  return reason;
}

class LinkOf : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Link, LinkOf, ::testing::Bool(),
                         [](const auto& is) { return is.param ? "Encrypted" : "Plain"; });

TEST_P(LinkOf, MessagesGoBothWaysInOrder) {
  Room room(GetParam() ? support::sealed() : known());
  auto visitor = room.visitor();
  const std::vector<ToController> said = {Formed{.formation = 1}, Alive{}, Leaving{.left_s = 2}};
  const std::vector<ToMember> answers = {Halt{.formation = 1}, Alive{}, Leave{.why = "done"}};
  std::vector<ToController> there;
  std::vector<ToMember> back;
  room.inside->start<ToController>({.message =
                                        [&](ToController message) {
                                          room.inside->send<ToMember>(answers.at(there.size()));
                                          there.push_back(std::move(message));
                                        },
                                    .closed = [](const std::string& why) { ADD_FAILURE() << why; }});
  visitor->start<ToMember>({.message =
                                [&](ToMember message) {
                                  back.push_back(std::move(message));
                                  if (back.size() == 3) room.loop.stop();
                                },
                            .closed = [](const std::string& why) { ADD_FAILURE() << why; }});
  for (const auto& message : said) visitor->send<ToController>(message);
  room.run();
  EXPECT_EQ(there, said);
  EXPECT_EQ(back, answers);
}

// Messages of 1 MB, more than any socket's buffer takes: most of them are kept until the peer reads.
TEST_P(LinkOf, SendNeverBlocksAndCloseSendsWhatIsKept) {
#ifdef MAYFLY_SANITIZED
  constexpr int kMessages = 12;  // a link that was closed has 5 s to say the rest
#else
  constexpr int kMessages = 40;
#endif
  Room room(GetParam() ? support::sealed() : known());
  auto visitor = room.visitor();
  const ToController big = Unable{.what = std::string(1 << 20, 'x')};
  for (int i = 0; i < kMessages; ++i) visitor->send<ToController>(big);
  visitor->close();
  visitor.reset();
  int received = 0;
  std::string reason;
  room.inside->start<ToController>({.message =
                                        [&](const ToController& message) {
                                          EXPECT_EQ(message, big);
                                          ++received;
                                        },
                                    .closed =
                                        [&](std::string why) {
                                          reason = std::move(why);
                                          room.loop.stop();
                                        }});
  room.run();
  EXPECT_EQ(received, kMessages);
  EXPECT_EQ(reason, "closed by the peer");
}

// Input the closing side has not read would make the system reset the connection.
TEST(Link, TheLastWordArrivesThoughThePeerWasTalking) {
  Room room;
  auto visitor = room.visitor();
  std::string refused;
  visitor->start<ToMember>({.message = [&](const ToMember& message) { refused = std::get<Refused>(message).why; },
                            .closed = [&](const std::string&) { room.loop.stop(); }});
  for (int i = 0; i < 1000; ++i) visitor->send<ToController>(Alive{});
  room.inside->send<ToMember>(Refused{.why = "no"});
  room.inside->close();
  room.inside.reset();
  room.run();
  EXPECT_EQ(refused, "no");
}

TEST(Link, ItsCallMayDestroyIt) {
  Room room;
  auto visitor = room.visitor();
  room.inside->start<ToController>({.message =
                                        [&](const ToController&) {
                                          room.inside.reset();
                                          room.loop.stop();
                                        },
                                    .closed = [](const std::string&) { ADD_FAILURE(); }});
  visitor->send<ToController>(Alive{});
  visitor->send<ToController>(Alive{});
  room.run();
  EXPECT_EQ(room.inside, nullptr);
}

TEST(Link, SaysSoWhenThePeerIsGone) {
  Room room;
  auto visitor = room.visitor();
  std::string reason;
  visitor->start<ToMember>({.message = [](const ToMember&) {},
                            .closed =
                                [&](std::string why) {
                                  reason = std::move(why);
                                  room.loop.stop();
                                }});
  room.inside.reset();
  room.run();
  EXPECT_EQ(reason, "closed by the peer");
  visitor->send<ToController>(Alive{});  // no peer hears it, nothing breaks
}

TEST(Link, WhatIsNoMessageEndsIt) {
  EXPECT_NE(reason_after(framed("{}")).find("'message'"), std::string::npos);
  EXPECT_NE(reason_after("GET / HTTP/1.1\r\n\r\n").find("a frame of"), std::string::npos);
  EXPECT_NE(reason_after(std::string("\xff\xff\xff\xff", 4)).find("a frame of 4294967295 bytes"), std::string::npos);
}

TEST(Link, AMessageOfTheOtherDirectionEndsIt) {
  EXPECT_EQ(reason_after(framed(encoded<ToMember>(Halt{.formation = 1}))),
            "message halt: nothing that the controller is told");
}

TEST(Link, ProcessesStartedLaterDoNotInheritIt) {
  Room room;
  auto visitor = room.visitor();
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (!std::filesystem::read_symlink(entry.path(), ignored).string().starts_with("socket:")) continue;
    const int descriptor = std::stoi(entry.path().filename());
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    if (address.sin_family != AF_INET) continue;
    ++sockets;
    EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(sockets, 3);  // the listener and two ends
}

TEST(Listener, SaysWhereItCannotListen) {
  Loop loop;
  EXPECT_FALSE(Listener::open(loop, "nowhere", 0, known(), {}));
  auto first = Listener::open(loop, "127.0.0.1", 0, known(), {});
  ASSERT_TRUE(first);
  const auto second = Listener::open(loop, "127.0.0.1", (*first)->port(), known(), {});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
}

// Some say nothing, some nonsense, some know another run's secret; who belongs to the run is let in all the same.
TEST(Listener, StrangersChangeNothingButACounter) {
  Room room;
  int strangers = 0;
  room.turned_away = [&] {
    if (++strangers == 300) room.loop.stop();
  };
  room.arrived = [] { ADD_FAILURE() << "a stranger was let in"; };
  std::vector<int> descriptors;
  std::vector<std::unique_ptr<Link>> others;
  for (int i = 0; i < 100; ++i) {
    ::close(plain_socket(room.listener->port()));
    descriptors.push_back(plain_socket(room.listener->port()));
    const auto nonsense = framed(encoded<ToController>(Hello{.pid = i})) + std::string(100, static_cast<char>(i));
    EXPECT_GT(::write(descriptors.back(), nonsense.data(), nonsense.size()), 0);
    others.push_back(*connect(room.loop, "127.0.0.1", room.listener->port(), Credentials(), Seconds(1)));
    others.back()->send<ToController>(Hello{});
  }
  room.run();
  for (const int descriptor : descriptors) ::close(descriptor);
  EXPECT_NE(room.visitor(), nullptr);
  EXPECT_EQ(strangers, 300);
}

TEST(Connect, SaysWhatIsWrong) {
  Loop loop;
  std::uint16_t port = 0;
  {
    auto listener = Listener::open(loop, "127.0.0.1", 0, known(), {});
    port = (*listener)->port();
  }
  const auto refused = connect(loop, "127.0.0.1", port, known(), Seconds(1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("refused"), std::string::npos) << refused.error().message;
  const auto unknown = connect(loop, "no-such-host.invalid", 1, known(), Seconds(1));
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("no-such-host.invalid"), std::string::npos);
}

// One descriptor is left, which the visitor's own end takes. Afterwards there are enough, and it is let in.
TEST(Listener, SaysWhyNobodyCanBeLetInAndTriesAgain) {
#ifdef MAYFLY_SANITIZED
  GTEST_SKIP() << "a sanitizer opens pipes for its own checks, and calls an object invalid when it cannot";
#endif
  Loop loop;
  std::string why;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  bool let_in = false;
  const auto listener = Listener::open(loop, "127.0.0.1", 0, known(),
                                       {.accepted = {},
                                        .failed =
                                            [&](const std::string& reason) {
                                              why = reason;
                                              ::setrlimit(RLIMIT_NOFILE, &before);
                                            },
                                        .stranger =
                                            [&](const std::string&) {
                                              let_in = true;
                                              loop.stop();
                                            }});
  ASSERT_TRUE(listener);
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  const rlimit tight{.rlim_cur = static_cast<rlim_t>(next) + 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const int visitor = plain_socket((*listener)->port());
  EXPECT_EQ(::shutdown(visitor, SHUT_WR), 0);  // let in, it is found to be a stranger
  Timer late(loop);
  late.start(Seconds(10), [&] { loop.stop(); });
  loop.run();
  ::setrlimit(RLIMIT_NOFILE, &before);
  ::close(visitor);
  EXPECT_EQ(why, "Too many open files");
  EXPECT_TRUE(let_in);
}

}  // namespace
}  // namespace mayfly
