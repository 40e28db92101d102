#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backtest/rules.h"
#include "simulate/past.h"
#include "simulate/risk.h"

namespace mayfly {

/// A plan that may be chosen, and how it would have gone at any time.
struct Entrant {
  PlanOption option{};
  Course course;
  RiskQuestion question{};  ///< once its machines train
  Seconds lead{};           ///< before they do
  Usd before{};             ///< for that, and beside machines
  bool searched = true;     ///< found by the search, not made safer than what it found
  std::optional<std::size_t>
      rental{};  ///< of its machines before some of them were rented on demand; of functions: none

  bool needs_market() const;
};

/// Everything the planner looks at on one trace. What is searched does not depend on the weather, so it is searched
/// once and every start chooses anew.
struct Field {
  Field() = default;
  Field(Field&&) noexcept = default;
  Field& operator=(Field&&) = default;

  std::deque<Entrant> entrants{};  ///< does not grow: `pasts` point into it
  std::vector<Past> pasts{};
  std::vector<Rental> rentals{};
  int runners_up = 0;  ///< as asked for
  std::string none{};  ///< why there is no entrant
};

/// The planner's finalists for the request's confidence. Requires that and a deadline. An error where the question
/// cannot be answered, or no finalist's machines are in the trace.
Result<Field> field_of(const Profile& profile, const Catalog& catalog, const PlanRequest& request, const Trace& trace,
                       const RiskOptions& options);

/// Of the entrants the one that the planner takes if they keep the promise with these chances, by what is known at
/// `now` of their times and costs; nothing where none has the confidence.
struct Choice {
  std::optional<std::size_t> entrant{};
  double chance = 0;  ///< of the chosen one, else of the surest
};
Choice choice_at(const Field& field, const std::vector<double>& chances, Seconds now, double confidence);
/// What each entrant states at a moment.
std::vector<double> chances_at(const Field& field, Seconds now);

}  // namespace mayfly
