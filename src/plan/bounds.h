#pragma once

#include <span>
#include <vector>

#include "plan/problem.h"

// What branch and bound may conclude about clusters it has not looked at: docs/models.md#exact.
namespace mayfly {

/// Progress is counted in updates (towards a loss or a number of steps) or in samples (towards epochs), so that the
/// work of an epoch does not depend on the cluster.
enum class Metric { updates, samples };
Metric metric_of(const Problem& problem);

/// Upper bounds on how fast clusters of exactly n workers progress with one server choice: no cluster is faster than
/// the sum of `rate` over its workers, nor than `cap`.
struct RateBounds {
  std::vector<double> rate{};     ///< per kind and worker, in the metric
  std::vector<double> updates{};  ///< per kind and worker, updates/s: no worker makes more
  std::vector<double> slowed{};   ///< and none makes fewer, whatever the others are
  double cap = 0;
  bool exact = false;     ///< the sum of `rate` is the predicted rate itself
  double cap_beyond = 0;  ///< bound for every larger cluster too
};
RateBounds rate_bounds(const Problem& problem, const ServerChoice& server, int workers);

/// Least work left for any cluster of n workers whose weighted batch lies within [low, high]; infinite where the loss
/// curve speaks of none of them.
double least_work(const Problem& problem, int workers, double low_batch, double high_batch, double least_cc);

/// Towards a loss, the work of asynchronous workers is linear in their weighted batch: intercept + slope * batch at
/// most (least convergence coefficient). Nothing for other targets, or where the curve does not cover the kinds'
/// batches.
struct LinearWork {
  double intercept = 0;
  double slope = 0;
};
std::optional<LinearWork> linear_work(const Problem& problem, int workers);

/// For suffixes i.. of a list of kinds: the smallest sum of `weight` over r machines, each kind's machines weighing
/// non-decreasingly. sum(i, r) is infinite where there are not r machines.
class SuffixSums {
 public:
  /// `weight(kind, machine)` of the machine-th machine (from 0) of the kind, of which there are `free[kind]`.
  template <class Weight>
  SuffixSums(std::span<const int> free, int most, Weight weight) : most_(most) {
    std::vector<double> best;
    std::vector<double> own;
    std::vector<double> merged;
    sums_.assign((free.size() + 1) * stride(), kNone);
    store(free.size(), best);
    for (std::size_t k = free.size(); k-- > 0;) {
      own.clear();
      for (int j = 0; j < free[k] && j < most; ++j) own.push_back(weight(k, j));
      merge(best, own, merged);
      best.swap(merged);
      store(k, best);
    }
  }
  double sum(std::size_t suffix, int machines) const {
    return sums_[suffix * stride() + static_cast<std::size_t>(machines)];
  }

 private:
  static const double kNone;
  std::size_t stride() const { return static_cast<std::size_t>(most_) + 1; }
  void store(std::size_t suffix, const std::vector<double>& sorted);
  void merge(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& out) const;

  int most_;
  std::vector<double> sums_;
};

}  // namespace mayfly
