#pragma once

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "plan/bounds.h"
#include "plan/search.h"

namespace mayfly {

// Terms. A *tier* is one server choice, one batch, a number of workers n and one kind, the *slow* one, that is among
// them and has the longest overhead of all; where the batch is that of the largest machine, that kind, too. R is the
// pace of a cluster, the sum of batch / (compute - fixed) over its workers in samples/s, and P its price. No cluster of
// the tier makes a step faster than s(R), that of n workers with the links of the slow kind and together the pace R. So
// one that is no dearer than C and in time has
//
//   P <= C U(R)      U = 1 / (s W + r), W the steps      R >= R_T      where s(R_T) W + r is the time there is
//
// with r what is paid before training goes on.
//
// U is concave, so for every R_g its tangent there is above it: P - m R <= q, m = C U'(R_g), q = C U(R_g) - m R_g; and
// for slopes m above that at R_T, where R is no less: P - m R <= C U(R_T) - m R_T. All are linear in the counts: a node
// (counts of the first kinds fixed, r machines to choose) is hopeless where the r smallest terms among the rest cannot
// bring one of these sums down to its limit.
inline constexpr std::size_t kTangents = 9;
inline constexpr std::array kSteeper{1.5, 3.0};
/// The last sum stands for an infinite slope: R alone.
inline constexpr std::size_t kLines = kTangents + kSteeper.size() + 1;
inline constexpr double kNever = std::numeric_limits<double>::infinity();
/// Bounds are sums of many terms; this much may be rounding.
inline constexpr double kRounding = 1e-9;

/// What is still of interest.
struct Limits {
  double time = kNever;  ///< s
  double cost = kNever;  ///< USD/h x s
};

class BarrierTier {
 public:
  BarrierTier(const Problem& problem, const Workload& job, std::size_t server, int workers, double work)
      : problem_(problem), job_(job), server_(server), workers_(workers), work_(work) {}

  /// The step of n workers like this one, with together the pace R.
  double step(const Worker& slow, double pace) const;

  /// Machines of these kinds, of which one is the slow one and one, where it is given, the large one. False where there
  /// are none such.
  bool set(const std::vector<std::size_t>& kinds, std::size_t slow, std::optional<std::size_t> large);

  /// Less than which no cluster of the tier costs, and takes: by its best kinds, whatever their number.
  Limits least() const;

  /// Makes the lines for clusters within the limits. False where there is none.
  bool prepare(const Limits& limits);

  /// Hopeless by its best kinds, whatever their number.
  bool plainly_hopeless() const;

  void make_tables();

  /// The largest cost (to a hundredth) that the lines rule out for the whole tier.
  double least_cost(const Limits& limits);

  struct Node {
    std::size_t depth = 0;
    int left = 0;
    double pace = 0;
    std::array<double, kLines> sums{};
  };
  Node root() const;

  bool hopeless(const Node& node) const;

  /// Looks at what is not hopeless; false when the nodes ran out.
  bool visit(const Node& node, Evaluator& evaluator, Best& best, long long& nodes, long long most_nodes);

 private:
  /// Of clusters of the tier with the pace R: what is paid before training goes on, and the work.
  double time(double pace) const;
  /// Of the machine-th that is added to those the tier begins with.
  double price(std::size_t k, int machine) const;
  double term(std::size_t line, std::size_t k, int machine) const;
  bool above(std::size_t line, double least) const;
  void add_line(double slope, double at, double value);

  /// The least pace with which the work is done in time, not above it.
  double least_pace(double low, double high, double most_time) const;

  /// Between which paces clusters may cost no more than that; false: nowhere.
  bool narrow(double low, double high, double cost);

  const Problem& problem_;
  const Workload& job_;
  std::size_t server_;
  int workers_;
  double work_;
  const Worker* slow_ = nullptr;
  std::vector<int> begin_;  // machines of each kind that all clusters of the tier have
  std::vector<int> counts_;
  std::vector<std::size_t> order_;  // kinds of which machines are to be had
  std::vector<int> free_;
  int places_ = 0;   // machines to choose
  double pace_ = 0;  // of those that are chosen, and what they and the servers cost
  double price_ = 0;
  double least_price_ = 0;
  double least_ratio_ = 0;
  double best_pace_ = 0;
  double timely_ = 0;
  double least_ = 0;
  double most_ = 0;
  std::size_t lines_ = 0;
  std::array<double, kLines> slopes_{};
  std::array<double, kLines> limits_{};
  std::vector<SuffixSums> tables_;
  SuffixSums paces_{std::span<const int>(), 0, [](std::size_t, int) { return 0.0; }};
  std::vector<std::vector<Node>> scratch_;
  Candidate candidate_;
};

}  // namespace mayfly
