#include "train/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <thread>

namespace mayfly {
namespace {

using std::chrono::milliseconds;

/// Equal peers that always want more, as many at a time as there is room for.
struct Link {
  LinkLoad load{};
  LinkLoad::Own own{};

  int width(int most) const {
    int beside = 1;
    while (beside < most && load.has_room(beside * std::max(1e-9, load.taken_by(own)), own)) ++beside;
    return beside;
  }
  void play(double rate, double common, int transfers, int most = 16) {
    for (int i = 0; i < transfers; ++i) {
      const int beside = width(most);
      const double got = std::min(rate, common / beside);
      load.add(got, got * beside, beside, own);
    }
  }
  /// Of a hundred transfers, how many went at once most often.
  int usual(double rate, double common, int most = 16) {
    std::map<int, int> seen;
    for (int i = 0; i < 100; ++i) {
      play(rate, common, 1, most);
      ++seen[width(most)];
    }
    return std::max_element(seen.begin(), seen.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
  }
};

TEST(LinkLoad, AsManyGoAsFillTheLink) {
  for (const int fill : {1, 2, 3, 10}) {  // own links of 10
    Link link;
    EXPECT_EQ(link.width(16), 1) << "the first goes alone";
    link.play(10, 10 * fill, 100);
    EXPECT_EQ(link.usual(10, 10 * fill), fill);
  }
}

TEST(LinkLoad, EveryoneGoesWhereNobodyIsSlowed) {
  Link link;
  link.play(10, 1000, 100);
  EXPECT_EQ(link.width(16), 16);
}

TEST(LinkLoad, FollowsLinksThatChange) {
  Link link;
  link.play(10, 40, 100);
  EXPECT_EQ(link.usual(10, 40), 4);
  link.play(10, 10, 100);
  EXPECT_EQ(link.usual(10, 10), 1);
  link.play(10, 40, 1000);
  EXPECT_EQ(link.usual(10, 40), 4);
  // The peers' own links are slower now, so more of them are needed.
  link.play(5, 40, 1000);
  EXPECT_EQ(link.usual(5, 40), 8);
}

// Peers of 10 and 5 at a link of 20: two fast ones fill it, or a fast and two slow ones, or four slow ones.
TEST(LinkLoad, SlowPeersTakeLessOfTheLink) {
  Link link;
  link.play(10, 20, 97);
  LinkLoad::Own slow;
  for (int i = 0; i < 100; ++i) link.load.add(5, 20, 3, slow);
  link.play(10, 20, 20);
  EXPECT_NEAR(slow.rate, 5, 0.1);
  EXPECT_TRUE(link.load.has_room(10, link.own));
  EXPECT_FALSE(link.load.has_room(20, link.own));
  EXPECT_TRUE(link.load.has_room(15, slow));
  EXPECT_FALSE(link.load.has_room(20, slow));
}

TEST(Turns, GoInTheOrderOfAsking) {
  Turns turns;
  LinkLoad::Own peer;
  std::size_t arrived = 0;
  auto first = turns.take(peer, nullptr);
  std::vector<int> order;
  std::mutex mutex;
  std::vector<std::future<void>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::async(std::launch::async, [&, i] {
      const auto turn = turns.take(peer, nullptr);
      const std::lock_guard lock(mutex);
      order.push_back(i);
    }));
    std::this_thread::sleep_for(milliseconds(15));
    first->arrived(++arrived);
  }
  {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(order.empty()) << "while the first is under way";
  }
  first.reset();
  for (auto& other : others) other.get();
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST(Turns, WhoStandsStillIsPassedOver) {
  Turns turns;
  LinkLoad::Own peer;
  const auto stands = turns.take(peer, nullptr);
  const auto next = turns.take(peer, nullptr);
  EXPECT_TRUE(next);
}

TEST(Turns, WhoIsGoneLeavesTheLine) {
  Turns turns;
  LinkLoad::Own peer;
  std::size_t arrived = 0;
  auto first = turns.take(peer, nullptr);
  std::atomic<bool> over = false;
  std::thread moves([&] {
    while (!over) {
      first->arrived(++arrived);
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  EXPECT_FALSE(turns.take(peer, [] { return true; }));
  over = true;
  moves.join();
  first.reset();
  EXPECT_TRUE(turns.take(peer, nullptr));
}

}  // namespace
}  // namespace mayfly
