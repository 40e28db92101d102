#include "train/mesh.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "support/token.h"
#include "train/data_link.h"

namespace mayfly {
namespace {

std::unique_ptr<NetworkDevice> door(const Credentials& credentials = support::known()) {
  auto network = NetworkDevice::open("lo", credentials);
  EXPECT_TRUE(network) << network.error().message;
  return std::move(*network);
}

std::unique_ptr<Mesh> opened(NetworkDevice& network, Mesh::Place place) {
  auto mesh = Mesh::open(network, place);
  EXPECT_TRUE(mesh) << mesh.error().message;
  return std::move(*mesh);
}

/// A formation inside this process, each rank with a thread of its own while it acts.
struct Formation {
  std::vector<std::unique_ptr<NetworkDevice>> networks{};
  std::vector<std::unique_ptr<Mesh>> meshes{};

  explicit Formation(int size, std::int64_t number = 1, const Credentials& credentials = support::known()) {
    for (int rank = 0; rank < size; ++rank) {
      networks.push_back(door(credentials));
      meshes.push_back(opened(*networks.back(), {.formation = number, .rank = rank, .size = size}));
    }
  }
  template <class Act>
  std::vector<Result<void>> all(Act act) {
    std::vector<std::future<Result<void>>> futures;
    for (std::size_t rank = 0; rank < meshes.size(); ++rank)
      futures.push_back(
          std::async(std::launch::async, [&, rank] { return act(*meshes[rank], static_cast<int>(rank)); }));
    std::vector<Result<void>> results;
    for (auto& future : futures) results.push_back(future.get());
    return results;
  }
  std::vector<std::string> words() const {
    std::vector<std::string> words;
    for (const auto& mesh : meshes) words.push_back(mesh->word());
    return words;
  }
  void connect() {
    const auto places = words();
    for (const auto& result : all([&](Mesh& mesh, int) { return mesh.connect(places); }))
      EXPECT_TRUE(result) << result.error().message;
  }
};

/// Another process with rank 1 of 2: connects, then sums forever.
struct Peer {
  pid_t pid = 0;
  int words = -1;    ///< this process writes its own word here
  std::string word;  ///< of the peer

  explicit Peer(bool sums = true) {
    int there[2], back[2];
    EXPECT_EQ(::pipe(there) + ::pipe(back), 0);
    pid = ::fork();
    if (pid == 0) live(there[0], back[1], sums);
    ::close(there[0]);
    ::close(back[1]);
    words = there[1];
    std::array<char, 256> text{};
    const auto size = ::read(back[0], text.data(), text.size());
    word.assign(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    ::close(back[0]);
  }
  ~Peer() {
    ::kill(pid, SIGKILL);
    ::kill(pid, SIGCONT);
    ::waitpid(pid, nullptr, 0);
    ::close(words);
  }
  void tell(const std::string& own) const {
    EXPECT_EQ(::write(words, own.data(), own.size()), static_cast<ssize_t>(own.size()));
  }

 private:
  [[noreturn]] static void live(int in, int out, bool sums) {
    const auto network = door();
    auto mesh = Mesh::open(*network, {.formation = 1, .rank = 1, .size = 2});
    const auto& own = (*mesh)->word();
    if (::write(out, own.data(), own.size()) < 0) ::_exit(1);
    std::array<char, 256> text{};
    const auto size = ::read(in, text.data(), text.size());
    const std::string first(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    std::vector<float> values(1 << 22);
    if ((*mesh)->connect(std::vector{first, own})) {
      while (sums && (*mesh)->sum(std::span(values))) {
      }
      while (!sums) ::pause();
    }
    ::_exit(0);
  }
};

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(Mesh, SumsAreTheSameEverywhere) {
  for (const int size : {1, 2, 3, 5}) {
    Formation formation(size);
    formation.connect();
    std::vector<std::vector<float>> values(size);
    std::vector<std::array<double, 1>> small(size);
    for (int rank = 0; rank < size; ++rank) {
      for (int i = 0; i < 10007; ++i) values[rank].push_back(static_cast<float>(i + rank) * 0.1f);
      small[rank] = {rank + 0.5};
    }
    for (const auto& result : formation.all([&](Mesh& mesh, int rank) -> Result<void> {
           auto done = mesh.sum(std::span(values[rank]));
           return done ? mesh.sum(std::span<double>(small[rank])) : done;
         }))
      ASSERT_TRUE(result) << result.error().message;
    // Ranks 0..n-1 add i + rank each: n i + n (n - 1) / 2, in tenths.
    EXPECT_NEAR(values[0][1000], (size * 1000 + size * (size - 1) / 2.0) * 0.1, 0.01);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(values[rank], values[0]) << "bits differ at rank " << rank;
      EXPECT_EQ(small[rank][0], size * (size - 1) / 2.0 + 0.5 * size);
    }
  }
}

/// All ways of adding up, in the clear and encrypted: 1 value to 2.6 MB in up to 9 ranks, so along the tree, in two
/// hops with shares of nothing, and in many slices.
TEST(Mesh, SumsOfAllSizesAreRightAndTheSameEverywhere) {
  for (const auto& credentials : {support::known(), support::sealed()}) {
    for (const int size : {2, 3, 4, 7, 9}) {
      Formation formation(size, 1, credentials);
      formation.connect();
      for (const std::size_t count : {1, 3, 255, 256, 2303, 2304, 2500, 65'537, 655'361}) {
        std::vector<std::vector<float>> values(size);
        for (int rank = 0; rank < size; ++rank) {
          for (std::size_t i = 0; i < count; ++i)
            values[rank].push_back(static_cast<float>(static_cast<int>(i % 1000) * (rank + 1)));
        }
        for (const auto& result :
             formation.all([&](Mesh& mesh, int rank) { return mesh.sum(std::span(values[rank])); }))
          ASSERT_TRUE(result) << result.error().message;
        // Whole numbers below 2^24, so exact: i (1 + 2 + ... + n) = i n (n + 1) / 2.
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(values[0][i], static_cast<float>(i % 1000) * static_cast<float>(size * (size + 1) / 2)) << i;
        for (int rank = 1; rank < size; ++rank) ASSERT_EQ(values[rank], values[0]) << count << " at rank " << rank;
      }
    }
  }
}

/// Not numbers have payloads, which an addition takes from its first operand.
TEST(Mesh, SumsOfWhatIsNoNumberAreTheSameEverywhere) {
  for (const std::size_t count : {7, 7000}) {
    Formation formation(3);
    formation.connect();
    std::vector<std::vector<std::uint32_t>> bits(3, std::vector<std::uint32_t>(count));
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      for (std::size_t i = 0; i < count; ++i) bits[rank][i] = i % 3 == rank ? 0x3f800000u : 0x7fc00001u + rank;
    }
    for (const auto& result : formation.all([&](Mesh& mesh, int rank) {
           return mesh.sum(std::span(reinterpret_cast<float*>(bits[rank].data()), count));
         }))
      ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(bits[0][0])));
    EXPECT_EQ(bits[1], bits[0]);
    EXPECT_EQ(bits[2], bits[0]);
  }
}

