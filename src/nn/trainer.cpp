#include "nn/trainer.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "nn/network.h"
#include "nn/optimiser.h"

namespace mayfly {
namespace {

using torch::Tensor;

/// A gradient or statistic and its part of what is exchanged.
struct Exchanged {
  Tensor tensor{};
  Tensor part{};    ///< view into the exchanged piece, of the tensor's shape
  Tensor before{};  ///< the tensor as it was when the computation began
};

struct Batch {
  Tensor inputs{};
  Tensor labels{};
};

TensorView view_of(const NamedTensor& named) {
  const auto& tensor = named.tensor;
  const auto shape = tensor.sizes();
  return {.name = named.name,
          .dtype = tensor.scalar_type() == torch::kFloat ? "F32" : "I64",
          .shape = {shape.begin(), shape.end()},
          .bytes = {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}};
}

Result<void> check_types(const std::vector<NamedTensor>& tensors, bool counts_too) {
  for (const auto& [name, tensor] : tensors) {
    const auto type = tensor.scalar_type();
    if (type == torch::kFloat || (counts_too && type == torch::kInt64)) continue;
    return fail("model: {} holds {}, want Float{}", name, c10::toString(type), counts_too ? " or Long" : "");
  }
  return {};
}

Result<const TensorView*> found_alike(const TensorFile& file, std::string_view what, const TensorView& wanted) {
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == wanted.name; });
  if (found == file.tensors.end()) return fail("{}: no tensor {}", what, wanted.name);
  if (found->dtype != wanted.dtype || found->shape != wanted.shape || found->bytes.size() != wanted.bytes.size())
    return fail("{}: {} is {} [{}], want {} [{}]", what, wanted.name, found->dtype, fmt::join(found->shape, ", "),
                wanted.dtype, fmt::join(wanted.shape, ", "));
  return &*found;
}

Result<void> check_alike(const TensorFile& file, std::string_view what, const std::vector<TensorView>& wanted) {
  for (const auto& tensor : wanted) {
    if (const auto found = found_alike(file, what, tensor); !found) return unexpected(found.error());
  }
  if (file.tensors.size() != wanted.size())
    return fail("{}: {} tensors, want {}", what, file.tensors.size(), wanted.size());
  return {};
}

class TorchTrainer final : public Trainer {
 public:
  TorchTrainer(const TrainSpec& spec, std::unique_ptr<Network> network, torch::Device device);

  double compute(const Dataset& data, std::span<const std::int64_t> samples, double share, std::int64_t place) override;
  std::span<float> exchange() override;
  void apply(std::int64_t step, int workers) override;
  Evaluation evaluate(const Dataset& data, std::span<const std::int64_t> samples) override;
  std::vector<TensorView> model_state() override { return views(0, model_.size()); }
  std::vector<TensorView> optimiser_state() override { return views(model_.size(), live_.size()); }
  std::vector<std::span<std::byte>> writable_state() override;
  void loaded() override;
  Result<void> load(const TensorFile& model, const TensorFile& optimiser) override;
  void reset() override;
  std::int64_t parameters() const override { return parameter_count_; }

  /// One sample through the network, to see that the two fit.
  Result<void> try_out(const Dataset& data);

 private:
  void lay_out();
  Tensor next_part(std::int64_t& at, const Tensor& tensor) const;
  Batch read(const Dataset& data, std::span<const std::int64_t> samples) const;
  void put_statistics_aside(double share);
  std::vector<TensorView> views(std::size_t first, std::size_t last);

  TrainSpec spec_;
  std::unique_ptr<Network> network_;
  torch::Device device_;
  std::vector<NamedTensor> trained_;
  std::vector<NamedTensor> model_;  ///< parameters, then buffers
  std::unique_ptr<Optimiser> optimiser_;
  std::int64_t parameter_count_ = 0;

  // Gradients, then statistics, then what was added to counts. Parameters accumulate their gradients right here.
  Tensor flat_;
  Tensor flat_host_;  ///< flat_ itself on a CPU
  std::vector<Exchanged> statistics_;
  std::vector<Exchanged> counts_;
  bool computed_ = false;

  std::vector<NamedTensor> live_;  ///< model_, then the optimiser's
  std::vector<Tensor> host_;       ///< live_ where others can read and write: the same tensors on a CPU
  std::vector<Tensor> first_;      ///< model_ at the start
};

