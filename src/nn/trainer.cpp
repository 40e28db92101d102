#include "nn/trainer.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "nn/flat_tensors.h"
#include "nn/gradient_watch.h"
#include "nn/layer_watch.h"
#include "nn/optimiser.h"

namespace mayfly {
namespace {

using torch::Tensor;

/// A batch on its device.
struct Samples {
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
  TorchTrainer(const TrainSpec& spec, std::unique_ptr<Network> network, const Dataset& data);

  double compute(const Batch& batch, double share, std::int64_t place, const Ready& ready) override;
  std::span<float> exchange() override { return flat_->exchange(); }
  void apply(std::int64_t step, int workers) override;
  ExchangeLayout layout() const override { return flat_->layout(); }
  std::span<float> weights() override { return flat_->weights(); }
  void weights_written() override;
  void finish_push(double share) override;
  FlatMoments moments() override;
  void set_moments(const FlatMoments& moments) override;
  using Trainer::evaluate;
  Evaluation evaluate(const Batch& batch) override;
  std::vector<TensorView> model_state() override { return views(0, model_.size()); }
  std::vector<TensorView> optimiser_state() override { return views(model_.size(), live_.size()); }
  std::vector<std::span<std::byte>> writable_state() override;
  void loaded() override;
  Result<void> load(const TensorFile& model, const TensorFile& optimiser) override;
  void reset() override;
  std::int64_t parameters() const override { return static_cast<std::int64_t>(layout().parameters); }
  int tensors() const override { return static_cast<int>(trained_.size()); }
  std::vector<LayerCost> layers(const std::function<void()>& pass) override { return LayerWatch(trained_).watch(pass); }

  /// One sample through the network, to see that the two fit.
  Result<void> try_out(const Dataset& data);

 private:
  Samples on_device(const Batch& batch) const;
  double pass(const Batch& batch, double share, std::int64_t place);
  void watch(const Ready& ready);
  void clip(double norm);
  std::vector<TensorView> views(std::size_t first, std::size_t last);

  TrainSpec spec_;
  std::unique_ptr<Network> network_;
  std::vector<int> shape_;  ///< of one sample
  int labels_;              ///< of one sample
  torch::Device device_;
  std::vector<NamedTensor> trained_;
  std::vector<NamedTensor> model_;  ///< parameters, then buffers
  std::unique_ptr<Optimiser> optimiser_;
  std::unique_ptr<FlatTensors> flat_;     ///< holds trained_ and buffers
  std::unique_ptr<GradientWatch> watch_;  ///< made when first needed
  bool computed_ = false;
  bool moved_statistics_ = false;  ///< by the last computation

  std::vector<NamedTensor> live_;  ///< model_, then the optimiser's
  std::vector<Tensor> host_;       ///< live_ where others can read and write: the same tensors on a CPU
  std::vector<Tensor> first_;      ///< model_ at the start
};

TorchTrainer::TorchTrainer(const TrainSpec& spec, std::unique_ptr<Network> network, const Dataset& data)
    : spec_(spec), network_(std::move(network)), shape_(data.shape()), labels_(data.labels()), device_(spec.device) {
  network_->move_to(device_);
  network_->set_training(true);
  model_ = network_->parameters();
  for (auto& parameter : model_) {
    if (!parameter.tensor.is_contiguous()) parameter.tensor.set_data(parameter.tensor.contiguous());
    if (parameter.tensor.requires_grad()) trained_.push_back(parameter);
  }
  auto buffers = network_->buffers();
  for (auto& buffer : buffers) {
    if (!buffer.tensor.is_contiguous()) buffer.tensor.set_data(buffer.tensor.contiguous());
    model_.push_back(buffer);
  }
  flat_ = std::make_unique<FlatTensors>(trained_, buffers, device_);
  optimiser_ = std::make_unique<Optimiser>(spec_.optimiser, trained_);
  live_ = model_;
  live_.insert(live_.end(), optimiser_->state().begin(), optimiser_->state().end());
  for (const auto& [name, tensor] : live_) host_.push_back(tensor.detach().to(torch::kCPU));
  for (const auto& [name, tensor] : model_) first_.push_back(tensor.detach().clone());
}

Samples TorchTrainer::on_device(const Batch& batch) const {
  std::vector<std::int64_t> shape{batch.size()};
  for (const int side : shape_) shape.push_back(side);
  // On a CPU these are views: the batch outlives the computation.
  auto inputs = torch::from_blob(batch.inputs.data(), shape);
  const auto labels = torch::from_blob(batch.labels.data(), {batch.size(), labels_}, torch::kInt64);
  if (spec_.data.name == "text") inputs = inputs.to(torch::kInt64);
  return {.inputs = inputs.to(device_), .labels = labels.to(device_)};
}

double TorchTrainer::compute(const Batch& batch, double share, std::int64_t place, const Ready& ready) {
  flat_->clear();
  computed_ = true;
  moved_statistics_ = batch.size() > 0;
  // What is held to a norm is not final before all of it is known.
  watch(spec_.clip ? Ready{} : ready);
  const double loss = batch.size() > 0 ? pass(batch, share, place) : 0;
  flat_->exchange_to_host();
  if (watch_) watch_->finish();
  if (!watch_ && ready && !spec_.clip) ready(0, layout().parameters);
  return loss;
}

void TorchTrainer::watch(const Ready& ready) {
  if (!watch_ && ready && device_.is_cpu()) watch_ = std::make_unique<GradientWatch>(trained_);
  if (watch_) watch_->begin(ready);
}

double TorchTrainer::pass(const Batch& batch, double share, std::int64_t place) {
  torch::manual_seed(Rng(Rng(spec_.seed).bits() ^ static_cast<std::uint64_t>(place)).bits());
  flat_->remember_statistics();
  const auto samples = on_device(batch);
  const auto loss = network_->loss(network_->forward(samples.inputs), samples.labels, spec_.sum);
  // What is added up needs no weights; scaling the start of the backward pass scales every gradient.
  if (spec_.sum || share == 1) {
    loss.backward();
  } else {
    loss.backward(torch::full_like(loss, share));
  }
  flat_->put_statistics_aside(share);
  return loss.item<double>();
}

void TorchTrainer::clip(double norm) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : trained_) tensors.push_back(tensor);
  torch::nn::utils::clip_grad_norm_(tensors, norm);
}

