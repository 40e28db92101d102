#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/units.h"
#include "job/basis.h"

// Parts of a profile that only a measurement of the job itself can tell: docs/formats.md#profile.
namespace mayfly {

/// A step of one machine alone, at one batch size.
struct BatchPoint {
  double batch = 0;
  Seconds step{};
  Seconds interval{};                ///< half of the mean's 95 % interval; 0: not known
  std::optional<Seconds> compute{};  ///< the part before anything leaves the machine
  std::optional<double> peak_mb{};   ///< most memory it held
  int steps = 0;                     ///< counted
  bool operator==(const BatchPoint&) const = default;
};

/// Memory against the batch: fixed + per_sample * batch.
struct MemoryProfile {
  double fixed_mb = 0;
  double mb_per_sample = 0;
  double residual_mb = 0;  ///< sd of what was measured about the line
  std::string device = "host";
  Basis basis = Basis::measured;
  bool operator==(const MemoryProfile&) const = default;
};
/// The largest power of two that fits, as spotDNN (10) has it; 0: not even one sample does.
double largest_batch(const MemoryProfile& memory, double memory_mb);

/// In the order in which they compute.
struct LayerProfile {
  std::string name{};
  Seconds forward{};
  Seconds backward{};
  double parameters = 0;
  double output_mb = 0;  ///< what the next layer gets
  bool operator==(const LayerProfile&) const = default;
};
struct LayersProfile {
  double batch = 0;  ///< of all figures
  std::vector<LayerProfile> layers{};
  bool operator==(const LayersProfile&) const = default;
};

/// From nothing to a worker that trains.
struct StartProfile {
  Seconds process{};  ///< from its start until it has loaded everything
  Seconds load{};     ///< of that, data and network
  Seconds join{};     ///< until it stands with the others and has the state
  bool operator==(const StartProfile&) const = default;
};

/// What the loader can deliver to one machine.
struct LoaderProfile {
  std::optional<double> prep_samples_per_s_per_vcpu{};
  std::optional<double> fetch_samples_per_s{};  ///< from storage, nothing cached
  std::optional<double> sample_bytes{};         ///< of one sample in storage
  std::optional<double> storage_mb_per_s{};
  std::optional<double> memory_mb_per_s{};  ///< of samples that are cached
  std::optional<Basis> basis{};
  bool operator==(const LoaderProfile&) const = default;
};

/// Time lost in every step, with its 95 % interval; may lie below 0 where there is none.
struct StallProfile {
  Seconds time{};
  Seconds low{};
  Seconds high{};
  double share = 0;  ///< docs/models.md#stalls says of what
  bool operator==(const StallProfile&) const = default;
};
struct StallsProfile {
  int devices = 1;
  double batch = 0;  ///< of one device
  Seconds step{};    ///< with real data, nothing cached
  StallProfile interconnect{}, prep{}, fetch{};
  std::optional<StallProfile> network{};
  bool operator==(const StallsProfile&) const = default;
};

std::vector<BatchPoint> read_batches(Section& type);
MemoryProfile read_memory(Section section);
LayersProfile read_layers(Section section);
StartProfile read_start(Section section);
LoaderProfile read_loader(Section section);
StallsProfile read_stalls(Section section);

/// A word that names a basis; the field's error names all of them.
Basis read_basis(Section& section, Basis fallback);

}  // namespace mayfly