TorchTrainer::TorchTrainer(const TrainSpec& spec, std::unique_ptr<Network> network, torch::Device device)
    : spec_(spec), network_(std::move(network)), device_(device) {
  network_->move_to(device_);
  network_->set_training(true);
  model_ = network_->parameters();
  for (auto& parameter : model_) {
    if (!parameter.tensor.is_contiguous()) parameter.tensor.set_data(parameter.tensor.contiguous());
    if (!parameter.tensor.requires_grad()) continue;
    trained_.push_back(parameter);
    parameter_count_ += parameter.tensor.numel();
  }
  for (auto& buffer : network_->buffers()) {
    if (!buffer.tensor.is_contiguous()) buffer.tensor.set_data(buffer.tensor.contiguous());
    model_.push_back(buffer);
  }
  optimiser_ = std::make_unique<Optimiser>(spec_.optimiser, trained_);
  live_ = model_;
  live_.insert(live_.end(), optimiser_->state().begin(), optimiser_->state().end());
  for (const auto& [name, tensor] : live_) host_.push_back(tensor.detach().to(torch::kCPU));
  for (const auto& [name, tensor] : model_) first_.push_back(tensor.detach().clone());
  lay_out();
}

Tensor TorchTrainer::next_part(std::int64_t& at, const Tensor& tensor) const {
  const auto part = flat_.narrow(0, at, tensor.numel()).view(tensor.sizes());
  at += tensor.numel();
  return part;
}

void TorchTrainer::lay_out() {
  const auto buffers = network_->buffers();
  std::int64_t size = parameter_count_;
  for (const auto& [name, tensor] : buffers) size += tensor.numel();
  flat_ = torch::zeros({size}, torch::TensorOptions(device_).dtype(torch::kFloat));
  flat_host_ = flat_.to(torch::kCPU);
  std::int64_t at = 0;
  for (const auto& [name, tensor] : trained_) tensor.mutable_grad() = next_part(at, tensor);
  for (const auto& [name, tensor] : buffers) {
    auto& group = tensor.scalar_type() == torch::kFloat ? statistics_ : counts_;
    group.push_back({.tensor = tensor, .part = next_part(at, tensor), .before = tensor.clone()});
  }
}

Batch TorchTrainer::read(const Dataset& data, std::span<const std::int64_t> samples) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  std::vector<std::int64_t> shape{count};
  for (const int side : data.shape()) shape.push_back(side);
  Batch batch{.inputs = torch::empty(shape), .labels = torch::empty({count, data.labels()}, torch::kInt64)};
  data.read(samples, {batch.inputs.data_ptr<float>(), static_cast<std::size_t>(batch.inputs.numel())},
            {batch.labels.data_ptr<std::int64_t>(), static_cast<std::size_t>(batch.labels.numel())});
  if (spec_.data.name == "text") batch.inputs = batch.inputs.to(torch::kInt64);
  return {.inputs = batch.inputs.to(device_), .labels = batch.labels.to(device_)};
}

double TorchTrainer::compute(const Dataset& data, std::span<const std::int64_t> samples, double share,
                             std::int64_t place) {
  // A gradient of -0 added to 0 would be 0; added to -0 everything stays what it is.
  flat_.fill_(-0.0);
  computed_ = true;
  double loss = 0;
  if (!samples.empty()) {
    torch::manual_seed(Rng(Rng(spec_.seed).bits() ^ static_cast<std::uint64_t>(place)).bits());
    for (auto* group : {&statistics_, &counts_})
      for (auto& one : *group) one.before.copy_(one.tensor);
    const auto batch = read(data, samples);
    const auto mean_or_sum = network_->loss(network_->forward(batch.inputs), batch.labels, spec_.sum);
    // What is added up needs no weights; scaling the start of the backward pass scales every gradient.
    if (spec_.sum || share == 1) {
      mean_or_sum.backward();
    } else {
      mean_or_sum.backward(torch::full_like(mean_or_sum, share));
    }
    put_statistics_aside(share);
    loss = mean_or_sum.item<double>();
  }
  if (!device_.is_cpu()) flat_host_.copy_(flat_);
  return loss;
}

/// The forward pass has moved statistics of a step that may never count: they travel, the network gets the old ones.
void TorchTrainer::put_statistics_aside(double share) {
  torch::NoGradGuard no_grad;
  for (auto& one : statistics_) {
    one.part.copy_(one.tensor);
    if (share != 1) one.part.mul_(share);
    one.tensor.copy_(one.before);
  }
  for (auto& one : counts_) {
    one.part.copy_(one.tensor - one.before);
    if (share != 1) one.part.mul_(share);
    one.tensor.copy_(one.before);
  }
}

std::span<float> TorchTrainer::exchange() {
  return {flat_host_.data_ptr<float>(), static_cast<std::size_t>(flat_host_.numel())};
}

