#include "simulate/course.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"

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
  Series held{};  ///< capped at what the lines want together
  double mean_price = 1;
};

/// Over time, from the first price on; each holds until the next.
double mean_price(const Series& series, double end) {
  double sum = 0;
  for (std::size_t i = 0; i < series.prices.size(); ++i) {
    const double until = i + 1 < series.prices.size() ? series.prices[i + 1].time.count() : end;
    sum += series.prices[i].price.value * std::max(0.0, until - series.prices[i].time.count());
  }
  const double span = series.prices.empty() ? 0 : end - series.prices.front().time.count();
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
  for (Pool& pool : pools) {
    int wanted = 0;
    for (const std::size_t line : pool.lines) wanted += cluster[line].count;
    Trace several;
    for (const Series* series : pool.sources) several.series.push_back(*series);
    pool.held = capped(several.series.size() == 1 ? several.series.front() : merged(several), wanted);
    pool.mean_price = mean_price(pool.held, trace.duration.count());
  }
  return pools;
}

/// Something that happens to one pool.
struct Happening {
  double time = 0;
  std::size_t pool = 0;
  const Change* change = nullptr;
  const PricePoint* price = nullptr;
};

std::vector<Happening> happenings(const std::vector<Pool>& pools) {
  std::vector<Happening> all;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    for (const Change& change : pools[p].held.changes)
      all.push_back({.time = change.time.count(), .pool = p, .change = &change});
    for (const PricePoint& point : pools[p].held.prices)
      all.push_back({.time = point.time.count(), .pool = p, .price = &point});
  }
  std::stable_sort(all.begin(), all.end(), [](const Happening& a, const Happening& b) { return a.time < b.time; });
  return all;
}

}  // namespace

Result<Holdings> holdings(const std::vector<PlanLine>& cluster, const Trace& trace) {
  const auto pools = pools_of(cluster, trace);
  if (!pools) return unexpected(pools.error());
  Holdings result{.duration = trace.duration.count()};
  Holdings::Moment now;
  for (const PlanLine& line : cluster) {
    now.counts.push_back(line.market == Market::spot ? 0 : line.count);
    now.rates.push_back(line.rate.value);
  }
  result.moments.push_back(now);
  for (const Happening& next : happenings(*pools)) {
    if (next.time >= result.duration) break;
    if (next.time > now.time) now.changed = false;
    now.time = std::max(0.0, next.time);
    const Pool& pool = (*pools)[next.pool];
    int left = next.change != nullptr ? next.change->available : 0;
    for (const std::size_t line : pool.lines) {
      if (next.price != nullptr) {
        now.rates[line] = cluster[line].rate.value * next.price->price.value / pool.mean_price;
        continue;
      }
      now.counts[line] = std::min(cluster[line].count, left);
      left -= now.counts[line];
    }
    now.changed = now.changed || next.change != nullptr;
    if (result.moments.back().time == now.time) result.moments.pop_back();
    result.moments.push_back(now);
  }
  return result;
}

namespace {

/// USD/h of what is held, and of the servers, which stay.
double hourly(const PlanOption& option, const Holdings::Moment& moment) {
  double sum = option.hourly;
  for (std::size_t i = 0; i < option.cluster.size(); ++i)
    sum += moment.counts[i] * moment.rates[i] - option.cluster[i].count * option.cluster[i].rate.value;
  return std::max(0.0, sum);
}

/// Share of the job per second, by what is there; every mix is predicted once.
class Pace {
 public:
  Pace(const PlanOption& option, const Problem& problem, std::size_t server)
      : problem_(problem), server_(server), evaluator_(problem), kinds_(option.cluster.size()) {
    for (std::size_t i = 0; i < option.cluster.size(); ++i) {
      const auto offers = [&](const Kind& kind) {
        return std::any_of(kind.ladder.begin(), kind.ladder.end(),
                           [&](const Offer& offer) { return offer.type == option.cluster[i].type; });
      };
      const auto kind = std::find_if(problem.kinds.begin(), problem.kinds.end(), offers);
      MAYFLY_CHECK(kind != problem.kinds.end(), "every line of a plan is of a kind of its problem");
      kinds_[i] = static_cast<std::size_t>(kind - problem.kinds.begin());
    }
  }

