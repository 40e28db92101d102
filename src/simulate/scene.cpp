#include "simulate/scene.h"

#include <algorithm>
#include <map>

namespace mayfly {
namespace {

Supply supply_of(const Series& series, const Job& job) {
  const int most = job.shapes.most_machines();
  Series held = capped(series, most);
  Supply::Line line{.kind = {series.type.empty() ? job.type : series.type, series.zone, Market::spot},
                    .most = most,
                    .price = job.spot,
                    .prices = std::move(held.prices)};
  return {.changes = std::move(held.changes), .lines = {std::move(line)}};
}

}  // namespace

Scene scene_of(const Series& series, Seconds duration, const Job& job) {
  return {.supplies = {supply_of(series, job)},
          .standing = job.standing,
          .duration = duration,
          .most = job.shapes.most_machines()};
}

Scene scene_of(const Trace& trace, const Job& job) {
  Scene scene{.standing = job.standing, .duration = trace.duration, .most = job.shapes.most_machines()};
  for (const Series& series : trace.series) {
    if (!series.changes.empty()) scene.supplies.push_back(supply_of(series, job));
  }
  return scene;
}

int peak(const Scene& scene) {
  std::map<Seconds, int> steps;
  for (const Supply& supply : scene.supplies) {
    int before = 0;
    for (const Change& change : supply.changes) {
      steps[change.time] += change.available - before;
      before = change.available;
    }
  }
  int now = 0;
  int most = 0;
  for (const auto& [time, step] : steps) most = std::max(most, now += step);
  return std::min(most, scene.most);
}

}  // namespace mayfly
