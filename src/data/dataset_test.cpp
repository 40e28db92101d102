#include "data/dataset.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/file.h"
#include "data/gzip.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

struct Samples {
  std::vector<float> inputs{};
  std::vector<std::int64_t> labels{};
};

Samples read(const Dataset& data, const std::vector<std::int64_t>& samples) {
  const auto shape = data.shape();
  const auto length = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  Samples batch{.inputs = std::vector<float>(samples.size() * length),
                .labels = std::vector<std::int64_t>(samples.size() * static_cast<std::size_t>(data.labels()))};
  EXPECT_TRUE(data.read(samples, batch.inputs, batch.labels));
  return batch;
}

std::unique_ptr<Dataset> open(const DataSpec& spec, const ModelSpec& model = {}, const fs::path& folder = ".") {
  auto data = open_dataset(spec, model, folder);
  EXPECT_TRUE(data.has_value()) << data.error().message;
  return std::move(*data);
}

class Files : public ::testing::Test {
 protected:
  Files() : folder_(fs::path(testing::TempDir()) / ("dataset_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& bytes) { ASSERT_TRUE(save_text(folder_ / name, bytes)); }
  std::string error(const DataSpec& spec, const ModelSpec& model = {}) {
    const auto data = open_dataset(spec, model, folder_);
    if (data) return "no error";
    const auto& message = data.error().message;
    const auto prefix = folder_.string() + "/";
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(prefix.size());
  }
  fs::path folder_;
};

TEST(Digits, AreMadeFromSeedAndNumberAlone) {
  const auto data = open({.name = "digits", .samples = 1000, .seed = 3});
  const auto together = read(*data, {4, 5, 999});
  const auto alone = read(*open({.name = "digits", .samples = 2000, .seed = 3}), {5});
  EXPECT_EQ(alone.labels[0], together.labels[1]);
  EXPECT_TRUE(std::equal(alone.inputs.begin(), alone.inputs.end(), together.inputs.begin() + 784));
  const auto other = read(*open({.name = "digits", .samples = 1000, .seed = 4}), {5});
  EXPECT_NE(alone.inputs, other.inputs);
  EXPECT_EQ(data->shape(), (std::vector<int>{1, 28, 28}));
}

// 10 classes of 5000 samples: 500 each, deviation sqrt(5000 * .1 * .9) = 21; five deviations are 106.
TEST(Digits, ComeEquallyOften) {
  const auto data = open({.name = "digits", .samples = 5000});
  std::vector<std::int64_t> all(5000);
  std::iota(all.begin(), all.end(), 0);
  const auto batch = read(*data, all);
  std::array<int, 10> counts{};
  for (const auto label : batch.labels) ++counts.at(static_cast<std::size_t>(label));
  for (const int count : counts) EXPECT_NEAR(count, 500, 106);
  // Strokes are light on dark: the mean lies well below the middle, and every picture has light in it.
  const double mean = std::accumulate(batch.inputs.begin(), batch.inputs.end(), 0.0) / (5000 * 784);
  EXPECT_GT(mean, -.95);
  EXPECT_LT(mean, -.6);
}

TEST(Synthetic, LabelsFollowOneRuleForEverySeed) {
  // With 2 classes the rule is a direction d: the label is 1 where d * x > 0. The mean of x over label 1 points along d
  // and must do so in both sets.
  const auto mean_of_ones = [](std::uint64_t seed) {
    const auto data = open({.name = "synthetic", .samples = 2000, .shape = {8}, .classes = 2, .seed = seed});
    std::vector<std::int64_t> all(2000);
    std::iota(all.begin(), all.end(), 0);
    const auto batch = read(*data, all);
    std::vector<double> mean(8);
    for (std::size_t i = 0; i < 2000; ++i)
      for (std::size_t k = 0; k < 8; ++k) mean[k] += batch.labels[i] == 1 ? double(batch.inputs[i * 8 + k]) : 0;
    return mean;
  };
  const auto a = mean_of_ones(1);
  const auto b = mean_of_ones(2);
  const double product = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  EXPECT_GT(product / std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                                std::inner_product(b.begin(), b.end(), b.begin(), 0.0)),
            .95);
  EXPECT_NE(a, b);
}

TEST(Synthetic, RefusesSizesNoMachineHolds) {
  const auto data = open_dataset({.name = "synthetic", .samples = 1, .shape = {100000, 100000}}, {}, ".");
  ASSERT_FALSE(data.has_value());
  EXPECT_EQ(data.error().message, "synthetic data: 1e+10 numbers a sample and 10 classes, want a product up to 1e+08");
}

TEST(Count, LabelsAreTheNumbers) {
  const auto data = open({.name = "count", .samples = 50});
  EXPECT_EQ(read(*data, {7, 49}).labels, (std::vector<std::int64_t>{7, 49}));
  EXPECT_TRUE(data->shape().empty());
}

TEST(Validation, MustLookLikeTheTrainingData) {
  const auto digits = open({.name = "digits", .samples = 10});
  const auto few = open({.name = "synthetic", .samples = 10, .shape = {1, 28, 28}, .classes = 5});
  EXPECT_TRUE(check_alike(*digits, *few).has_value());
  const auto alike = check_alike(*few, *digits);
  ASSERT_FALSE(alike.has_value());
  EXPECT_EQ(alike.error().message,
            "validation samples have shape [1, 28, 28] and 10 classes, want [1, 28, 28] and 5 classes as the training "
            "samples");
}

// "abcdefg" in windows of 3: abc -> bcd, def -> efg; no third, as it would lack labels.
TEST_F(Files, TextIsReadInWindowsThatDoNotOverlap) {
  write("t.txt", "abcdefg");
  const ModelSpec model{.name = "gpt", .context = 3};
  const auto data = open({.name = "text", .files = {"t.txt"}}, model, folder_);
  EXPECT_EQ(data->size(), 2);
  const auto batch = read(*data, {1});
  EXPECT_EQ(batch.inputs, (std::vector<float>{'d', 'e', 'f'}));
  EXPECT_EQ(batch.labels, (std::vector<std::int64_t>{'e', 'f', 'g'}));
  write("short.txt", "abc");
  EXPECT_EQ(error({.name = "text", .files = {"short.txt"}}, model),
            "short.txt: 3 bytes, want more than the context of 3");
}

std::string idx(const std::vector<std::uint8_t>& dimensions, const std::string& body) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  for (const auto dimension : dimensions) bytes += std::string(3, '\0') + static_cast<char>(dimension);
  return bytes + body;
}

