#pragma once

#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "job/profile.h"

namespace mayfly {

/// How machines are arranged: `data_parallel` pipelines of `stages` machines each, some of them made longer by the
/// `extra` ones. Zero: nothing trains.
struct Shape {
  int data_parallel = 0;
  int stages = 0;
  int extra = 0;
  int machines() const { return data_parallel * stages + extra; }
  auto operator<=>(const Shape&) const = default;
};

/// The shapes a job can take and how fast it trains in each; shapes are spoken of by their place in the table.
class Shapes {
 public:
  /// Sorted by width, then depth. `speeds` holds samples/s of each.
  Shapes(std::vector<Shape> shapes, std::vector<double> speeds);

  std::span<const Shape> all() const { return shapes_; }
  int size() const { return static_cast<int>(shapes_.size()); }
  const Shape& operator[](int shape) const { return shapes_[static_cast<std::size_t>(shape)]; }
  /// Samples per second.
  double speed(int shape) const { return speeds_[static_cast<std::size_t>(shape)]; }
  std::optional<int> find(Shape shape) const;
  /// The fastest with at most so many machines; of equals the narrowest, then the shallowest.
  std::optional<int> best(int machines) const;
  int most_machines() const { return most_; }
  int least_machines() const { return least_; }

 private:
  std::vector<Shape> shapes_;
  std::vector<double> speeds_;
  std::vector<int> best_;  ///< by machines; -1: none
  int most_ = 0;
  int least_ = 0;
};

/// The measured shapes of a pipeline profile, without those its limits exclude.
Result<Shapes> pipeline_shapes(const Profile& profile);

/// Samples per second when `machines` form pipelines of two depths, so that no machine idles: each pipeline keeps the
/// speed it has among as many of its own depth, and takes micro-batches in proportion. Nothing where no two depths fit.
/// A reconstruction: no published table holds uneven pipelines.
struct Uneven {
  Shape shape{};
  double speed = 0;
};
std::optional<Uneven> uneven_shape(const Shapes& shapes, int machines);

/// The even shapes, and for each number of machines the fastest uneven one where it is faster than any even one.
Shapes with_uneven(const Shapes& even);

}  // namespace mayfly
