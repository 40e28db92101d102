#include "train/mesh.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

namespace mayfly {
namespace {

/// gloo may write to a peer that has just closed, as main() expects, too.
[[maybe_unused]] const auto before = std::signal(SIGPIPE, SIG_IGN);

std::unique_ptr<Mesh> opened(NetworkDevice& network, Mesh::Place place) {
  auto mesh = Mesh::open(network, place);
  EXPECT_TRUE(mesh) << mesh.error().message;
  return std::move(*mesh);
}

/// A formation inside this process, each rank with a thread of its own while it acts.
struct Formation {
  std::vector<std::unique_ptr<NetworkDevice>> networks{};
  std::vector<std::unique_ptr<Mesh>> meshes{};

  explicit Formation(int size, std::int64_t number = 1) {
    for (int rank = 0; rank < size; ++rank) {
      networks.push_back(std::move(NetworkDevice::open("lo").value()));
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
    auto network = NetworkDevice::open("lo");
    auto mesh = Mesh::open(**network, {.formation = 1, .rank = 1, .size = 2});
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
  Formation formation(2);
  const auto words = formation.words();
  for (const int rank : {0, 1}) {  // one of them listens, the other's connection stands in the peer's queue
    auto waiting = std::async(std::launch::async, [&] { return formation.meshes[rank]->connect(words); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    formation.meshes[rank]->abort();
    EXPECT_FALSE(waiting.get());
  }
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

/// gloo itself leaves a sender asleep whose connection ends while its thread learns that the other side is ready.
TEST(Mesh, AbortEndsWhatIsUnderWayAtAnyMoment) {
  auto first = NetworkDevice::open("lo"), second = NetworkDevice::open("lo");
  std::vector<std::byte> state(800'000), received(800'000);
  std::vector<float> values(200'000), others(200'000);
  const std::vector<int> receivers = {1};
  for (int number = 0; number < 150; ++number) {
    auto one = opened(**first, {.formation = number, .rank = 0, .size = 2});
    auto two = opened(**second, {.formation = number, .rank = 1, .size = 2});
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

TEST(Mesh, AnotherFormationAtTheDoorIsAnError) {
  Formation old(2, 1), young(2, 2);
  const std::vector<std::string> mixed = {old.meshes[0]->word(), young.meshes[1]->word()};
  auto first = std::async(std::launch::async, [&] { return old.meshes[0]->connect(mixed); });
  const auto second = young.meshes[1]->connect(mixed);
  EXPECT_FALSE(second);
  EXPECT_FALSE(first.get());
}

TEST(Mesh, BrokenWordsAreErrors) {
  for (const char* word : {"", "127.0.0.1", "127.0.0.1:1", "x:1,2", "127.0.0.1:0,0", "127.0.0.1:70000,2"}) {
    Formation formation(2);
    EXPECT_FALSE(formation.meshes[0]->connect(std::vector<std::string>{"127.0.0.1:0,1", word})) << word;
  }
}

TEST(Mesh, AKilledPeerEndsTheSum) {
  Peer peer;
  auto network = NetworkDevice::open("lo");
  auto mesh = opened(**network, {.formation = 1, .rank = 0, .size = 2});
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
    auto network = NetworkDevice::open("lo");
    auto mesh = opened(**network, {.formation = 1, .rank = 0, .size = 2});
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
      for (std::size_t at = word.find(':'); at != word.npos; at = word.find(',', at + 1)) {
        const auto door = fmt::format(":{:04X}", std::stoi(word.substr(at + 1)));
        file.clear();
        file.seekg(0);
        while (std::getline(file, line)) {
          if (line.find(door + " 00000000:0000 0A") == line.npos) continue;
          EXPECT_NE(line.find("0100007F" + door), line.npos) << line;
        }
      }
    }
  }
}

TEST(Mesh, FormationsLeaveNothingBehind) {
  auto first = NetworkDevice::open("lo"), second = NetworkDevice::open("lo");
  std::size_t descriptors = 0, threads = 0;
  for (int number = 0; number < 100; ++number) {
    auto one = opened(**first, {.formation = number, .rank = 0, .size = 2});
    auto two = opened(**second, {.formation = number, .rank = 1, .size = 2});
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
  const auto network = NetworkDevice::open("nowhere7");
  ASSERT_FALSE(network);
  EXPECT_NE(network.error().message.find("nowhere7"), std::string::npos) << network.error().message;
}

}  // namespace
}  // namespace mayfly