void TorchTrainer::apply(std::int64_t step, int workers) {
  MAYFLY_CHECK(computed_, "apply() follows a compute()");
  computed_ = false;
  torch::NoGradGuard no_grad;
  flat_->exchange_from_host();
  if (spec_.clip) clip(*spec_.clip);
  optimiser_->step(rate_at(spec_, step, workers));
  flat_->take_statistics();
}

void TorchTrainer::weights_written() {
  computed_ = false;
  flat_->weights_written();
}

void TorchTrainer::finish_push(double share) {
  MAYFLY_CHECK(computed_, "finish_push() follows a compute()");
  computed_ = false;
  torch::NoGradGuard no_grad;
  if (spec_.clip) clip(share * *spec_.clip);
  if (moved_statistics_) flat_->turn_statistics_into_changes(share);
  flat_->exchange_to_host();
}

FlatMoments TorchTrainer::moments() {
  FlatMoments result{.values = std::vector<std::vector<float>>(optimiser_->moments()), .steps = optimiser_->steps()};
  for (std::size_t i = 0; i < optimiser_->moments() * trained_.size(); ++i) {
    const auto tensor = optimiser_->state()[i].tensor.to(torch::kCPU);
    auto& values = result.values[i % result.values.size()];
    values.insert(values.end(), tensor.data_ptr<float>(), tensor.data_ptr<float>() + tensor.numel());
  }
  return result;
}

void TorchTrainer::set_moments(const FlatMoments& moments) {
  MAYFLY_CHECK(moments.values.size() == optimiser_->moments(), "moments are those of the job's optimiser");
  torch::NoGradGuard no_grad;
  std::size_t at = 0;
  for (std::size_t p = 0; p < trained_.size(); ++p) {
    const auto count = static_cast<std::size_t>(trained_[p].tensor.numel());
    for (std::size_t kind = 0; kind < moments.values.size(); ++kind) {
      const auto& values = moments.values[kind];
      MAYFLY_CHECK(at + count <= values.size(), "a moment is as long as the parameters");
      auto& tensor = optimiser_->state()[p * moments.values.size() + kind].tensor;
      // LibTorch has no tensors of constants; this one is only read.
      tensor.copy_(torch::from_blob(const_cast<float*>(values.data() + at), tensor.sizes()));
    }
    at += count;
  }
  optimiser_->set_steps(moments.steps);
}

Evaluation TorchTrainer::evaluate(const Batch& batch) {
  torch::NoGradGuard no_grad;
  network_->set_training(false);
  const auto samples = on_device(batch);
  const auto scores = network_->forward(samples.inputs);
  const Evaluation result{.loss_sum = network_->loss(scores, samples.labels, true).item<double>(),
                          .correct = network_->correct(scores, samples.labels).item<double>(),
                          .labels = static_cast<double>(samples.labels.numel())};
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
  if (spec_.model.name == "count" || spec_.model.is_script()) return {};
  const auto first = read_batch(data, std::vector<std::int64_t>{0});
  if (!first) return unexpected(first.error());
  torch::NoGradGuard no_grad;
  network_->set_training(false);
  const auto scores = network_->forward(on_device(*first).inputs);
  network_->set_training(true);
  if (scores.dim() >= 2 && scores.size(-1) == data.classes() && scores.numel() == data.labels() * data.classes())
    return {};
  return fail("model {}: answers one sample with [{}], want {} scores for each of {} labels", spec_.model.name,
              fmt::join(scores.sizes(), ", "), data.classes(), data.labels());
}

}  // namespace

Result<Evaluation> Trainer::evaluate(const Dataset& data, std::span<const std::int64_t> samples) {
  constexpr std::size_t kAtOnce = 250;
  Evaluation result;
  for (std::size_t at = 0; at < samples.size(); at += kAtOnce) {
    const auto batch = read_batch(data, samples.subspan(at, std::min(kAtOnce, samples.size() - at)));
    if (!batch) return unexpected(batch.error());
    const auto part = evaluate(*batch);
    result.loss_sum += part.loss_sum;
    result.correct += part.correct;
    result.labels += part.labels;
  }
  return result;
}

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
    auto trainer = std::make_unique<TorchTrainer>(spec, std::move(*network), data);
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
