#include <ATen/core/ivalue.h>  // first: nn/network.h
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/script.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>

#include "base/file.h"
#include "nn/trainer.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

struct Learnt {
  double first_loss = 0;
  Evaluation after{};
  double accuracy() const { return after.correct / after.labels; }
  double loss() const { return after.loss_sum / after.labels; }
};

/// `steps` steps over the first samples, then an evaluation of 1000 of `validation`.
Learnt learnt(const TrainSpec& spec, const DataSpec& validation, std::int64_t steps, const fs::path& folder = ".") {
  Learnt result;
  const auto data = open_dataset(spec.data, spec.model, folder);
  const auto unseen = open_dataset(validation, spec.model, folder);
  EXPECT_TRUE(data && unseen);
  if (!data || !unseen) return result;
  const auto trainer = Trainer::make(spec, **data, folder);
  EXPECT_TRUE(trainer.has_value()) << trainer.error().message;
  if (!trainer) return result;
  std::vector<std::int64_t> samples(static_cast<std::size_t>(spec.batch));
  for (std::int64_t step = 0; step < steps; ++step) {
    std::iota(samples.begin(), samples.end(), step * spec.batch % ((*data)->size() - spec.batch));
    const double loss = (*trainer)->compute(*read_batch(**data, samples), 1, step * spec.batch);
    if (step == 0) result.first_loss = loss;
    (*trainer)->apply(step, 1);
  }
  samples.resize(1000);
  std::iota(samples.begin(), samples.end(), 0);
  result.after = *(*trainer)->evaluate(**unseen, samples);
  return result;
}

TEST(Digits, AreLearntButNotAtOnce) {
  TrainSpec spec;
  spec.model = {.name = "cnn", .width = 8};
  spec.data = {.name = "digits", .samples = 20000};
  spec.optimiser = {.rate = .05, .momentum = .9};
  const DataSpec unseen{.name = "digits", .samples = 1000, .seed = 2};
  const auto early = learnt(spec, unseen, 20);
  EXPECT_NEAR(early.first_loss, 2.303, .1);  // ln 10
  EXPECT_LT(early.accuracy(), .75);
  const auto late = learnt(spec, unseen, 300);
  EXPECT_GT(late.accuracy(), .85);
}

/// A small network on real pictures: ten classes, so a tenth would be right by chance.
void expect_learnt(const fs::path& folder, const std::string& suffix, double least_accuracy) {
  const auto files = [&](const std::string& part) {
    return std::vector<std::string>{part + "-images-idx3-ubyte" + suffix, part + "-labels-idx1-ubyte" + suffix};
  };
  TrainSpec spec;
  spec.model = {.name = "mlp", .hidden = {64}};
  spec.data = {.name = "idx", .files = files("train")};
  // Pictures from -1 to 1 have a norm near 28: a rate of 0.05 overshoots.
  spec.optimiser = {.rate = .01, .momentum = .9};
  const auto result = learnt(spec, {.name = "idx", .files = files("t10k")}, 300, folder);
  EXPECT_NEAR(result.first_loss, 2.303, .25);
  EXPECT_GT(result.accuracy(), least_accuracy) << "loss " << result.loss();
}

TEST(FashionMnist, IsLearntIn300Steps) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder << " (Debian package dataset-fashion-mnist)";
  expect_learnt(folder, ".gz", .76);
}

TEST(Mnist, IsLearntIn300Steps) {
  const char* folder = std::getenv("MAYFLY_MNIST");
  if (folder == nullptr) GTEST_SKIP() << "MAYFLY_MNIST names no folder with MNIST's four files";
  expect_learnt(folder, fs::exists(fs::path(folder) / "train-images-idx3-ubyte") ? "" : ".gz", .85);
}

