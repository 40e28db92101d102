#include "predict/shapes.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace mayfly {

Shapes::Shapes(std::vector<Shape> shapes, std::vector<double> speeds) {
  MAYFLY_CHECK(shapes.size() == speeds.size() && !shapes.empty(), "every shape has a speed");
  std::vector<std::size_t> order(shapes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shapes[a] < shapes[b]; });
  for (const std::size_t at : order) {
    shapes_.push_back(shapes[at]);
    speeds_.push_back(speeds[at]);
  }
  least_ = shapes_[0].machines();
  for (const Shape& shape : shapes_) {
    most_ = std::max(most_, shape.machines());
    least_ = std::min(least_, shape.machines());
  }
  best_.assign(static_cast<std::size_t>(most_) + 1, -1);
  for (int n = 0; n <= most_; ++n) {
    int& best = best_[static_cast<std::size_t>(n)];
    for (int shape = 0; shape < size(); ++shape) {
      if ((*this)[shape].machines() <= n && (best < 0 || speed(shape) > speed(best))) best = shape;
    }
  }
}

std::optional<int> Shapes::find(Shape shape) const {
  const auto found = std::lower_bound(shapes_.begin(), shapes_.end(), shape);
  if (found == shapes_.end() || *found != shape) return std::nullopt;
  return static_cast<int>(found - shapes_.begin());
}

std::optional<int> Shapes::best(int machines) const {
  if (machines < least_) return std::nullopt;
  return best_[static_cast<std::size_t>(std::min(machines, most_))];
}

Result<Shapes> pipeline_shapes(const Profile& profile) {
  if (!profile.pipeline) return fail("profile {} has no pipeline section", profile.name);
  const PipelineProfile& pipeline = *profile.pipeline;
  std::vector<Shape> shapes;
  std::vector<double> speeds;
  for (const ShapeSpeed& row : pipeline.speeds) {
    const auto& excluded = pipeline.excluded_stages;
    if (row.stages < pipeline.min_stages || row.stages > pipeline.max_stages) continue;
    if (row.data_parallel < pipeline.min_data_parallel) continue;
    if (std::find(excluded.begin(), excluded.end(), row.stages) != excluded.end()) continue;
    shapes.push_back({row.data_parallel, row.stages});
    speeds.push_back(row.speed ? row.speed->value : pipeline.global_batch / row.iteration.count());
  }
  if (shapes.empty()) return fail("profile {}: no measured shape lies within its own limits", profile.name);
  return Shapes(std::move(shapes), std::move(speeds));
}

}  // namespace mayfly
