#include "nn/trainer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/file.h"
#include "nn/network.h"
#include "support/trainers.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;
using Samples = std::vector<std::int64_t>;

using support::batch_of;
using support::make;
using support::open;
using support::pictures;
using support::small_mlp;
using support::small_resnet;
using support::state_of;

void train(Trainer& trainer, const Dataset& data, std::int64_t first, std::int64_t last, std::int64_t size = 8) {
  for (auto step = first; step < last; ++step) {
    trainer.compute(*read_batch(data, batch_of(data, step, size)), 1, step * size);
    trainer.apply(step, 1);
  }
}

/// What a plain program would do with LibTorch, from the trainer's first weights.
class PlainLoop {
 public:
  PlainLoop(const TrainSpec& spec, const Dataset& data, Trainer& first) : spec_(spec) {
    network_ = std::move(*make_network(spec.model, data, "."));
    torch::NoGradGuard no_grad;
    const auto views = first.model_state();
    std::size_t i = 0;
    for (const auto& group : {network_->parameters(), network_->buffers()}) {
      for (const auto& [name, tensor] : group) {
        EXPECT_EQ(views[i].name, name);
        std::memcpy(tensor.data_ptr(), views[i].bytes.data(), views[i].bytes.size());
        tensors_.push_back(tensor);
        ++i;
      }
    }
    for (const auto& [name, tensor] : network_->parameters()) trained_.push_back(tensor);
  }

  void run(torch::optim::Optimizer& optimiser, const Dataset& data, std::int64_t steps, std::int64_t size) {
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto samples = batch_of(data, step, size);
      std::vector<std::int64_t> shape{size};
      for (const int side : data.shape()) shape.push_back(side);
      auto inputs = torch::empty(shape);
      auto labels = torch::empty({size, data.labels()}, torch::kInt64);
      EXPECT_TRUE(data.read(samples, {inputs.data_ptr<float>(), static_cast<std::size_t>(inputs.numel())},
                            {labels.data_ptr<std::int64_t>(), static_cast<std::size_t>(labels.numel())}));
      if (spec_.model.name == "gpt") inputs = inputs.to(torch::kInt64);
      const auto scores = network_->forward(inputs);
      const auto loss = torch::nn::functional::cross_entropy(scores.reshape({-1, data.classes()}), labels.flatten());
      optimiser.zero_grad();
      loss.backward();
      if (spec_.clip) torch::nn::utils::clip_grad_norm_(trained_, *spec_.clip);
      for (auto& group : optimiser.param_groups())
        group.options().set_lr(spec_.optimiser.rate * rate_factor(spec_.schedule, static_cast<double>(step)));
      optimiser.step();
    }
  }

  void expect_same(Trainer& trainer) const {
    const auto views = trainer.model_state();
    ASSERT_EQ(views.size(), tensors_.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
      ASSERT_EQ(views[i].bytes.size(), tensors_[i].nbytes());
      EXPECT_EQ(std::memcmp(views[i].bytes.data(), tensors_[i].data_ptr(), tensors_[i].nbytes()), 0) << views[i].name;
    }
  }
  std::vector<torch::Tensor>& trained() { return trained_; }

 private:
  TrainSpec spec_;
  std::unique_ptr<Network> network_;
  std::vector<torch::Tensor> tensors_;
  std::vector<torch::Tensor> trained_;
};

TEST(OneWorker, ResnetWithMomentumIsAPlainLoopToTheBit) {
  const auto spec = small_resnet();
  const auto data = open(spec);
  const auto trainer = make(spec, *data);
  PlainLoop plain(spec, *data, *trainer);
  torch::optim::SGD sgd(plain.trained(), torch::optim::SGDOptions(.05).momentum(.9).weight_decay(1e-3));
  plain.run(sgd, *data, 100, 8);
  train(*trainer, *data, 0, 100);
  plain.expect_same(*trainer);
  // The moments too, signs of zeros included.
  const auto moments = trainer->optimiser_state();
  ASSERT_EQ(moments.size(), plain.trained().size());
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const auto key = c10::guts::to_string(plain.trained()[i].unsafeGetTensorImpl());
    const auto momentum =
        static_cast<torch::optim::SGDParamState&>(*sgd.state().at(key)).momentum_buffer().contiguous();
    EXPECT_EQ(std::memcmp(moments[i].bytes.data(), momentum.data_ptr(), momentum.nbytes()), 0) << moments[i].name;
  }
}

