#include <gtest/gtest.h>

#include <array>
#include <map>

#include "data/safetensors.h"
#include "support/temp_folder.h"
#include "support/trainers.h"

namespace mayfly {
namespace {

using Notes = std::map<std::string, std::string>;

const std::array<float, 4> kWeight{1, 2, 3, 4};
const std::array<float, 2> kMean{5, 6};
const std::array<std::int64_t, 1> kCount{7};

/// What a Python worker writes: a weight, a frozen one, a running mean and a counter.
std::vector<TensorView> described() {
  return {{.name = "weight", .shape = {2, 2}, .bytes = std::as_bytes(std::span(kWeight))},
          {.name = "frozen", .shape = {2}, .bytes = std::as_bytes(std::span(kMean))},
          {.name = "mean", .shape = {2}, .bytes = std::as_bytes(std::span(kMean))},
          {.name = "seen", .dtype = "I64", .shape = {}, .bytes = std::as_bytes(std::span(kCount))}};
}

Result<std::unique_ptr<Trainer>> trainer_of(const std::vector<TensorView>& tensors, const Notes& notes) {
  const support::TempFolder folder;
  const auto file = folder.path() / "network.safetensors";
  EXPECT_TRUE(write_safetensors(file, tensors, notes).has_value());
  TrainSpec spec;
  spec.model = {.name = "script", .file = file.string()};
  spec.data = {.name = "count", .samples = 1};
  return Trainer::make(spec, *support::open(spec), ".");
}

TEST(DescribedNetworks, LieInTheOrderOfTheirNames) {
  const auto trainer = trainer_of(described(), {{"trained", R"(["weight"])"}, {"buffers", R"(["mean", "seen"])"}});
  ASSERT_TRUE(trainer.has_value()) << trainer.error().message;
  EXPECT_EQ((*trainer)->layout(), (ExchangeLayout{.parameters = 4, .statistics = 2, .counters = 1}));
  const auto weights = (*trainer)->weights();
  EXPECT_EQ(std::vector<float>(weights.begin(), weights.end()), (std::vector<float>{1, 2, 3, 4, 5, 6, 7}));
  // What is not trained is in checkpoints all the same.
  EXPECT_EQ((*trainer)->model_state().size(), 4U);
}

TEST(DescribedNetworks, ThatNameWhatIsNotThereAreRefused) {
  for (const Notes& notes :
       {Notes{}, Notes{{"trained", R"(["weight"])"}}, Notes{{"trained", "7"}, {"buffers", "[]"}},
        Notes{{"trained", R"(["other"])"}, {"buffers", "[]"}}, Notes{{"trained", R"([1])"}, {"buffers", "[]"}}})
    EXPECT_FALSE(trainer_of(described(), notes).has_value());
}

TEST(DescribedNetworks, OfOtherTypesAreRefused) {
  const std::array<double, 1> wide{1};
  const auto trainer =
      trainer_of({{.name = "weight", .dtype = "F64", .shape = {1}, .bytes = std::as_bytes(std::span(wide))}},
                 {{"trained", R"(["weight"])"}, {"buffers", "[]"}});
  ASSERT_FALSE(trainer.has_value());
  EXPECT_NE(trainer.error().message.find("want F32 or I64"), std::string::npos);
}

}  // namespace
}  // namespace mayfly
