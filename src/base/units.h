#pragma once

#include <chrono>
#include <compare>

namespace mayfly {

using Seconds = std::chrono::duration<double>;
using Hours = std::chrono::duration<double, std::ratio<3600>>;

/// A number that knows what it measures. Same-kind arithmetic only; what may be multiplied is spelled out below,
/// so that UsdPerHour * Bytes does not compile.
template <class Tag>
struct Quantity {
  double value = 0;

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return {a.value * k}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return {a.value * k}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return {a.value / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
};

using Usd = Quantity<struct UsdTag>;
using UsdPerHour = Quantity<struct UsdPerHourTag>;
using Bytes = Quantity<struct BytesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using Samples = Quantity<struct SamplesTag>;
using SamplesPerSecond = Quantity<struct SamplesPerSecondTag>;

constexpr Usd operator*(UsdPerHour rate, Seconds time) { return {rate.value * Hours(time).count()}; }
constexpr Seconds operator/(Bytes size, BytesPerSecond rate) { return Seconds(size.value / rate.value); }
constexpr Seconds operator/(Samples count, SamplesPerSecond rate) { return Seconds(count.value / rate.value); }
constexpr SamplesPerSecond operator/(Samples count, Seconds time) { return {count.value / time.count()}; }

/// Files and people speak of 10^6 bytes ("MB"), links of 10^9 bits; both become bytes at the door.
constexpr Bytes megabytes(double mb) { return {mb * 1e6}; }
constexpr BytesPerSecond megabytes_per_second(double mb) { return {mb * 1e6}; }
constexpr BytesPerSecond gigabits_per_second(double gbit) { return {gbit * 1e9 / 8}; }
constexpr double in_megabytes(Bytes size) { return size.value / 1e6; }
constexpr double in_megabytes(BytesPerSecond rate) { return rate.value / 1e6; }

}  // namespace mayfly