class Scripts : public ::testing::Test {
 protected:
  Scripts() : folder_(fs::path(testing::TempDir()) / ("scripts_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    spec_.model = {.name = "torchscript", .file = "net.pt"};
    spec_.data = {.name = "synthetic", .samples = 2000, .shape = {20}, .classes = 3};
    spec_.optimiser = {.rate = .5};
  }
  ~Scripts() override { fs::remove_all(folder_); }
  void save(int classes, torch::Dtype type = torch::kFloat) {
    torch::jit::Module net("net");
    net.register_parameter("w", torch::zeros({classes, 20}, torch::dtype(type).requires_grad(true)), false);
    net.register_parameter("b", torch::zeros({classes}, torch::dtype(type).requires_grad(true)), false);
    net.define("def forward(self, x):\n  return torch.linear(x, self.w, self.b)\n");
    net.save((folder_ / "net.pt").string());
  }
  std::string error() {
    const auto data = open_dataset(spec_.data, spec_.model, folder_);
    const auto trainer = Trainer::make(spec_, **data, folder_);
    return trainer ? "no error" : trainer.error().message;
  }
  fs::path folder_;
  TrainSpec spec_;
};

// A linear rule is all there is to learn; a third would be right by chance.
TEST_F(Scripts, AreTrainedFurther) {
  save(3);
  const auto result =
      learnt(spec_, {.name = "synthetic", .samples = 1000, .shape = {20}, .classes = 3, .seed = 2}, 200, folder_);
  EXPECT_NEAR(result.first_loss, 1.0986, 1e-3);  // ln 3
  EXPECT_GT(result.accuracy(), .93);
}

// Weights of 0 answer all classes alike: ln 3. With a bias of 1000 for the first, a sample of another costs 1000.
TEST_F(Scripts, SeeWhatIsWrittenIntoTheirWeights) {
  save(3);
  const auto data = open_dataset(spec_.data, spec_.model, folder_);
  const auto trainer = Trainer::make(spec_, **data, folder_);
  ASSERT_TRUE(data && trainer);
  std::vector<std::int64_t> samples(30);
  std::iota(samples.begin(), samples.end(), 0);
  for (int again = 0; again < 3; ++again)
    EXPECT_NEAR((*trainer)->compute(*read_batch(**data, samples), 1, 0), 1.0986, 1e-3) << "before anything is written";
  const auto weights = (*trainer)->weights();
  ASSERT_EQ(weights.size(), 63u);
  weights[60] = 1000;
  (*trainer)->weights_written();
  EXPECT_GT((*trainer)->compute(*read_batch(**data, samples), 1, 0), 100);
  (*trainer)->reset();
  EXPECT_EQ((*trainer)->weights()[60], 0);
  EXPECT_NEAR((*trainer)->compute(*read_batch(**data, samples), 1, 0), 1.0986, 1e-3);
}

TEST_F(Scripts, OfOthersAreLoadedOnlyOnAWord) {
  save(3);
  const auto path = (folder_ / "net.pt").string();
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(error(), path + ": a program that anybody may change; if you trust it: mayfly run --trust");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(error(), "no error");
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(error(), path + ": a program that belongs to user 12345, not 0; if you trust it: mayfly run --trust");
  spec_.model.trusted = true;
  EXPECT_EQ(error(), "no error");
}

TEST_F(Scripts, SayWhatIsWrong) {
  const auto path = (folder_ / "net.pt").string();
  EXPECT_EQ(error(), path + ": no such file");
  ASSERT_TRUE(save_text(path, "not a network"));
  EXPECT_TRUE(error().starts_with(path + ": not a TorchScript file: ")) << error();
  save(4);
  EXPECT_EQ(error(), "model torchscript: answers one sample with [1, 4], want 3 scores for each of 1 labels");
  save(3, torch::kDouble);
  EXPECT_EQ(error(), "model: w holds Double, want Float");
}

TEST(Devices, WithoutAGpuCudaIsRefused) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "there is a GPU";
  TrainSpec spec;
  spec.model = {.name = "mlp"};
  spec.data = {.name = "digits", .samples = 10};
  spec.device = "cuda";
  const auto data = open_dataset(spec.data, spec.model, ".");
  EXPECT_EQ(Trainer::make(spec, **data, ".").error().message,
            "device cuda: LibTorch finds no GPU here, want device cpu");
}

TEST(Pictures, TooSmallForTheNetworkAreRefused) {
  TrainSpec spec;
  spec.model = {.name = "cnn"};
  spec.data = {.name = "synthetic", .samples = 10, .shape = {1, 3, 8}};
  const auto data = open_dataset(spec.data, spec.model, ".");
  EXPECT_EQ(Trainer::make(spec, **data, ".").error().message,
            "model cnn: samples have shape [1, 3, 8], want channels and a picture of at least 4 x 4");
}

}  // namespace
}  // namespace mayfly
