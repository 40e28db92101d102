#include "data/order.h"

#include "base/check.h"
#include "base/rng.h"

namespace mayfly {
namespace {

constexpr int kRounds = 6;

/// The finaliser of SplitMix64.
std::uint64_t mixed(std::uint64_t z) { return Rng(z).bits(); }

/// A Feistel network: each round adds a function of one half to the other, which can be undone whatever the function
/// is, so the network as a whole is a permutation of all numbers of 2 x half_bits bits.
std::uint64_t permuted(std::uint64_t number, int half_bits, std::uint64_t key) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = number >> half_bits;
  std::uint64_t right = number & mask;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (mixed(key + (right << 3 | static_cast<std::uint64_t>(round))) >> 32 & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

/// Whole numbers of the wire are positive.
std::int64_t on_the_wire(std::uint64_t sum) { return static_cast<std::int64_t>(sum >> 1); }

int half_bits_for(std::int64_t size) {
  int half_bits = 1;
  while (half_bits < 31 && (std::int64_t{1} << (2 * half_bits)) < size) ++half_bits;
  return half_bits;
}

}  // namespace

SampleOrder::SampleOrder(std::int64_t size, std::uint64_t seed)
    : size_(size), seed_(seed), half_bits_(half_bits_for(size)) {
  MAYFLY_CHECK(size > 0 && size <= std::int64_t{1} << 62, "a data set has samples");
}

std::int64_t SampleOrder::sample_at(std::int64_t place) const {
  MAYFLY_CHECK(place >= 0, "places count from 0");
  const auto epoch = static_cast<std::uint64_t>(place / size_);
  const std::uint64_t key = mixed(mixed(seed_) + epoch);
  auto number = static_cast<std::uint64_t>(place % size_);
  // The domain is up to four times the data set. Walking on along the cycle of a number that fell outside comes back
  // inside, and to a sample no other place comes to.
  do {
    number = permuted(number, half_bits_, key);
  } while (number >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(number);
}

std::int64_t SampleOrder::reading(std::int64_t first, std::int64_t count) const {
  std::uint64_t sum = 0;
  for (std::int64_t place = first; place < first + count; ++place)
    sum += mixed(static_cast<std::uint64_t>(sample_at(place)));
  return on_the_wire(sum);
}

std::int64_t reading_of(std::span<const std::int64_t> samples) {
  std::uint64_t sum = 0;
  for (const std::int64_t sample : samples) sum += mixed(static_cast<std::uint64_t>(sample));
  return on_the_wire(sum);
}

}  // namespace mayfly