TEST(Mesh, TheStateGoesFromTheSourceToTheReceiversAlone) {
  Formation formation(3);
  formation.connect();
  // Rank 1 gives to rank 2; rank 0 has the state already. 8 MB are more than one socket holds.
  std::vector<std::vector<std::byte>> big(3, std::vector<std::byte>(8 << 20)), small(3, std::vector<std::byte>(3));
  std::fill(big[1].begin(), big[1].end(), std::byte{7});
  small[1][2] = std::byte{9};
  const std::vector<int> receivers = {2};
  for (const auto& result : formation.all([&](Mesh& mesh, int rank) {
         const std::vector<std::span<std::byte>> parts = {big[rank], {}, small[rank]};
         return mesh.hand_over(1, receivers, parts);
       }))
    ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(big[2], big[1]);
  EXPECT_EQ(small[2], small[1]);
  EXPECT_EQ(small[0][2], std::byte{0});
}

TEST(Mesh, AbortEndsTheWaitForAPeerThatNeverComes) {
  // Rank 0 is to be visited; rank 1 visits, and its connection stands in the queue of one who never answers.
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof place;
  ASSERT_EQ(::bind(silent, reinterpret_cast<const sockaddr*>(&place), size), 0);
  ASSERT_EQ(::listen(silent, 1), 0);
  ::getsockname(silent, reinterpret_cast<sockaddr*>(&place), &size);
  Formation formation(2);
  const std::vector<std::string> words = {fmt::format("127.0.0.1:{}", ntohs(place.sin_port)),
                                          formation.meshes[1]->word()};
  for (const int rank : {0, 1}) {
    auto waiting = std::async(std::launch::async, [&] { return formation.meshes[rank]->connect(words); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    formation.meshes[rank]->abort();
    EXPECT_FALSE(waiting.get());
  }
  ::close(silent);
}

TEST(Mesh, AbortEndsASumWhosePeerDoesNotTakePart) {
  Formation formation(2);
  formation.connect();
  std::vector<float> values(1 << 22);
  auto waiting = std::async(std::launch::async, [&] { return formation.meshes[0]->sum(std::span(values)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  formation.meshes[0]->abort();
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(formation.meshes[0]->sum(std::span(values))) << "it stays over";
}

/// Half of them encrypted.
TEST(Mesh, AbortEndsWhatIsUnderWayAtAnyMoment) {
  const auto sealed = support::sealed();
  const std::array firsts = {door(), door(sealed)}, seconds = {door(), door(sealed)};
  std::vector<std::byte> state(800'000), received(800'000);
  std::vector<float> values(200'000), others(200'000);
  const std::vector<int> receivers = {1};
  for (int number = 0; number < 150; ++number) {
    const std::size_t kind = number / 2 % 2;
    auto one = opened(*firsts[kind], {.formation = number, .rank = 0, .size = 2});
    auto two = opened(*seconds[kind], {.formation = number, .rank = 1, .size = 2});
    const std::vector<std::string> words = {one->word(), two->word()};
    std::atomic<int> connected = 0;
    const auto act = [&](Mesh& mesh, std::span<std::byte> bytes, std::span<float> floats) {
      const auto met = mesh.connect(words);
      ++connected;
      const std::vector<std::span<std::byte>> parts = {bytes};
      for (int i = 0; met && i < 1000; ++i) {
        if (number % 2 == 0 ? !mesh.hand_over(0, receivers, parts) : !mesh.sum(floats)) break;
      }
    };
    auto ours = std::async(std::launch::async, [&] { act(*one, state, values); });
    auto theirs = std::async(std::launch::async, [&] { act(*two, received, others); });
    while (connected < 2) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(number * 7 % 1000));
    one->abort();
    const auto ends = [](const std::future<void>& side) {
      return side.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    };
    const bool over = ends(ours);
    two->abort();
    if (over && ends(theirs)) continue;
    std::fprintf(stderr, "formation %d: somebody still waits after abort()\n", number);
    std::_Exit(1);  // a thread that waits cannot be joined
  }
}

TEST(Mesh, AbortBeforeConnectIsNotLost) {
  Formation formation(2);
  formation.meshes[0]->abort();
  EXPECT_FALSE(formation.meshes[0]->connect(formation.words()));
  Formation alone(1);
  alone.meshes[0]->abort();
  EXPECT_FALSE(alone.meshes[0]->connect(alone.words()));
}

TEST(Mesh, AnotherFormationAtTheDoorIsTurnedAwayAndDisturbsNobody) {
  Formation now(2, 2), late(2, 1);
  auto first = std::async(std::launch::async, [&] { return now.meshes[0]->connect(now.words()); });
  EXPECT_FALSE(late.meshes[1]->connect(std::vector{now.meshes[0]->word(), late.meshes[1]->word()}));
  const auto second = now.meshes[1]->connect(now.words());
  EXPECT_TRUE(second) << second.error().message;
  EXPECT_TRUE(first.get());
}

/// Rank 1 of formation 1 is awaited; those are not: of another size, at another rank's door, one that opens no
/// connection to this rank, and no rank at all.
TEST(Mesh, OnlyWhoIsAwaitedIsLetIn) {
  using Kind = DataHeader::Kind;
  Formation formation(4);
  const auto hello = [](int from, int to, int size) {
    return DataHeader{.kind = Kind::hello,
                      .formation = 1,
                      .number = from,
                      .first = static_cast<std::uint64_t>(to),
                      .count = static_cast<std::uint64_t>(size)};
  };
  const auto is_let_in = [&](const DataHeader& said) {
    DataLink link(support::known(), nullptr);
    EXPECT_TRUE(link.connect(formation.meshes[0]->word(), kLinkPatience));
    EXPECT_TRUE(link.send(said));
    return link.expect(Kind::welcome, 1).has_value();
  };
  EXPECT_FALSE(is_let_in(hello(1, 0, 3)));
  EXPECT_FALSE(is_let_in(hello(1, 2, 4)));
  EXPECT_FALSE(is_let_in(hello(2, 0, 4)));
  EXPECT_FALSE(is_let_in(hello(-1, 0, 4)));
  EXPECT_FALSE(is_let_in(hello(4, 0, 4)));
  EXPECT_TRUE(is_let_in(hello(1, 0, 4)));
}

TEST(Mesh, WhoDoesNotKnowTheSecretIsNoMember) {
  Formation ours(2), others(2, 1, support::sealed().unencrypted());
  auto waiting = std::async(std::launch::async, [&] { return ours.meshes[0]->connect(ours.words()); });
  EXPECT_FALSE(others.meshes[1]->connect(std::vector{ours.meshes[0]->word(), others.meshes[1]->word()}));
  EXPECT_TRUE(ours.meshes[1]->connect(ours.words()));
  EXPECT_TRUE(waiting.get());
}

/// A member that says another number of values.
TEST(Mesh, SumsOfDifferentSizesAreErrors) {
  Formation formation(2);
  formation.connect();
  for (const auto& result : formation.all([&](Mesh& mesh, int rank) {
         std::vector<float> values(rank == 0 ? 10'000 : 10'002);
         return mesh.sum(std::span(values));
       }))
    EXPECT_FALSE(result);
}

TEST(Mesh, BrokenWordsAreErrors) {
  for (const char* word : {"", "127.0.0.1", "x:1", "127.0.0.1:0", "127.0.0.1:70000", "torch 1.13.1 gloo 127.0.0.1:9"}) {
    Formation formation(2);
    EXPECT_FALSE(formation.meshes[0]->connect(std::vector<std::string>{"127.0.0.1:1", word})) << word;
  }
}

/// Along the tree ranks 1 and 2 say nothing to each other. Rank 2 is played here, and its connection ends as that of a
/// machine out of reach does.
TEST(Mesh, AConnectionThatBreaksEndsASumThatDoesNotNeedIt) {
  Formation formation(3);
  const auto words = formation.words();
  auto zero = std::async(std::launch::async, [&] { return formation.meshes[0]->connect(words); });
  auto one = std::async(std::launch::async, [&] { return formation.meshes[1]->connect(words); });
  auto two = std::make_unique<DataLink>(support::known(), nullptr);
  ASSERT_TRUE(two->connect(words[1], kLinkPatience));
  ASSERT_TRUE(two->send({.kind = DataHeader::Kind::hello, .formation = 1, .number = 2, .first = 1, .count = 3}));
  ASSERT_TRUE(zero.get());
  ASSERT_TRUE(one.get());
  std::array<double, 1> value = {1};
  auto waiting = std::async(std::launch::async, [&] { return formation.meshes[1]->sum(std::span<double>(value)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(two->awaited().fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  two.reset();
  const auto summed = waiting.get();
  ASSERT_FALSE(summed);
  EXPECT_NE(summed.error().message.find("rank 2"), std::string::npos) << summed.error().message;
}

TEST(Mesh, AKilledPeerEndsTheSum) {
  Peer peer;
  const auto network = door();
  auto mesh = opened(*network, {.formation = 1, .rank = 0, .size = 2});
  peer.tell(mesh->word());
  ASSERT_TRUE(mesh->connect(std::vector{mesh->word(), peer.word}));
  std::vector<float> values(1 << 22);
  ASSERT_TRUE(mesh->sum(std::span(values)));
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ::kill(peer.pid, SIGKILL);
  });
  while (mesh->sum(std::span(values))) {
  }
  killer.join();
}

TEST(Mesh, AFrozenPeerHoldsNobodyPastAbort) {
  for (const bool while_connecting : {true, false}) {
    Peer peer(!while_connecting);
    const auto network = door();
    auto mesh = opened(*network, {.formation = 1, .rank = 0, .size = 2});
    if (!while_connecting) peer.tell(mesh->word());
    if (while_connecting) ::kill(peer.pid, SIGSTOP);
    std::thread freezer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ::kill(peer.pid, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      mesh->abort();
    });
    std::vector<float> values(1 << 22);
    if (mesh->connect(std::vector{mesh->word(), peer.word})) {
      while (mesh->sum(std::span(values))) {
      }
    }
    freezer.join();
  }
}

TEST(Mesh, ListensOnItsInterfaceAlone) {
  Formation formation(3);
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    for (const auto& word : formation.words()) {
      const auto port = fmt::format(":{:04X}", std::stoi(word.substr(word.find(':') + 1)));
      file.clear();
      file.seekg(0);
      while (std::getline(file, line)) {
        if (line.find(port + " 00000000:0000 0A") == line.npos) continue;
        EXPECT_NE(line.find("0100007F" + port), line.npos) << line;
      }
    }
  }
}

TEST(Mesh, FormationsLeaveNothingBehind) {
  const auto first = door(), second = door();
  std::size_t descriptors = 0, threads = 0;
  for (int number = 0; number < 100; ++number) {
    auto one = opened(*first, {.formation = number, .rank = 0, .size = 2});
    auto two = opened(*second, {.formation = number, .rank = 1, .size = 2});
    const std::vector<std::string> words = {one->word(), two->word()};
    auto other = std::async(std::launch::async, [&] { return two->connect(words); });
    if (number % 3 == 0) one->abort();
    const auto result = one->connect(words);
    EXPECT_EQ(result.has_value(), number % 3 != 0);
    if (number % 3 == 0) two->abort();
    (void)other.get();
    if (number == 10) {
      descriptors = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
    }
  }
  EXPECT_LE(entries("/proc/self/fd"), descriptors);
  EXPECT_LE(entries("/proc/self/task"), threads);
}

TEST(NetworkDevice, AnInterfaceThatIsNotThereIsAnError) {
  const auto network = NetworkDevice::open("nowhere7", support::known());
  ASSERT_FALSE(network);
  EXPECT_NE(network.error().message.find("nowhere7"), std::string::npos) << network.error().message;
}

}  // namespace
}  // namespace mayfly
