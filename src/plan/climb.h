#pragma once

#include "plan/search.h"

namespace mayfly {

/// A good start for a search, never a proof: every cluster of one kind alone, then from the best of them one machine
/// added, dropped or exchanged at a time.
void climb(const Problem& problem, Evaluator& evaluator, Best& best);

}  // namespace mayfly