TEST_F(Files, IdxHoldsImagesAndLabels) {
  const std::string pixels{'\0', '\xff', '\x33', '\0', '\0', '\0', '\0', '\0', '\0', '\0', '\0', '\xff'};
  write("i", idx({2, 2, 3}, pixels));
  write("l", idx({2}, "\x07\x03"));
  const auto data = open({.name = "idx", .files = {"i", "l"}}, {}, folder_);
  EXPECT_EQ(data->size(), 2);
  EXPECT_EQ(data->shape(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(data->classes(), 10);
  const auto batch = read(*data, {1, 0});
  EXPECT_EQ(batch.labels, (std::vector<std::int64_t>{3, 7}));
  EXPECT_FLOAT_EQ(batch.inputs[5], 1);
  EXPECT_FLOAT_EQ(batch.inputs[6], -1);
  EXPECT_FLOAT_EQ(batch.inputs[8], -.6f);  // 0x33 / 127.5 - 1
}

TEST_F(Files, IdxSaysWhatIsWrong) {
  write("i", idx({2, 2, 3}, std::string(12, 'x')));
  write("l", idx({2}, "\x07\x03"));
  write("short", idx({2, 2, 3}, std::string(11, 'x')));
  write("long", idx({2, 2, 3}, std::string(13, 'x')));
  write("three", idx({3}, "abc"));
  write("none", idx({0}, ""));
  write("huge", std::string("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16));
  write("stub", "ab");
  const std::vector<std::array<std::string, 3>> wrong{
      {"absent", "l", "absent: no such file"},
      {"short", "l", "short: 27 bytes, want 28 as its header says"},
      {"long", "l", "long: 29 bytes, want 28 as its header says"},
      {"huge", "l", "huge: header says more than 1099511627776 bytes follow"},
      {"l", "l", "l: 10 bytes, want a header of 16"},
      {"i", "i", "i: begins with 00000803, want 00000801 (hexadecimal; idx, bytes, 1 dimension)"},
      {"i", "none", "none: header says nothing is in it, want at least one sample"},
      {"i", "stub", "stub: 2 bytes, want a header of 8"},
  };
  for (const auto& [images, labels, message] : wrong)
    EXPECT_EQ(error({.name = "idx", .files = {images, labels}}), message);
  EXPECT_EQ(error({.name = "idx", .files = {"i", "three"}}),
            "three: 3 labels, want 2 for the images of " + (folder_ / "i").string());
}

TEST_F(Files, CifarJoinsItsBatches) {
  const std::string first = "\x02" + std::string(3072, 'a');
  const std::string second = "\x05" + std::string(3071, 'b') + "\xff";
  write("1.bin", first + second);
  write("2.bin", second);
  const auto data = open({.name = "cifar", .files = {"1.bin", "2.bin"}}, {}, folder_);
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->shape(), (std::vector<int>{3, 32, 32}));
  const auto batch = read(*data, {0, 2});
  EXPECT_EQ(batch.labels, (std::vector<std::int64_t>{2, 5}));
  EXPECT_FLOAT_EQ(batch.inputs.back(), 1);
  write("cut.bin", first.substr(1));
  EXPECT_EQ(error({.name = "cifar", .files = {"1.bin", "cut.bin"}}),
            "cut.bin: 3072 bytes, want a multiple of 3073 (a label and 3072 pixels)");
  write("label.bin", first + "\x0a" + std::string(3072, 'b'));
  EXPECT_EQ(error({.name = "cifar", .files = {"label.bin"}}), "label.bin: record 2 has label 10, want 0 to 9");
}

// printf hello | gzip -n
const std::string kHello("\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0", 25);

TEST(Gzip, UnpacksAllPartsAndLeavesOtherFilesAlone) {
  EXPECT_EQ(unpacked(kHello, "f"), "hello");
  EXPECT_EQ(unpacked(kHello + kHello, "f"), "hellohello");
  EXPECT_EQ(unpacked("plain", "f"), "plain");
}

TEST(Gzip, SaysWhatIsWrong) {
  const auto message = [](const std::string& bytes) { return unpacked(bytes, "f.gz", 7).error().message; };
  EXPECT_EQ(message(kHello.substr(0, 20)), "f.gz: gzip file ends early, after 5 bytes unpacked");
  auto damaged = kHello;
  damaged[18] ^= 1;
  EXPECT_EQ(message(damaged), "f.gz: damaged gzip file (incorrect data check), after 5 bytes unpacked");
  EXPECT_EQ(message(kHello + "rubbish"), "f.gz: damaged gzip file (incorrect header check), after 5 bytes unpacked");
  EXPECT_EQ(message(kHello + kHello), "f.gz: unpacks into more than 7 bytes");
}

TEST(FashionMnist, IsReadAsItIs) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder << " (Debian package dataset-fashion-mnist)";
  const auto data =
      open({.name = "idx", .files = {folder + "t10k-images-idx3-ubyte.gz", folder + "t10k-labels-idx1-ubyte.gz"}});
  EXPECT_EQ(data->size(), 10000);
  EXPECT_EQ(data->shape(), (std::vector<int>{1, 28, 28}));
  // The first is an ankle boot.
  EXPECT_EQ(read(*data, {0}).labels[0], 9);
}

}  // namespace
}  // namespace mayfly
