#include "train/peer_caches.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/numbered_dataset.h"
#include "support/token.h"

namespace mayfly {
namespace {

/// A worker's caches, without the worker.
struct Holder {
  explicit Holder(const Credentials& credentials = support::known())
      : caches(TcpPeerCaches::open({.credentials = credentials}).value()), samples(cache, storage, *caches) {
    caches->serve(&samples);
  }
  ~Holder() { caches->serve(nullptr); }
  support::NumberedDataset data{100};
  SampleCache cache{1 << 20};
  Storage storage{data};
  std::unique_ptr<TcpPeerCaches> caches;
  PartitionedSamples samples;
};

std::vector<std::byte> bytes(std::size_t size, int value) { return {size, static_cast<std::byte>(value)}; }

void expect_asked_and_given(const Credentials& credentials) {
  Holder one(credentials), two(credentials);
  one.caches->set_neighbours({.workers = {1, 2}, .addresses = {one.caches->address(), two.caches->address()}});
  two.cache.offer(5, bytes(300'000, 7));
  two.cache.offer(6, {});
  std::vector<std::byte> out = bytes(3, 1);
  EXPECT_FALSE(one.caches->ask(2, 4, out).value());
  EXPECT_TRUE(one.caches->ask(2, 5, out).value());
  EXPECT_EQ(out, bytes(300'000, 7));
  EXPECT_TRUE(one.caches->ask(2, 6, out).value());
  EXPECT_TRUE(out.empty());
  one.caches->give(2, 9, bytes(200'000, 3));
  EXPECT_TRUE(one.caches->ask(2, 9, out).value()) << "one behind the other on one connection";
  EXPECT_EQ(out, bytes(200'000, 3));
}

TEST(TcpPeerCaches, AreAskedAndGivenSamples) { expect_asked_and_given(support::known()); }
TEST(TcpPeerCaches, AreAskedAndGivenSamplesUnreadableOnTheWay) { expect_asked_and_given(support::sealed()); }

TEST(TcpPeerCaches, NobodyIsAskedThatIsNotThere) {
  Holder one;
  std::vector<std::byte> out;
  EXPECT_FALSE(one.caches->ask(2, 5, out).value());
  one.caches->give(2, 5, bytes(10, 1));
}

TEST(TcpPeerCaches, AStrangerGetsAndGivesNothing) {
  Holder host, stranger{support::sealed()};
  host.cache.offer(5, bytes(10, 7));
  stranger.caches->set_neighbours({.workers = {1}, .addresses = {host.caches->address()}});
  std::vector<std::byte> out;
  EXPECT_FALSE(stranger.caches->ask(1, 5, out));
  EXPECT_TRUE(out.empty());
}

TEST(TcpPeerCaches, WhoeverIsGoneIsAnErrorOnceAndNotAskedForAWhile) {
  Holder one;
  {
    Holder two;
    one.caches->set_neighbours({.workers = {1, 2}, .addresses = {one.caches->address(), two.caches->address()}});
    std::vector<std::byte> out;
    EXPECT_FALSE(one.caches->ask(2, 4, out).value());
  }
  std::vector<std::byte> out;
  EXPECT_FALSE(one.caches->ask(2, 4, out)) << "its connection broke";
  EXPECT_FALSE(one.caches->ask(2, 4, out).value()) << "without being asked";
}

/// Takes connections and never says anything, as a frozen process does.
struct Mute {
  Mute() : listener(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(::listen(listener, 10), 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size);
    address = fmt::format("127.0.0.1:{}", ntohs(place.sin_port));
  }
  ~Mute() { ::close(listener); }
  int listener;
  std::string address{};
};

TEST(TcpPeerCaches, WhoeverIsSilentCostsAReadFromStorage) {
  Holder one;
  const Mute mute;
  one.caches->set_neighbours({.workers = {1, 2}, .addresses = {one.caches->address(), mute.address}});
  one.samples.set_members(1, {1, 2});
  std::vector<std::byte> out;
  for (std::int64_t sample = 0; sample < 100; ++sample) ASSERT_TRUE(one.samples.raw(sample, out));
  EXPECT_EQ(one.samples.counts().from_storage, 100);
  EXPECT_GE(one.samples.counts().peers_failed, 1);
}

TEST(TcpPeerCaches, ASampleTooLargeToBeOneEndsTheConnection) {
  Holder host;
  DataLink link(support::known(), nullptr);
  ASSERT_TRUE(link.connect(host.caches->address(), Seconds(5)));
  ASSERT_TRUE(link.send({.kind = DataHeader::Kind::give, .number = 1, .count = TcpPeerCaches::kMostBytes + 1}));
  const auto answer = link.receive();
  EXPECT_TRUE(!answer || !*answer);
  EXPECT_EQ(host.cache.size(), 0U);
}

}  // namespace
}  // namespace mayfly
