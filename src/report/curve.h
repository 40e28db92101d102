#pragma once

#include <vector>

namespace mayfly {

/// Figures in pairs, in the order they are joined. What the longer of the two has more is left out.
struct Curve {
  std::vector<double> x{};
  std::vector<double> y{};

  std::size_t size() const { return x.size() < y.size() ? x.size() : y.size(); }
  bool empty() const { return size() == 0; }
  void add(double at, double value) {
    x.push_back(at);
    y.push_back(value);
  }
  bool operator==(const Curve&) const = default;
};

}  // namespace mayfly
