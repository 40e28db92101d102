#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/units.h"

namespace mayfly::bamboo {

using Ms = std::chrono::milliseconds;

inline Ms in_ms(Seconds time) { return std::chrono::round<Ms>(time); }
/// Fractions of a millisecond are dropped.
inline Ms stretched(Ms time, double factor) {
  return Ms(static_cast<Ms::rep>(static_cast<double>(time.count()) * factor));
}

/// In the order in which events of the same millisecond happen.
enum class What { add, remove, draw_hour, ready, global_rendezvous, local_rendezvous, step };

struct Event {
  Ms time{};
  What what{};
  int subject = 0;  ///< the machine; for a step the rendezvous that it belongs to
  friend bool operator<(const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.what < b.what; }
};

/// A binary heap that fills the hole at the root from the leaves: the hole sinks to the bottom along the smaller child,
/// the right one of two equals, then the last event rises from there. Which of several equal events comes first follows
/// from exactly this, and the published figures follow from it in turn: first-in-first-out gives others.
class Events {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& next() const { return heap_.front(); }

  void push(const Event& event) {
    heap_.push_back(event);
    rise(heap_.size() - 1);
  }
  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return first;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap_.size(); child = 2 * hole + 1) {
      if (child + 1 < heap_.size() && !(heap_[child] < heap_[child + 1])) ++child;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = last;
    rise(hole);
    return first;
  }

 private:
  void rise(std::size_t at) {
    for (; at > 0 && heap_[at] < heap_[(at - 1) / 2]; at = (at - 1) / 2) std::swap(heap_[at], heap_[(at - 1) / 2]);
  }
  std::vector<Event> heap_;
};

}  // namespace mayfly::bamboo