TEST(OneWorker, MlpWithAdamClippingAndScheduleIsAPlainLoopToTheBit) {
  auto spec = small_mlp();
  spec.optimiser = {.kind = OptimiserSpec::Kind::adam, .rate = .002, .weight_decay = 1e-3};
  spec.clip = .5;
  spec.schedule = {.kind = ScheduleSpec::Kind::cosine, .warmup_steps = 10, .total_steps = 90, .floor = .1};
  const auto data = open(spec);
  const auto trainer = make(spec, *data);
  PlainLoop plain(spec, *data, *trainer);
  torch::optim::Adam adam(plain.trained(), torch::optim::AdamOptions(.002).weight_decay(1e-3));
  plain.run(adam, *data, 100, 8);
  train(*trainer, *data, 0, 100);
  plain.expect_same(*trainer);
}

class TextFile {
 public:
  TextFile() : path_((fs::path(testing::TempDir()) / ("trainer_" + std::to_string(::getpid()) + ".txt")).string()) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += fmt::format("{} times {} is {}. ", i % 7, i % 5, (i % 7) * (i % 5));
    EXPECT_TRUE(save_text(path_, text));
  }
  ~TextFile() { fs::remove(path_); }
  TrainSpec spec() const {
    TrainSpec spec;
    spec.model = {.name = "gpt", .layers = 2, .heads = 2, .embedding = 16, .context = 16};
    spec.data = {.name = "text", .files = {path_}};
    spec.optimiser = {.kind = OptimiserSpec::Kind::adamw, .rate = .01, .weight_decay = .1};
    return spec;
  }

 private:
  std::string path_;
};

TEST(OneWorker, GptWithAdamWIsAPlainLoopToTheBitAndLearns) {
  const TextFile file;
  const auto spec = file.spec();
  const auto data = open(spec);
  const auto trainer = make(spec, *data);
  PlainLoop plain(spec, *data, *trainer);
  torch::optim::AdamW adamw(plain.trained(), torch::optim::AdamWOptions(.01).weight_decay(.1));
  plain.run(adamw, *data, 60, 8);
  // 256 characters at random: ln 256 = 5.55.
  EXPECT_NEAR(trainer->compute(*read_batch(*data, batch_of(*data, 0, 8)), 1, 0), 5.55, .1);
  train(*trainer, *data, 0, 60);
  plain.expect_same(*trainer);
  EXPECT_LT(trainer->compute(*read_batch(*data, batch_of(*data, 0, 8)), 1, 0), 1.6);
}

/// 5 and 11 samples of each batch of 16 in two trainers, their pieces added by hand.
void expect_shares_follow_one(const TrainSpec& spec, std::int64_t steps, double tolerance) {
  const auto data = open(spec);
  const auto one = make(spec, *data);
  const auto few = make(spec, *data);
  const auto many = make(spec, *data);
  train(*one, *data, 0, steps, 16);
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto samples = batch_of(*data, step, 16);
    const auto all = std::span(samples);
    few->compute(*read_batch(*data, all.first(5)), 5. / 16, step * 16);
    many->compute(*read_batch(*data, all.subspan(5)), 11. / 16, step * 16 + 5);
    const auto a = few->exchange();
    const auto b = many->exchange();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] = a[i] + b[i];
    few->apply(step, 2);
    many->apply(step, 2);
  }
  EXPECT_EQ(state_of(*few), state_of(*many));
  const auto wanted = one->model_state();
  const auto seen = few->model_state();
  for (std::size_t t = 0; t < wanted.size(); ++t) {
    const auto* x = reinterpret_cast<const float*>(wanted[t].bytes.data());
    const auto* y = reinterpret_cast<const float*>(seen[t].bytes.data());
    for (std::size_t i = 0; i < wanted[t].bytes.size() / 4; ++i) ASSERT_NEAR(x[i], y[i], tolerance) << wanted[t].name;
  }
}

