#include "nn/shard.h"

#include <algorithm>

#include "base/check.h"
#include "nn/optimiser.h"

namespace mayfly {
namespace {

using torch::Tensor;

std::int64_t signed_size(std::size_t size) { return static_cast<std::int64_t>(size); }

std::size_t overlap(const ShardRange& range, std::size_t first, std::size_t count) {
  const auto begin = std::max(range.first, first);
  const auto end = std::min(range.end(), first + count);
  return begin < end ? end - begin : 0;
}

/// The state is steps, weights, then each moment. The optimiser sees the parameters as a single one: its arithmetic
/// goes element by element, so where a shard ends does not matter.
class TorchShard final : public Shard {
 public:
  TorchShard(const TrainSpec& spec, const ExchangeLayout& layout, int shard, int shards);

  ShardRange range() const override { return range_; }
  std::span<const float> weights() const override { return {weights_.data_ptr<float>(), range_.count}; }
  void apply(std::span<const std::span<const float>> pushes, std::int64_t step, int workers) override;
  std::span<std::byte> state() override;
  void take(Trainer& whole) override;
  void put(Trainer& whole) const override;

 private:
  std::span<float> moment(std::size_t kind) const;

  TrainSpec spec_;
  ShardRange range_;
  std::size_t parameters_;
  std::size_t statistics_;
  Tensor piece_;  ///< the state; the tensors below and the optimiser's are views of it
  Tensor weights_;
  Tensor trained_;
  Tensor sum_;  ///< of an update's pushes
  std::unique_ptr<Optimiser> optimiser_;
};

TorchShard::TorchShard(const TrainSpec& spec, const ExchangeLayout& layout, int shard, int shards)
    : spec_(spec),
      range_(shard_range(layout.size(), shard, shards)),
      parameters_(overlap(range_, 0, layout.parameters)),
      statistics_(overlap(range_, layout.parameters, layout.statistics)) {
  torch::NoGradGuard no_grad;
  const auto count = signed_size(range_.count);
  const auto parameters = signed_size(parameters_);
  sum_ = torch::zeros({count});
  trained_ = torch::zeros({parameters});
  trained_.mutable_grad() = sum_.narrow(0, 0, parameters);
  optimiser_ = std::make_unique<Optimiser>(spec_.optimiser, std::vector<NamedTensor>{{"shard", trained_}});
  const auto moments = optimiser_->moments();
  piece_ = torch::zeros({signed_size(sizeof(std::int64_t) + sizeof(float) * (range_.count + moments * parameters_))},
                        torch::kByte);
  auto* steps = static_cast<std::int64_t*>(piece_.data_ptr());
  auto* floats = reinterpret_cast<float*>(steps + 1);
  weights_ = torch::from_blob(floats, {count});
  trained_.set_data(weights_.narrow(0, 0, parameters));
  for (std::size_t kind = 0; kind < optimiser_->state().size(); ++kind) {
    auto tensor = optimiser_->state()[kind].tensor;
    auto place = kind < moments ? torch::from_blob(floats + range_.count + kind * parameters_, {parameters})
                                : torch::from_blob(steps, {}, torch::kInt64);
    tensor.set_data(place.copy_(tensor));
  }
}

void TorchShard::apply(std::span<const std::span<const float>> pushes, std::int64_t step, int workers) {
  MAYFLY_CHECK(!pushes.empty(), "an update needs a push");
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < pushes.size(); ++i) {
    MAYFLY_CHECK(pushes[i].size() == range_.count, "a push covers its shard");
    // LibTorch has no tensors of constants; this one is only read.
    const auto push = torch::from_blob(const_cast<float*>(pushes[i].data()), {signed_size(range_.count)});
    i == 0 ? sum_.copy_(push) : sum_.add_(push);
  }
  optimiser_->step(rate_at(spec_, step, workers));
  const auto counters = range_.count - parameters_ - statistics_;
  const auto moved = [&](std::size_t first, std::size_t count) {
    const auto part = [&](const Tensor& tensor) { return tensor.narrow(0, signed_size(first), signed_size(count)); };
    return std::pair(part(weights_), part(sum_));
  };
  if (statistics_ > 0) {
    const auto [values, changes] = moved(parameters_, statistics_);
    values.add_(changes);
  }
  if (counters > 0) {
    const auto [values, gains] = moved(parameters_ + statistics_, counters);
    values.add_(gains.round());
  }
}

std::span<std::byte> TorchShard::state() {
  return {static_cast<std::byte*>(piece_.data_ptr()), static_cast<std::size_t>(piece_.numel())};
}

std::span<float> TorchShard::moment(std::size_t kind) const {
  return {optimiser_->state()[kind].tensor.data_ptr<float>(), parameters_};
}

void TorchShard::take(Trainer& whole) {
  const auto values = std::span<const float>(whole.weights()).subspan(range_.first, range_.count);
  std::copy(values.begin(), values.end(), weights_.data_ptr<float>());
  const auto moments = whole.moments();
  for (std::size_t kind = 0; kind < moments.values.size() && parameters_ > 0; ++kind) {
    const auto part = std::span(moments.values[kind]).subspan(range_.first, parameters_);
    std::copy(part.begin(), part.end(), moment(kind).begin());
  }
  optimiser_->set_steps(moments.steps);
}

void TorchShard::put(Trainer& whole) const {
  const auto values = weights();
  std::copy(values.begin(), values.end(), whole.weights().begin() + signed_size(range_.first));
  whole.weights_written();
  auto moments = whole.moments();
  for (std::size_t kind = 0; kind < moments.values.size() && parameters_ > 0; ++kind)
    std::copy(moment(kind).begin(), moment(kind).end(), moments.values[kind].begin() + signed_size(range_.first));
  moments.steps = optimiser_->steps();
  whole.set_moments(moments);
}

}  // namespace

ShardRange shard_range(std::size_t size, int shard, int shards) {
  MAYFLY_CHECK(shard >= 0 && shard < shards, "a shard is one of several");
  const auto begin = [&](int which) {
    return size * static_cast<std::size_t>(which) / static_cast<std::size_t>(shards);
  };
  return {.first = begin(shard), .count = begin(shard + 1) - begin(shard)};
}

std::unique_ptr<Shard> Shard::make(const TrainSpec& spec, const ExchangeLayout& layout, int shard, int shards) {
  return std::make_unique<TorchShard>(spec, layout, shard, shards);
}

}  // namespace mayfly
