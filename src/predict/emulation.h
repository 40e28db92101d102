#pragma once

#include <optional>
#include <vector>

#include "predict/worker.h"

// A cluster played by processes of one computer: each gets a share of a core, so that fast and slow machines differ as
// the real ones do, and everything takes `slowdown` times as long. docs/models.md#emulation
namespace mayfly {

struct EmulationRequest {
  std::vector<MachineCount> machines{};
  int servers = 0;  ///< processes that hold parameters beside them
  int cores = 1;    ///< of this computer, for all of them
};

/// One machine of a type.
struct EmulatedType {
  std::string type{};
  double cpu_share = 1;                     ///< of a core
  std::optional<BytesPerSecond> network{};  ///< each way; absent: not held back
  bool operator==(const EmulatedType&) const = default;
};

struct Emulation {
  std::vector<EmulatedType> types{};
  double share_per_speed = 0;        ///< speeds are samples/s, without a profile peak TFLOPS
  std::optional<double> slowdown{};  ///< absent: the speed of a core of this computer is not known
  bool operator==(const Emulation&) const = default;
};

/// Shares in proportion to the speeds of the types at this job, as large as they go: none above a core, all together
/// 0.8 of the cores, of which each server takes 0.2. Without a profile speeds are those of the GPUs on paper. A core of
/// this computer is as fast as the one type that the profile has measured; where there is no such type, or several, the
/// slowdown is unknown and networks are not held back.
Result<Emulation> make_emulation(const Profile* profile, const Catalog& catalog, const EmulationRequest& request);
/// A machine of any type in that emulation, also of one it was not made for.
Result<EmulatedType> emulated_type(const Emulation& emulation, const Profile* profile, const Catalog& catalog,
                                   const InstanceType& type);

/// The world in which everything takes `factor` times as long: machines and links are slower and cost less an hour, so
/// that a plan takes as much longer and costs the same. What a change of the cluster costs (recovery_s) stays:
/// processes start no slower than they do.
Profile stretched(Profile profile, double factor);
Catalog stretched(Catalog catalog, double factor);

/// A function of so much memory as a machine of the catalogue: the platform is the profile's, else the catalogue's
/// first. Named "lambda-1728".
Result<InstanceType> function_type(const Profile* profile, const Catalog& catalog, int memory_mib);
/// How it does this job: by the profile's rate for functions, else by its part of a vCPU, which is a core of this
/// computer. Nothing where neither is known.
std::optional<TypeProfile> function_profile(const Profile& profile, const InstanceType& function, int memory_mib);

}  // namespace mayfly
