#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

/// Memory of a name in which processes of one user on one machine meet, and which outlives any of them: a member
/// that is killed, at any point, is known to be gone, and what it held is free. A file in /dev/shm; the last to leave
/// removes it. Each member has a part of its own, which no other writes, and all have a common part, which is written
/// only under the lock. docs/decisions/0012-sharing-prepared-data.md
class MeetingPlace {
 public:
  static constexpr int kMembers = 32;  ///< at most, at a time

  struct Options {
    std::string name{};     ///< up to 64 letters, digits, '-', '_' and '.'
    std::uint64_t key = 0;  ///< of what the members must agree on
    std::size_t common_bytes = 0;
    std::size_t own_bytes = 0;  ///< of each member, there from the start or entering fails
    Seconds patience{5};        ///< with a member that stopped in the doorway or with the lock
  };
  /// Makes the place where there is none. What a place of dead members held is forgotten: it is all zeros again. An
  /// error: it is another user's, of another key, full, or there is no memory.
  static Result<std::unique_ptr<MeetingPlace>> enter(const Options& options);
  ~MeetingPlace();
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  int self() const { return self_; }
  /// Whether its process lives. Of itself: true.
  bool alive(int member) const;
  std::span<std::byte> common() const;
  std::span<std::byte> part(int member) const;

  /// False: the holder of the lock has stood still for longer than the patience, and may for ever; nothing here can be
  /// used any more. Of a holder that was killed the lock is taken over, so the common part must be right after every
  /// single store.
  [[nodiscard]] bool lock();
  /// Wakes the members that await a change, where there was one.
  void unlock(bool changed);
  /// Under the lock.
  std::uint32_t changes() const;
  /// Until there were changes since, or so long.
  void await_change(std::uint32_t since, Seconds limit) const;

  /// No process finds it by its name any more: the next to come make another.
  void abandon();

 private:
  struct Head;
  MeetingPlace(std::string path, int file, const Options& options);
  Result<void> come_in(const Options& options);
  Result<void> take_seat();
  bool only_member() const;
  bool has_name() const;
  Head& head() const;

  const std::string path_;
  const int file_;
  const std::size_t common_bytes_;
  const std::size_t own_bytes_;
  const Seconds patience_;
  int self_ = -1;
  std::byte* memory_ = nullptr;
};

}  // namespace mayfly