  double operator()(const std::vector<int>& lines) {
    std::vector<int> counts(problem_.kinds.size());
    int machines = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      counts[kinds_[i]] += lines[i];
      machines += lines[i];
    }
    if (machines < std::max(1, problem_.fewest)) return 0;
    const auto [known, fresh] = paces_.try_emplace(std::move(counts), 0);
    Candidate made;
    if (fresh && evaluator_.evaluate(known->first, server_, made)) {
      const double time = made.time - problem_.recovery.count();
      known->second = time > 0 ? 1 / time : 0;
    }
    return known->second;
  }

 private:
  const Problem& problem_;
  std::size_t server_;
  Evaluator evaluator_;
  std::vector<std::size_t> kinds_;
  std::map<std::vector<int>, double> paces_{};
};

}  // namespace

Course mixed_course(const PlanOption& option, const Problem& problem, const Candidate& candidate,
                    const Holdings& holdings, Seconds recovery) {
  Pace pace(option, problem, candidate.server);
  return course_of(option, holdings, [&](const std::vector<int>& counts) { return pace(counts); }, recovery);
}

Course course_of(const PlanOption& option, const Holdings& holdings, const PaceOf& pace, Seconds recovery) {
  std::vector<Course::Point> points{{}};
  double ready = 0;
  for (std::size_t i = 0; i < holdings.moments.size(); ++i) {
    const Holdings::Moment& moment = holdings.moments[i];
    const double end = i + 1 < holdings.moments.size() ? holdings.moments[i + 1].time : holdings.duration;
    // What is there when the trace begins has come before.
    if (moment.changed && moment.time > 0) ready = moment.time + recovery.count();
    const double speed = pace(moment.counts);
    const double price = hourly(option, moment) / 3600;
    const double resumed = std::clamp(ready, moment.time, end);
    for (const auto& [to, rate] : {std::pair(resumed, 0.0), std::pair(end, speed)}) {
      const Course::Point& last = points.back();
      const double span = to - last.time;
      if (span > 0) points.push_back({to, last.done + rate * span, last.spent + price * span});
    }
  }
  return Course(std::move(points));
}

Course shaped_course(const PlanOption& option, const Holdings& holdings, const Job& job, const ReplayOptions& options) {
  Series series{.type = job.type};
  int planned = 0;
  for (const PlanLine& line : option.cluster) planned += line.count;
  int before = 0;
  for (const Holdings::Moment& moment : holdings.moments) {
    int now = 0;
    for (const int count : moment.counts) now += count;
    if (now == before && !series.changes.empty()) continue;
    series.changes.push_back({.time = Seconds(moment.time),
                              .added = std::max(0, now - before),
                              .removed = std::max(0, before - now),
                              .available = now});
    before = now;
  }
  ReplayOptions recorded = options;
  recorded.milestones = true;
  const Replay run = replay(series, Seconds(holdings.duration), job, recorded);
  const auto shape = job.shapes.best(planned);
  const double samples = shape ? option.time * job.shapes.speed(*shape) : 0;
  // Money by what is held, work by what the replay had committed; the points of both.
  std::map<double, Course::Point> points;
  std::vector<Course::Point> money{{}};
  for (std::size_t i = 0; i < holdings.moments.size(); ++i) {
    const double end = i + 1 < holdings.moments.size() ? holdings.moments[i + 1].time : holdings.duration;
    const double span = end - money.back().time;
    if (span > 0) money.push_back({end, 0, money.back().spent + hourly(option, holdings.moments[i]) / 3600 * span});
  }
  std::vector<Course::Point> work{{}};
  for (const Milestone& milestone : run.milestones) {
    if (milestone.time.count() <= work.back().time) {
      work.back().done = milestone.samples;
    } else {
      work.push_back({milestone.time.count(), milestone.samples, 0});
    }
  }
  if (work.back().time < holdings.duration) work.push_back({holdings.duration, work.back().done, 0});
  for (std::size_t i = work.size() - 1; i-- > 0;) work[i].done = std::min(work[i].done, work[i + 1].done);
  for (Course::Point& point : work) point.done = samples > 0 ? point.done / samples : 0;
  const Course by_work(work);
  const Course by_money(money);
  for (const auto* part : {&work, &money}) {
    for (const Course::Point& point : *part)
      points[point.time] = {point.time, by_work.at(point.time).done, by_money.at(point.time).spent};
  }
  std::vector<Course::Point> both;
  for (const auto& [time, point] : points) both.push_back(point);
  return Course(std::move(both));
}

}  // namespace mayfly
