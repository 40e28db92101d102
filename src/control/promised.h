#pragma once

#include <memory>

#include "control/policy.h"

namespace mayfly {

/// When machines are rented on demand to keep a deadline.
enum class TopUp {
  behind,     ///< uniform progress: whenever the run is not as far as the clock
  last_call,  ///< only when machines that are never taken away are the last way to make it
};

/// Keeps a promise of so many samples by a deadline: on-demand machines fill up what the spot market does not give, and
/// go back when they are not needed. The shape is the inner policy's affair, until no further change can be afforded:
/// from then on what trains is let train, and what takes its place is rented. Without such a promise: the inner policy.
/// `shapes` and `costs` must outlive the policy. docs/models.md#deadline
std::unique_ptr<Policy> make_promised(const Shapes& shapes, const MigrationCosts& costs, const PolicyOptions& options,
                                      TopUp when, std::unique_ptr<Policy> inner);

}  // namespace mayfly
