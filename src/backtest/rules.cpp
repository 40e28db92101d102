// Model: docs/models.md#backtest
#include "backtest/rules.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace mayfly {
namespace {

enum class Place { nowhere, market, on_demand };

/// A cluster that is rented here or there, and what it has done.
class Ride {
 public:
  Ride(const Rental& rental, const RuleJob& job, const RuleFigures& figures)
      : rental_(rental), job_(job), figures_(figures), now_(job.start), ready_(job.start) {
    at_ = static_cast<std::size_t>(std::upper_bound(rental.market.begin(), rental.market.end(), now_,
                                                    [](double t, const auto& stretch) { return t < stretch.time; }) -
                                   rental.market.begin());
    at_ -= at_ > 0 ? 1 : 0;
  }

  double elapsed() const { return now_ - job_.start; }
  double left() const { return job_.work - done_; }
  double share() const { return done_ / job_.work; }
  bool whole() const { return rental_.market[at_].whole; }
  Place place() const { return place_; }
  bool over() const { return finished_ || now_ >= rental_.end; }
  RuleRun run() const { return {finished_, elapsed(), cost_, restarts_}; }

  /// The market has taken what was rented there.
  void suffer() {
    if (place_ != Place::market || whole()) return;
    done_ -= unsaved_;
    unsaved_ = 0;
    place_ = Place::nowhere;
  }

  void go(Place place) {
    if (place == place_) return;
    place_ = place;
    unsaved_ = 0;
    if (place == Place::nowhere) return;
    ready_ = now_;
    if (begun_) {
      ready_ += figures_.restart.count();
      ++restarts_;
    }
    begun_ = true;
  }

  /// Until the market changes, the job is done, or `look` is over.
  void advance(double look) {
    const auto& market = rental_.market;
    double next = std::min(rental_.end, now_ + look);
    if (at_ + 1 < market.size()) next = std::min(next, market[at_ + 1].time);
    if (place_ != Place::nowhere) {
      const double done = std::max(now_, ready_) + left();
      finished_ = done <= next;
      next = std::min(next, done);
      const double hourly = place_ == Place::market ? market[at_].hourly : rental_.on_demand_hourly;
      cost_ += hourly * (next - now_) / 3600;
      const double trained = std::max(0.0, next - std::max(now_, ready_));
      done_ += trained;
      unsaved_ = std::fmod(unsaved_ + trained, figures_.checkpoint_every.count());
    }
    now_ = next;
    if (at_ + 1 < market.size() && market[at_ + 1].time <= now_) ++at_;
  }

 private:
  const Rental& rental_;
  const RuleJob& job_;
  const RuleFigures& figures_;
  double now_;
  double ready_;        ///< when what is rented begins to train
  std::size_t at_ = 0;  ///< of the market's stretches
  Place place_ = Place::nowhere;
  bool begun_ = false;
  bool finished_ = false;
  double done_ = 0;
  double unsaved_ = 0;  ///< of it, since the last checkpoint
  double cost_ = 0;
  int restarts_ = 0;
};

}  // namespace

Rental rental_of(const Scene& scene, UsdPerHour on_demand) {
  Rental rental{.on_demand_hourly = on_demand.value, .end = scene.duration.count()};
  std::set<double> times{0};
  for (const Supply& supply : scene.supplies) {
    for (const Change& change : supply.changes) times.insert(change.time.count());
    for (const Supply::Line& line : supply.lines) {
      for (const PricePoint& point : line.prices) times.insert(point.time.count());
    }
  }
  double held = scene.standing.value;
  for (const Rented& rented : scene.rented) held += rented.count * rented.price.value;
  std::vector<std::size_t> changes(scene.supplies.size());
  std::vector<std::vector<std::size_t>> prices;
  for (const Supply& supply : scene.supplies) prices.emplace_back(supply.lines.size());
  for (const double time : times) {
    Rental::Stretch stretch{.time = time, .whole = true, .hourly = held};
    for (std::size_t s = 0; s < scene.supplies.size(); ++s) {
      const Supply& supply = scene.supplies[s];
      while (changes[s] < supply.changes.size() && supply.changes[changes[s]].time.count() <= time) ++changes[s];
      int missing = changes[s] == 0 ? 0 : -supply.changes[changes[s] - 1].available;
      for (std::size_t l = 0; l < supply.lines.size(); ++l) {
        const Supply::Line& line = supply.lines[l];
        std::size_t& at = prices[s][l];
        while (at < line.prices.size() && line.prices[at].time.count() <= time) ++at;
        stretch.hourly += line.most * (at == 0 ? line.price : line.prices[at - 1].price).value;
        missing += line.most;
      }
      stretch.whole = stretch.whole && missing <= 0;
    }
    const bool same = !rental.market.empty() && rental.market.back().whole == stretch.whole &&
                      rental.market.back().hourly == stretch.hourly;
    if (!same) rental.market.push_back(stretch);
  }
  return rental;
}

RuleRun fixed_run(const Rental& rental, const RuleJob& job, const RuleFigures& figures) {
  Ride ride(rental, job, figures);
  while (!ride.over()) {
    ride.suffer();
    ride.go(ride.whole() ? Place::market : Place::nowhere);
    ride.advance(rental.end);
  }
  return ride.run();
}

RuleRun uniform_progress_run(const Rental& rental, const RuleJob& job, const RuleFigures& figures) {
  const double look = figures.look.count();
  const double restarts = 2 * figures.restart.count();
  Ride ride(rental, job, figures);
  bool for_good = false;
  while (!ride.over()) {
    ride.suffer();
    for_good = for_good || job.deadline - ride.elapsed() <= ride.left() + restarts + look;
    const bool rented = ride.place() == Place::on_demand;
    const double line = (ride.elapsed() + (rented ? restarts : 0)) / job.deadline;
    if (for_good) {
      ride.go(Place::on_demand);
    } else if (ride.whole()) {
      ride.go(Place::market);
    } else {
      ride.go(ride.share() < line ? Place::on_demand : Place::nowhere);
    }
    ride.advance(look);
  }
  return ride.run();
}

}  // namespace mayfly
