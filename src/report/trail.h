#pragma once

#include <cstddef>
#include <vector>

namespace mayfly {

/// A curve of straight lines whose number of points stays bounded however long it gets. Points that lie closer than
/// what could be drawn are joined; where the curve turns they are kept for as long as there is room.
class Trail {
 public:
  explicit Trail(std::size_t most = 1200) : most_(most) {}

  /// Times do not go back.
  void add(double time, double value);

  const std::vector<double>& times() const { return times_; }
  const std::vector<double>& values() const { return values_; }
  bool empty() const { return times_.empty(); }

 private:
  void push(double time, double value, bool keep_turns);
  void thin();

  std::size_t most_;
  double gap_ = 0;  ///< points closer than this are joined
  std::vector<double> times_{};
  std::vector<double> values_{};
};

/// A step function of several values at once, bounded likewise: of steps too close to be drawn the last stays. Rows may
/// grow; what an earlier row lacks was 0.
class Stairs {
 public:
  explicit Stairs(std::size_t most = 1200) : most_(most) {}

  /// From this time on. A row like the one before changes nothing.
  void add(double time, const std::vector<double>& row);

  const std::vector<double>& times() const { return times_; }
  const std::vector<std::vector<double>>& rows() const { return rows_; }
  double at(std::size_t row, std::size_t column) const { return column < rows_[row].size() ? rows_[row][column] : 0; }

 private:
  std::size_t most_;
  double gap_ = 0;
  std::vector<double> times_{};
  std::vector<std::vector<double>> rows_{};
};

}  // namespace mayfly
