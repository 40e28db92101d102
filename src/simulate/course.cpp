#include "simulate/course.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "predict/cycles.h"

namespace mayfly {

Course::Course(std::vector<Point> points) : points_(std::move(points)) {
  MAYFLY_CHECK(points_.size() >= 2 && points_.front().time == 0, "a course has a beginning and an end");
}

Course::Point Course::at(double time) const {
  const auto after = std::upper_bound(points_.begin(), points_.end(), time,
                                      [](double t, const Point& point) { return t < point.time; });
  if (after == points_.begin()) return points_.front();
  if (after == points_.end()) return points_.back();
  const Point& a = *std::prev(after);
  const double part = (time - a.time) / (after->time - a.time);
  return {time, a.done + part * (after->done - a.done), a.spent + part * (after->spent - a.spent)};
}

double Course::pace(double time, double span) const {
  const double from = std::max(0.0, time - span);
  return time > from ? (at(time).done - at(from).done) / (time - from) : 0;
}

double Course::price(double time, double span) const {
  const double from = std::max(0.0, time - span);
  return time > from ? (at(time).spent - at(from).spent) / (time - from) : 0;
}

std::optional<double> Course::reached(double from, double work) const {
  const double goal = at(from).done + work;
  const auto there = std::lower_bound(points_.begin(), points_.end(), goal,
                                      [](const Point& point, double done) { return point.done < done; });
  if (there == points_.end()) return {};
  if (there == points_.begin() || there->done == goal) return std::max(from, there->time);
  const Point& a = *std::prev(there);
  return std::max(from, a.time + (there->time - a.time) * (goal - a.done) / (there->done - a.done));
}

namespace {

/// Series from which one or more lines of a plan take their machines.
struct Pool {
  std::vector<const Series*> sources{};
  std::vector<std::size_t> lines{};
};

/// Over time, from the first price on; each holds until the next.
double mean_price(const std::vector<PricePoint>& prices, double end) {
  double sum = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const double until = i + 1 < prices.size() ? prices[i + 1].time.count() : end;
    sum += prices[i].price.value * std::max(0.0, until - prices[i].time.count());
  }
  const double span = prices.empty() ? 0 : end - prices.front().time.count();
  return span > 0 && sum > 0 ? sum / span : 1;
}

std::string types_of(const Trace& trace) {
  std::set<std::string> types;
  for (const Series& series : trace.series) {
    if (!series.changes.empty()) types.insert(series.type);
  }
  return types.empty() ? "prices only" : fmt::format("{}", fmt::join(types, ", "));
}

std::vector<const Series*> sources_of(const PlanLine& line, const Trace& trace) {
  std::vector<const Series*> all;
  std::vector<const Series*> zone;
  for (const Series& series : trace.series) {
    if (series.changes.empty() || (!series.type.empty() && series.type != line.type)) continue;
    all.push_back(&series);
    if (!line.zone.empty() && series.zone == line.zone) zone.push_back(&series);
  }
  return zone.empty() ? all : zone;
}

Result<std::vector<Pool>> pools_of(const std::vector<PlanLine>& cluster, const Trace& trace) {
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (cluster[i].market != Market::spot) continue;
    auto sources = sources_of(cluster[i], trace);
    if (sources.empty())
      return fail("trace {} says nothing of {}, which the plan rents on the spot market; it has {}", trace.name,
                  cluster[i].type, types_of(trace));
    // A series without type is a stand-in: each type has its own machines behind it.
    const auto same = std::find_if(pools.begin(), pools.end(), [&](const Pool& pool) {
      return pool.sources == sources && cluster[pool.lines.front()].type == cluster[i].type;
    });
    if (same != pools.end()) {
      same->lines.push_back(i);
    } else {
      pools.push_back({.sources = std::move(sources), .lines = {i}});
    }
  }
  return pools;
}

MachineKind kind_of(const PlanLine& line) { return {line.type, line.zone, line.market}; }

Supply supply_of(const Pool& pool, const std::vector<PlanLine>& cluster, Seconds duration, SpotPrices prices) {
  Trace several;
  for (const Series* series : pool.sources) several.series.push_back(*series);
  const Series whole = several.series.size() == 1 ? several.series.front() : merged(several);
  const double mean = mean_price(whole.prices, duration.count());
  Supply supply;
  int wanted = 0;
  for (const std::size_t at : pool.lines) {
    const PlanLine& line = cluster[at];
    wanted += line.count;
    supply.lines.push_back({.kind = kind_of(line), .most = line.count, .price = line.rate});
    const bool traced = prices == SpotPrices::as_traced;
    for (const PricePoint& point : whole.prices) {
      if (traced && whole.type.empty()) break;
      supply.lines.back().prices.push_back({point.time, traced ? point.price : line.rate * (point.price.value / mean)});
    }
  }
  supply.changes = capped(whole, wanted).changes;
  return supply;
}

}  // namespace

