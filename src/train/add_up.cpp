#include "train/add_up.h"

#include <algorithm>
#include <optional>

namespace mayfly {
namespace {

// Two ways. With n ranks, each rank's *share* of the values is the n-th part that it adds up.
//
// In two hops, for what is large: each rank sends to every other that one's share of its own values, adds up what it
// is sent in the order of the ranks, and sends the sums to all. Each rank sends 2 (n - 1) / n of the bytes, as in a
// ring, which is the least that can be, and waits for two messages one after the other where a ring waits for
// 2 (n - 1). A share is added up and sent on in *slices*, while later slices are still on their way.
//
// Along a tree, for what is so small that the number of messages is what counts: up to rank 0 and down again,
// 2 (n - 1) messages in all.

using Kind = DataHeader::Kind;

/// Of a slice: large enough that a call of the system costs little beside it, and small enough that what all ranks sent
/// stays in the processor's cache until it is added up.
constexpr std::size_t kSlice = 128 << 10;
/// Shares below this go along the tree: what a message costs beside its bytes.
constexpr std::size_t kLeastShare = 1 << 10;

/// In blocks of a fixed length, which compilers turn into vector instructions.
template <class T>
void add(std::span<T> into, const T* other) {
  constexpr std::size_t kBlock = 16;
  T* __restrict sums = into.data();
  const T* __restrict others = other;
  std::size_t at = 0;
  for (; at + kBlock <= into.size(); at += kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) sums[at + i] += others[at + i];
  }
  for (; at < into.size(); ++at) sums[at] += others[at];
}

template <class T>
class AddUp {
 public:
  AddUp(const Exchange& exchange, std::span<T> values) : exchange_(exchange), values_(values) {}

  Result<void> run() {
    if (exchange_.size == 1 || values_.empty()) return {};
    const bool small = values_.size_bytes() < kLeastShare * static_cast<std::size_t>(exchange_.size);
    return small ? along_tree() : in_two_hops();
  }

 private:
  std::span<T> share(int rank) const {
    const auto begin = values_.size() * static_cast<std::size_t>(rank) / static_cast<std::size_t>(exchange_.size);
    const auto end = values_.size() * static_cast<std::size_t>(rank + 1) / static_cast<std::size_t>(exchange_.size);
    return values_.subspan(begin, end - begin);
  }
  DataHeader header(Kind kind, std::span<T> part) const {
    return {.kind = kind,
            .formation = exchange_.formation,
            .number = exchange_.number,
            .first = static_cast<std::uint64_t>(part.data() - values_.data()) * sizeof(T),
            .count = part.size_bytes()};
  }
  /// The others, each rank beginning with another one.
  template <class Act>
  void each_other(Act act) const {
    for (int step = 1; step < exchange_.size; ++step) act((exchange_.rank + step) % exchange_.size);
  }
  /// Where so many values of another rank are received.
  std::span<T> room(std::size_t place, std::size_t count) const {
    const auto stride = kSlice / sizeof(T);
    return std::span(reinterpret_cast<T*>(exchange_.room.data()) + place * stride, count);
  }
  void make_room(std::size_t bytes) const { exchange_.room.resize(std::max(exchange_.room.size(), bytes)); }

  Result<void> in_two_hops() const;
  Result<void> along_tree() const;
  void add_in_order(std::span<T> own) const;

  const Exchange& exchange_;
  std::span<T> values_;
};

/// What others sent lies in the rooms of their ranks. Sums are made in the order of the ranks, the own values included.
template <class T>
void AddUp<T>::add_in_order(std::span<T> own) const {
  const auto from = [&](int rank) { return room(static_cast<std::size_t>(rank), own.size()); };
  for (int rank = 1; rank < exchange_.rank; ++rank) add(from(0), from(rank).data());
  if (exchange_.rank > 0) add(own, from(0).data());
  for (int rank = exchange_.rank + 1; rank < exchange_.size; ++rank) add(own, from(rank).data());
}

template <class T>
Result<void> AddUp<T>::in_two_hops() const {
  auto& traffic = exchange_.traffic;
  make_room(static_cast<std::size_t>(exchange_.size) * kSlice);
  const auto own = share(exchange_.rank);
  each_other([&](int rank) {
    const auto theirs = share(rank);
    traffic.send(rank, header(Kind::addend, theirs), std::as_bytes(theirs));
    traffic.receive(rank, header(Kind::addend, own), {});
    traffic.send(rank, header(Kind::total, own), {});
  });
  for (std::size_t at = 0; at < own.size();) {
    const auto slice = own.subspan(at, std::min(own.size() - at, kSlice / sizeof(T)));
    each_other([&](int rank) {
      traffic.receive(rank, {}, std::as_writable_bytes(room(static_cast<std::size_t>(rank), slice.size())));
    });
    if (auto heard = traffic.hear_all(); !heard) return heard;
    add_in_order(slice);
    each_other([&](int rank) { traffic.send(rank, {}, std::as_bytes(slice)); });
    at += slice.size();
  }
  // A sum comes only after the addend was sent that it replaces here.
  each_other([&](int rank) {
    const auto theirs = share(rank);
    traffic.receive(rank, header(Kind::total, theirs), std::as_writable_bytes(theirs));
  });
  return traffic.finish();
}

template <class T>
Result<void> AddUp<T>::along_tree() const {
  auto& traffic = exchange_.traffic;
  const int rank = exchange_.rank;
  const auto addend = header(Kind::addend, values_), total = header(Kind::total, values_);
  make_room(values_.size_bytes());
  const auto there = room(0, values_.size());
  // A rank's parent is the rank without its lowest bit; its children have one more bit below that one.
  int bit = 1;
  for (; bit < exchange_.size && (rank & bit) == 0; bit <<= 1) {
    if (rank + bit >= exchange_.size) continue;
    traffic.receive(rank + bit, addend, std::as_writable_bytes(there));
    if (auto heard = traffic.hear_all(); !heard) return heard;
    add(values_, there.data());
  }
  if (rank > 0) {
    traffic.send(rank - bit, addend, std::as_bytes(values_));
    if (auto sent = traffic.finish(); !sent) return sent;
    traffic.receive(rank - bit, total, std::as_writable_bytes(values_));
    if (auto heard = traffic.hear_all(); !heard) return heard;
  }
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (rank + bit < exchange_.size) traffic.send(rank + bit, total, std::as_bytes(values_));
  }
  return traffic.finish();
}

}  // namespace

Result<void> add_up(const Exchange& exchange, std::span<float> values) { return AddUp(exchange, values).run(); }
Result<void> add_up(const Exchange& exchange, std::span<double> values) { return AddUp(exchange, values).run(); }

}  // namespace mayfly
