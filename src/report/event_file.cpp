#include "report/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "report/reading.h"

namespace mayfly {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78 : crc >> 1;
    table[byte] = crc;
  }
  return table;
}

std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
  return bytes;
}

std::string record(const std::string& data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + little_endian(masked(crc32c(length))) + data + little_endian(masked(crc32c(data)));
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of protobuf: the key is (number << 3 | kind); kinds 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
std::string varint_field(unsigned number, std::uint64_t value) { return varint(number << 3) + varint(value); }
std::string double_field(unsigned number, double value) {
  return varint(number << 3 | 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string bytes_field(unsigned number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
std::string float_field(unsigned number, float value) {
  return varint(number << 3 | 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}

struct Scalar {
  double time = 0;  ///< s, of the run
  const char* tag = "";
  float value = 0;
  std::size_t place = 0;  ///< among those of the same time
};

/// Event{wall_time = 1, step = 2, summary = 5: Summary{value = 1: Value{tag = 1, simple_value = 2}}}
std::string scalar_event(const Scalar& scalar, double start_unix, std::uint64_t step) {
  const std::string value = bytes_field(1, scalar.tag) + float_field(2, scalar.value);
  return double_field(1, start_unix + scalar.time) + varint_field(2, step) + bytes_field(5, bytes_field(1, value));
}

void add_scalars(std::vector<Scalar>& all, const char* tag, const Curve& curve) {
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (std::abs(curve.y[i]) > std::numeric_limits<float>::max()) continue;
    all.push_back({.time = curve.x[i], .tag = tag, .value = static_cast<float>(curve.y[i])});
  }
}

/// Machines of all types together.
Curve held(const Fields& counts) {
  const Json& times = counts.list("t_s");
  Curve sum;
  if (counts.list("series").empty()) return sum;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto time = finite(times[i]);
    if (!time) continue;
    sum.add(*time, 0);
    for (const Json& series : counts.list("series")) {
      const Json& n = Fields(series).list("n");
      if (i < n.size()) sum.y.back() += finite(n[i]).value_or(0);
    }
  }
  return sum;
}

std::vector<Scalar> scalars_of(const Fields& view) {
  std::vector<Scalar> all;
  add_scalars(all, "loss/training", curve_of(view.object("losses"), "t_s", "loss"));
  add_scalars(all, "loss/validation", curve_of(view.object("validation"), "t_s", "loss"));
  add_scalars(all, "accuracy/validation", curve_of(view.object("validation"), "t_s", "accuracy"));
  add_scalars(all, "progress/samples", curve_of(view.object("progress"), "t_s", "samples"));
  add_scalars(all, "machines/held", held(view.object("counts")));
  add_scalars(all, "machines/training", curve_of(view.object("counts"), "t_s", "used"));
  add_scalars(all, "money/usd", curve_of(view.object("money"), "t_s", "usd"));
  for (std::size_t i = 0; i < all.size(); ++i) all[i].place = i;
  std::sort(all.begin(), all.end(),
            [](const Scalar& a, const Scalar& b) { return std::pair(a.time, a.place) < std::pair(b.time, b.place); });
  return all;
}

/// The most samples that were trained at any time up to now. Asked in the order of time.
class MostSamples {
 public:
  explicit MostSamples(Curve progress) : progress_(std::move(progress)) {}

  std::uint64_t at(double time) {
    while (next_ < progress_.size() && progress_.x[next_] <= time) reach(progress_.y[next_++]);
    if (next_ > 0 && next_ < progress_.size()) {
      const double from = progress_.x[next_ - 1], to = progress_.x[next_];
      const double share = (time - from) / (to - from);
      reach(std::lerp(progress_.y[next_ - 1], progress_.y[next_], share));
    }
    constexpr double kMost = 9e18;  // a step is a signed 64-bit number
    return static_cast<std::uint64_t>(std::llround(std::min(most_, kMost)));
  }

 private:
  void reach(double samples) {
    if (samples > most_) most_ = samples;
  }

  Curve progress_;
  std::size_t next_ = 0;
  double most_ = 0;
};

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string event_file(const Json& view, double start_unix) {
  const double start = std::isfinite(start_unix) ? start_unix : 0;
  const Fields fields(view);
  std::string file = record(double_field(1, start) + bytes_field(3, "brain.Event:2"));
  MostSamples trained(curve_of(fields.object("progress"), "t_s", "samples"));
  for (const Scalar& scalar : scalars_of(fields)) file += record(scalar_event(scalar, start, trained.at(scalar.time)));
  return file;
}

}  // namespace mayfly