void TorchTrainer::apply(std::int64_t step, int workers) {
  MAYFLY_CHECK(computed_, "apply() follows a compute()");
  computed_ = false;
  torch::NoGradGuard no_grad;
  if (!device_.is_cpu()) flat_.copy_(flat_host_);
  if (spec_.clip) {
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : trained_) tensors.push_back(tensor);
    torch::nn::utils::clip_grad_norm_(tensors, *spec_.clip);
  }
  const double rate = spec_.optimiser.rate * rate_factor(spec_.schedule, static_cast<double>(step));
  optimiser_->step(spec_.scale_rate ? rate * workers : rate);
  for (auto& one : statistics_) one.tensor.copy_(one.part);
  for (auto& one : counts_) one.tensor += one.part.round().to(torch::kInt64);
}

Evaluation TorchTrainer::evaluate(const Dataset& data, std::span<const std::int64_t> samples) {
  constexpr std::size_t kAtOnce = 250;
  torch::NoGradGuard no_grad;
  network_->set_training(false);
  Evaluation result;
  for (std::size_t at = 0; at < samples.size(); at += kAtOnce) {
    const auto batch = read(data, samples.subspan(at, std::min(kAtOnce, samples.size() - at)));
    const auto scores = network_->forward(batch.inputs);
    result.loss_sum += network_->loss(scores, batch.labels, true).item<double>();
    result.correct += network_->correct(scores, batch.labels).item<double>();
    result.labels += static_cast<double>(batch.labels.numel());
  }
  network_->set_training(true);
  return result;
}

std::vector<TensorView> TorchTrainer::views(std::size_t first, std::size_t last) {
  std::vector<TensorView> result;
  for (std::size_t i = first; i < last; ++i) {
    if (!live_[i].tensor.is_cpu()) host_[i].copy_(live_[i].tensor);
    result.push_back(view_of({live_[i].name, host_[i]}));
  }
  return result;
}

std::vector<std::span<std::byte>> TorchTrainer::writable_state() {
  std::vector<std::span<std::byte>> result;
  for (auto& tensor : host_) result.emplace_back(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  return result;
}

void TorchTrainer::loaded() {
  computed_ = false;
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < live_.size(); ++i) {
    if (!live_[i].tensor.is_cpu()) live_[i].tensor.copy_(host_[i]);
  }
}

Result<void> TorchTrainer::load(const TensorFile& model, const TensorFile& optimiser) {
  if (const auto alike = check_alike(model, "model", model_state()); !alike) return alike;
  if (const auto alike = check_alike(optimiser, "optimiser", optimiser_state()); !alike) return alike;
  const auto targets = writable_state();
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const bool of_model = i < model_.size();
    const auto source = found_alike(of_model ? model : optimiser, "", view_of({live_[i].name, host_[i]}));
    std::copy((*source)->bytes.begin(), (*source)->bytes.end(), targets[i].begin());
  }
  loaded();
  return {};
}

void TorchTrainer::reset() {
  computed_ = false;
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < model_.size(); ++i) model_[i].tensor.copy_(first_[i]);
  optimiser_->reset();
}

Result<void> TorchTrainer::try_out(const Dataset& data) {
  if (trained_.empty()) return fail("model {}: nothing in it can be trained", spec_.model.name);
  if (spec_.model.name == "count") return {};
  torch::NoGradGuard no_grad;
  network_->set_training(false);
  const auto scores = network_->forward(read(data, std::vector<std::int64_t>{0}).inputs);
  network_->set_training(true);
  if (scores.dim() >= 2 && scores.size(-1) == data.classes() && scores.numel() == data.labels() * data.classes())
    return {};
  return fail("model {}: answers one sample with [{}], want {} scores for each of {} labels", spec_.model.name,
              fmt::join(scores.sizes(), ", "), data.classes(), data.labels());
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::make(const TrainSpec& spec, const Dataset& data,
                                               const std::filesystem::path& folder) {
  try {
    if (spec.device == "cuda" && !torch::cuda::is_available())
      return fail("device cuda: LibTorch finds no GPU here, want device cpu");
    torch::manual_seed(spec.seed);
    auto network = make_network(spec.model, data, folder);
    if (!network) return unexpected(network.error());
    if (const auto fits = check_types((*network)->parameters(), false); !fits) return unexpected(fits.error());
    if (const auto fits = check_types((*network)->buffers(), true); !fits) return unexpected(fits.error());
    auto trainer = std::make_unique<TorchTrainer>(spec, std::move(*network), torch::Device(spec.device));
    if (const auto fits = trainer->try_out(data); !fits) return unexpected(fits.error());
    return trainer;
  } catch (const c10::Error& error) {
    return fail("model {}: {}", spec.model.name, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return fail("model {}: {}", spec.model.name, error.what());
  }
}

void use_threads(int threads) { torch::set_num_threads(threads); }

}  // namespace mayfly
