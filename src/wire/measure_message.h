#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mayfly {

// Between a workshop and its workers: docs/protocol.md#measuring.

/// To a worker that stands in a formation or is attached to servers: from now on, until the formation ends, steps
/// are done so. Answered by Measurement, of what was used since the last Measure.
struct Measure {
  std::int64_t formation = 0;
  /// "real"; "warm": whatever will be asked for lies in memory; "cold": whatever is cached of the data is dropped
  /// first; "synthetic": one batch, made ready beforehand, is used over and over.
  std::string data = "real";
  std::int64_t samples = 0;               ///< that will be asked for, from the first one on
  bool layers = false;                    ///< look at every layer of the network once, with `batch` samples
  int batch = 1;                          ///< for the look at the layers
  std::vector<std::int64_t> exchanges{};  ///< of so many bytes, each timed; every worker of a formation takes part
  std::int64_t rehearse = 0;              ///< so many samples are read, read again and prepared, each by itself
  bool operator==(const Measure&) const = default;
};

/// What a worker has used. Layers are in the order in which they compute; the lists have one entry for each.
struct Measurement {
  std::int64_t formation = 0;
  double cpu_s = 0;
  double peak_mb = 0;    ///< most memory it held
  int prep_threads = 0;  ///< of its loader
  // Of a rehearsal.
  std::int64_t rehearsed = 0;  ///< samples
  double rehearsed_mb = 0;
  double read_s = 0;     ///< by the loader's fetch threads; likewise reread_s
  double reread_s = 0;   ///< what was just read
  double prepare_s = 0;  ///< by one thread
  // Of the network.
  int tensors = 0;
  double gflops = 0;  ///< this machine's, multiplying large matrices; 0: not asked for
  std::vector<std::string> layers{};
  std::vector<double> layer_forward_s{};
  std::vector<double> layer_backward_s{};
  std::vector<double> layer_parameters{};
  std::vector<double> layer_output_mb{};
  std::vector<double> exchanges_s{};  ///< one for each that was asked for
  bool operator==(const Measurement&) const = default;
};

}  // namespace mayfly
