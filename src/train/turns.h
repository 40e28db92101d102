#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace mayfly {

/// What a link that many share is known to carry, and when one more transfer would still find room. The first transfers
/// go alone, which shows what each peer's own link takes; what more of them get together, once they slow each other
/// down, is what the shared link carries. Rates in bytes/s.
class LinkLoad {
 public:
  /// Of one peer; 0: not known.
  struct Own {
    double rate = 0;
  };
  /// Whether a transfer to `next` may begin beside others that together take `taken` from the link.
  bool has_room(double taken, const Own& next) const;
  /// What a transfer to this peer takes, as far as is known.
  double taken_by(const Own& peer) const { return peer.rate > 0 ? peer.rate : typical_; }
  /// A transfer is over: it got `rate`, all together got `together` meanwhile, and `beside` were under way on average,
  /// itself included.
  void add(double rate, double together, double beside, Own& own);

 private:
  int alone_ = 0;       ///< transfers seen alone
  double typical_ = 0;  ///< rate of one alone
  double link_ = 0;     ///< of all together; 0: no transfer was slowed down yet
  int seen_ = 0;
};

/// Sends large answers through a link one after the other. Begun together they would share it evenly and all end late;
/// in turn, each but the last ends earlier and the last no later, and a peer that has its answer goes on while others
/// get theirs. As many go at once as fill the link. Why: docs/decisions/0014-turns.md.
class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kStandstill{200};
  /// Asked now and then while waiting: whether the peer does not want the answer any more.
  using Gone = std::function<bool()>;

  class Turn {
   public:
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    /// So many bytes have arrived so far. Whose turn stands still for longer than kStandstill is passed over.
    void arrived(std::size_t bytes);

   private:
    friend class Turns;
    Turn(Turns& turns, LinkLoad::Own& own);
    Turns& turns_;
    LinkLoad::Own& own_;
    const Clock::time_point begin_;
    const double work_, total_;  ///< the turns' at its begin
    std::size_t arrived_ = 0;
    Clock::time_point moved_;
    bool passed_over_ = false;
  };

  /// Waits for its turn, in the order of asking. Null: gone. Must not outlive this nor `own`, which is the peer's and
  /// this object's to change.
  std::unique_ptr<Turn> take(LinkLoad::Own& own, const Gone& gone);

 private:
  bool has_room(const LinkLoad::Own& next) const;
  void pass_over_who_stands();
  void end(const Turn& turn);
  /// Brings work_ up to now.
  void count_work();

  std::mutex mutex_{};
  std::condition_variable changed_{};
  LinkLoad load_{};
  std::deque<std::uint64_t> line_{};
  std::uint64_t next_ = 0;
  std::list<Turn*> under_way_{};  ///< but those passed over
  double work_ = 0;               ///< seconds of all that were under way, added up
  double total_ = 0;              ///< bytes of all that arrived
  Clock::time_point counted_ = Clock::now();
};

}  // namespace mayfly
