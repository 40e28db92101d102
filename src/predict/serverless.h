#pragma once

#include "base/units.h"
#include "cloud/instance_type.h"
#include "job/profile.h"

// lambdaDNN's model of training on functions: docs/models.md#lambda.
namespace mayfly {

/// n functions of m MiB each.
struct FunctionFleet {
  int functions = 0;
  int memory_mib = 0;
  bool operator==(const FunctionFleet&) const = default;
};

struct ServerlessPrediction {
  double local_batch = 0;
  double iterations = 0;
  Seconds load{};
  Seconds compute{};   ///< per iteration
  Seconds exchange{};  ///< per iteration
  int restarts = 0;    ///< time-outs survived
  Seconds time{};
  Usd cost{};
};

/// The job for `epochs` epochs on the fleet, with one parameter server at `server_price` charged for the whole time.
/// Requires profile.serverless, samples, dataset_size and parameters.
ServerlessPrediction serverless_prediction(const Profile& profile, const FunctionPlatform& platform,
                                           FunctionFleet fleet, double epochs, UsdPerHour server_price);

/// lambdaDNN (14): functions beyond which the server's link is the limit.
int serverless_most_functions(const ServerlessProfile& profile);
/// lambdaDNN (15): functions below which the deadline cannot be met, before rounding up.
double serverless_fewest_functions(const Profile& profile, int memory_mib, double epochs, Seconds deadline);

}  // namespace mayfly