Result<Scene> scene_of(const PlanOption& option, const Trace& trace, SpotPrices prices) {
  const auto pools = pools_of(option.cluster, trace);
  if (!pools) return unexpected(pools.error());
  Scene scene{.standing = UsdPerHour{option.hourly}, .duration = trace.duration};
  for (const Pool& pool : *pools) scene.supplies.push_back(supply_of(pool, option.cluster, trace.duration, prices));
  for (const PlanLine& line : option.cluster) {
    // What the plan pays besides its workers: its servers.
    scene.standing = scene.standing - line.rate * static_cast<double>(line.count);
    if (line.market == Market::spot) {
      scene.most += line.count;
    } else {
      scene.rented.push_back({.kind = kind_of(line), .price = line.rate, .count = line.count});
    }
  }
  scene.standing = std::max(scene.standing, UsdPerHour{});
  return scene;
}

namespace {

/// Share of the job per second, by what trains; every mix is predicted once.
class LinePace {
 public:
  LinePace(const Scene& scene, const Problem& problem, std::size_t server)
      : problem_(problem), server_(server), evaluator_(problem) {
    for (const Supply& supply : scene.supplies) {
      for (const Supply::Line& line : supply.lines) add(line.kind.type);
    }
    for (const Rented& rented : scene.rented) add(rented.kind.type);
  }

  double operator()(const std::vector<int>& lines) {
    std::vector<int> counts(problem_.kinds.size());
    for (std::size_t i = 0; i < lines.size(); ++i) counts[kinds_[i]] += lines[i];
    const auto [known, fresh] = paces_.try_emplace(std::move(counts), 0);
    if (fresh) known->second = pace_of(known->first);
    return known->second;
  }

 private:
  /// Of machines that are there, whatever offer each came by and whatever quota it counts against.
  double pace_of(const std::vector<int>& counts) const {
    std::vector<Group> groups;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      if (counts[k] > 0) groups.push_back({&problem_.kinds[k].worker, counts[k]});
    }
    const Speed speed = cluster_speed(problem_.predictor, problem_.job, groups, problem_.servers[server_].pool);
    const auto left = evaluator_.work(speed, worker_count(groups));
    if (!left || speed.updates_per_s <= 0) return 0;
    return 1 / std::max(*left / speed.updates_per_s, 1e-6);  // of a job that is as good as done
  }

  void add(const std::string& type) {
    const auto offers = [&](const Kind& kind) {
      return std::any_of(kind.ladder.begin(), kind.ladder.end(),
                         [&](const Offer& offer) { return offer.type == type; });
    };
    const auto kind = std::find_if(problem_.kinds.begin(), problem_.kinds.end(), offers);
    MAYFLY_CHECK(kind != problem_.kinds.end(), "every line of a plan is of a kind of its problem");
    kinds_.push_back(static_cast<std::size_t>(kind - problem_.kinds.begin()));
  }

  const Problem& problem_;
  std::size_t server_;
  Evaluator evaluator_;
  std::vector<std::size_t> kinds_{};  ///< of the problem, by line of the scene
  std::map<std::vector<int>, double> paces_{};
};

}  // namespace

PaceOf pace_of(const Scene& scene, const Problem& problem, std::size_t server) {
  return [pace = LinePace(scene, problem, server)](const std::vector<int>& lines) mutable { return pace(lines); };
}

Course course_of(const Scene& scene, const Job& job, const ReplayOptions& options, double work) {
  ReplayOptions recorded = options;
  recorded.milestones = true;
  const Replay run = replay(scene, job, recorded);
  std::map<double, Course::Point> points;
  std::vector<Course::Point> done{{}};
  std::vector<Course::Point> spent{{}};
  const auto put = [](std::vector<Course::Point>& into, const Course::Point& point) {
    if (point.time <= into.back().time) into.pop_back();
    into.push_back(point);
  };
  for (const Milestone& at : run.milestones) put(done, {at.time.count(), at.samples, 0});
  for (const Spending& at : run.spendings) put(spent, {at.time.count(), 0, at.spent.value});
  const double end = scene.duration.count();
  for (auto* part : {&done, &spent}) {
    if (part->back().time < end) part->push_back({end, part->back().done, part->back().spent});
  }
  // What is lost again later does not count to begin with.
  for (std::size_t i = done.size() - 1; i-- > 0;) done[i].done = std::min(done[i].done, done[i + 1].done);
  for (Course::Point& point : done) point.done = work > 0 ? point.done / work : 0;
  const Course by_work(done);
  const Course by_money(spent);
  for (const auto* part : {&done, &spent}) {
    for (const Course::Point& point : *part)
      points[point.time] = {point.time, by_work.at(point.time).done, by_money.at(point.time).spent};
  }
  std::vector<Course::Point> both;
  for (const auto& [time, point] : points) both.push_back(point);
  return Course(std::move(both));
}

}  // namespace mayfly
