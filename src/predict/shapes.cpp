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

std::optional<Uneven> uneven_shape(const Shapes& shapes, int machines) {
  std::optional<Uneven> best;
  for (int shallow = 0; shallow < shapes.size(); ++shallow) {
    const Shape& base = shapes[shallow];
    const int extra = machines - base.machines();
    if (extra <= 0) continue;
    for (int deep = 0; deep < shapes.size(); ++deep) {
      const int longer_by = shapes[deep].stages - base.stages;
      if (shapes[deep].data_parallel != base.data_parallel || longer_by <= 0 || extra % longer_by != 0) continue;
      const int longer = extra / longer_by;
      if (longer >= base.data_parallel) continue;
      const double share = static_cast<double>(longer) / base.data_parallel;
      const double speed = (1 - share) * shapes.speed(shallow) + share * shapes.speed(deep);
      if (!best || speed > best->speed) best = Uneven{{base.data_parallel, base.stages, extra}, speed};
    }
  }
  return best;
}

Shapes with_uneven(const Shapes& even) {
  std::vector<Shape> shapes(even.all().begin(), even.all().end());
  std::vector<double> speeds;
  for (int shape = 0; shape < even.size(); ++shape) speeds.push_back(even.speed(shape));
  for (int n = even.least_machines(); n <= even.most_machines(); ++n) {
    const auto uneven = uneven_shape(even, n);
    if (!uneven || uneven->speed <= even.speed(*even.best(n))) continue;
    shapes.push_back(uneven->shape);
    speeds.push_back(uneven->speed);
  }
  return Shapes(std::move(shapes), std::move(speeds));
}

}  // namespace mayfly