TEST(TwoWorkers, FollowTheTrajectoryOfOne) {
  auto mlp = small_mlp();
  mlp.clip = 1;
  expect_shares_follow_one(mlp, 30, 1e-5);
  mlp.sum = true;
  mlp.optimiser.rate = .003;
  expect_shares_follow_one(mlp, 30, 1e-5);
  expect_shares_follow_one(pictures({.name = "cnn", .width = 4}), 30, 1e-5);
}

// A worker without samples adds nothing; the other's statistics, share 1, are those of a worker alone.
TEST(TwoWorkers, OneMayHaveNoSamples) {
  const auto spec = small_resnet();
  const auto data = open(spec);
  const auto alone = make(spec, *data);
  const auto idle = make(spec, *data);
  const auto busy = make(spec, *data);
  train(*alone, *data, 0, 2);
  for (std::int64_t step = 0; step < 2; ++step) {
    EXPECT_EQ(idle->compute(Batch{}, 0, 0), 0);
    busy->compute(*read_batch(*data, batch_of(*data, step, 8)), 1, step * 8);
    const auto a = idle->exchange();
    const auto b = busy->exchange();
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] = a[i] + b[i];
    idle->apply(step, 2);
    busy->apply(step, 2);
  }
  EXPECT_EQ(state_of(*idle), state_of(*alone));
  EXPECT_EQ(state_of(*busy), state_of(*alone));
}

