#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/result.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/ledger.h"
#include "data/order.h"
#include "data/raw_samples.h"
#include "data/shared_prep.h"

namespace mayfly {

/// What was done to get some samples.
struct PrepSpent {
  double fetch_s = 0;
  double prep_s = 0;
  double fetched_bytes = 0;
  std::int64_t prepared = 0;  ///< samples, also those that only others want
};

/// Places of a run's order, prepared together with other jobs on this machine. For many threads at once.
class SharedChunks {
 public:
  struct Options {
    std::string name{};          ///< jobs that give the same share
    std::uint64_t identity = 0;  ///< of the data set, where its shape and size are not enough
    std::uint64_t seed = 1;      ///< of the order
    std::int64_t ahead = 0;      ///< places that are worth preparing before they are asked for
    Seconds patience{30};        ///< SharedPrep's
  };
  /// The data set and the source must outlive it. An error says why nothing can be shared.
  static Result<std::unique_ptr<SharedChunks>> join(const Dataset& data, const SampleOrder& order, RawSamples& source,
                                                    const Options& options);

  /// The samples at these places.
  Result<void> read(SampleRange places, std::span<float> inputs, std::span<std::int64_t> labels, PrepSpent& spent);
  /// Places from this one to the end of its chunk: what is best read at a time.
  std::int64_t rest_of_chunk(std::int64_t place) const { return samples_ - place % samples_; }
  /// Samples taken that another job had prepared.
  std::int64_t received() const { return prep_->counts().received * samples_; }
  /// A reader that waits for other jobs fails at once, now and later.
  void stop() { prep_->stop(); }

 private:
  /// A chunk that was taken and of which not everything was read.
  struct Rest {
    AlignedArray<float> inputs{};
    AlignedArray<std::int64_t> labels{};
    std::int64_t unread = 0;
  };
  SharedChunks(const Dataset& data, const SampleOrder& order, RawSamples& source, std::int64_t samples,
               std::unique_ptr<SharedPrep> prep);
  Result<std::shared_ptr<Rest>> chunk(std::int64_t number, PrepSpent& spent);
  void put_back(std::int64_t number, std::shared_ptr<Rest> rest);
  Result<void> prepare(std::int64_t number, std::span<float> inputs, std::span<std::int64_t> labels, PrepSpent& spent);

  const Dataset& data_;
  const SampleOrder order_;
  RawSamples& source_;
  const std::int64_t samples_;  ///< of a chunk
  const std::size_t length_, labels_;
  const std::unique_ptr<SharedPrep> prep_;
  std::mutex mutex_{};
  std::map<std::int64_t, std::shared_ptr<Rest>> rests_{};
};

}  // namespace mayfly
