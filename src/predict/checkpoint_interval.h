#pragma once

#include "base/units.h"

// Model: docs/models.md#checkpoint-interval
namespace mayfly {

/// Training time between two checkpoints that loses least to writing them and to doing work again (Daly's higher-order
/// form of Young's sqrt(2 cost M)). `cost`: training stands still so long for one. M, `mean_time_between_losses`: of
/// losing everything since the last checkpoint, that is all copies of the state at once; the loss of one machine of
/// several is not meant. Infinite: never. At least a second, at most an hour. Requires cost >= 0 and M > 0.
Seconds checkpoint_interval(Seconds cost, Seconds mean_time_between_losses);

}  // namespace mayfly