float value_of(Trainer& trainer, std::string_view name) {
  for (const auto& view : trainer.model_state()) {
    if (view.name == name) return *reinterpret_cast<const float*>(view.bytes.data());
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

// Running means begin at 0: after one step each worker's is 0.1 of its batch mean, and the sum weighs them by share.
TEST(TwoWorkers, WeighRunningStatisticsByShareAndCountBatchesOnce) {
  const auto spec = small_resnet();
  const auto data = open(spec);
  const auto mean_after = [&](std::span<const std::int64_t> samples) {
    const auto trainer = make(spec, *data);
    trainer->compute(*read_batch(*data, samples), 1, 0);
    trainer->apply(0, 1);
    return value_of(*trainer, "1.running_mean");
  };
  const auto samples = batch_of(*data, 0, 8);
  const auto all = std::span(samples);
  const auto few = make(spec, *data);
  const auto many = make(spec, *data);
  few->compute(*read_batch(*data, all.first(2)), .25, 0);
  many->compute(*read_batch(*data, all.subspan(2)), .75, 2);
  const auto sum = few->exchange();
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += many->exchange()[i];
  few->apply(0, 2);
  EXPECT_NEAR(value_of(*few, "1.running_mean"), .25 * mean_after(all.first(2)) + .75 * mean_after(all.subspan(2)),
              1e-6);
  for (const auto& view : few->model_state()) {
    if (view.name != "1.num_batches_tracked") continue;
    EXPECT_EQ(view.dtype, "I64");
    EXPECT_EQ(*reinterpret_cast<const std::int64_t*>(view.bytes.data()), 1);
  }
}

TEST(Trainers, LeaveNoTraceOfWhatIsNotApplied) {
  const auto spec = small_resnet();
  const auto data = open(spec);
  const auto trainer = make(spec, *data);
  train(*trainer, *data, 0, 2);
  const auto before = state_of(*trainer);
  trainer->compute(*read_batch(*data, batch_of(*data, 5, 8)), .5, 40);
  trainer->evaluate(*data, batch_of(*data, 3, 8));
  EXPECT_EQ(state_of(*trainer), before);
  train(*trainer, *data, 2, 4);
  const auto straight = make(spec, *data);
  train(*straight, *data, 0, 4);
  EXPECT_EQ(state_of(*trainer), state_of(*straight));
}

void expect_copies_go_on_alike(const TrainSpec& spec) {
  const auto data = open(spec);
  const auto first = make(spec, *data);
  train(*first, *data, 0, 5);
  auto other_seed = spec;
  other_seed.seed = 99;
  const auto second = make(other_seed, *data);
  EXPECT_NE(state_of(*second), state_of(*first));
  const auto source = state_of(*first);
  const auto target = second->writable_state();
  ASSERT_EQ(source.size(), target.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    ASSERT_EQ(source[i].size(), target[i].size());
    std::copy(source[i].begin(), source[i].end(), target[i].begin());
  }
  second->loaded();
  train(*first, *data, 5, 10);
  train(*second, *data, 5, 10);
  EXPECT_EQ(state_of(*second), state_of(*first));
}

TEST(Trainers, GoOnFromACopiedStateToTheBit) {
  expect_copies_go_on_alike(small_resnet());
  auto adam = small_mlp();
  adam.optimiser = {.kind = OptimiserSpec::Kind::adam, .rate = .01};
  expect_copies_go_on_alike(adam);
}

/// A checkpoint as it would be read back.
TensorFile file_of(const std::vector<TensorView>& views) {
  TensorFile file;
  for (const auto& view : views) file.bytes.insert(file.bytes.end(), view.bytes.begin(), view.bytes.end());
  std::size_t at = 0;
  for (auto view : views) {
    view.bytes = std::span<const std::byte>(file.bytes).subspan(at, view.bytes.size());
    at += view.bytes.size();
    file.tensors.push_back(view);
  }
  return file;
}

TEST(Trainers, LoadTheirOwnStateAndRefuseOthers) {
  auto spec = small_mlp();
  const auto data = open(spec);
  const auto trainer = make(spec, *data);
  const auto first = state_of(*trainer);
  train(*trainer, *data, 0, 3);
  const auto state = state_of(*trainer);
  auto model = file_of(trainer->model_state());
  const auto optimiser = file_of(trainer->optimiser_state());
  trainer->reset();
  EXPECT_EQ(state_of(*trainer), first);
  ASSERT_TRUE(trainer->load(model, optimiser).has_value());
  EXPECT_EQ(state_of(*trainer), state);

  spec.model.hidden = {33};
  const auto wider = make(spec, *data);
  EXPECT_EQ(wider->load(model, optimiser).error().message, "model: 1.weight is F32 [32, 288], want F32 [33, 288]");
  EXPECT_EQ(trainer->load(model, {}).error().message, "optimiser: no tensor momentum.1.weight");
  model.tensors.push_back({.name = "more"});
  EXPECT_EQ(trainer->load(model, optimiser).error().message, "model: 5 tensors, want 4");
  EXPECT_EQ(state_of(*trainer), state);
}

// 3 epochs of 100 samples in batches of 7, over two workers: each weight is 3, exactly.
TEST(Count, EveryWeightIsTheNumberOfEpochs) {
  TrainSpec spec;
  spec.model.name = spec.data.name = "count";
  spec.data.samples = 100;
  spec.optimiser.rate = 1;
  spec.sum = true;
  const auto data = open(spec);
  const auto a = make(spec, *data);
  const auto b = make(spec, *data);
  EXPECT_EQ(a->parameters(), 100);
  for (std::int64_t place = 0; place < 300;) {
    const auto size = std::min<std::int64_t>(7, 300 - place);
    Samples samples;
    for (auto i = place; i < place + size; ++i) samples.push_back(i * 37 % 100);
    a->compute(*read_batch(*data, std::span(samples).first(2)), 2. / static_cast<double>(size), place);
    b->compute(*read_batch(*data, std::span(samples).subspan(2)), 1 - 2. / static_cast<double>(size), place + 2);
    const auto sum = a->exchange();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = b->exchange()[i] += sum[i];
    a->apply(place / 7, 2);
    b->apply(place / 7, 2);
    place += size;
  }
  const auto bytes = a->model_state()[0].bytes;
  const auto* weights = reinterpret_cast<const float*>(bytes.data());
  ASSERT_EQ(bytes.size(), 400u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(weights[i], 3) << i;
  const Samples two{4, 9};
  EXPECT_EQ(b->evaluate(*data, two)->loss_sum, -6);
}

}  // namespace
}  // namespace mayfly
