#include "nn/layer_watch.h"

#include <gtest/gtest.h>

#include "support/trainers.h"

namespace mayfly {
namespace {

using support::batch_of;
using support::make;
using support::open;

std::vector<LayerCost> layers_of(const TrainSpec& spec, std::int64_t size) {
  const auto data = open(spec);
  const auto trainer = make(spec, *data);
  const auto batch = read_batch(*data, batch_of(*data, 0, size));
  EXPECT_TRUE(batch) << batch.error().message;
  return trainer->layers([&] { trainer->compute(*batch, 1, 0); });
}

// 2 x 12 x 12 = 288 numbers -> 32 -> 4: 288 * 32 + 32 and 32 * 4 + 4 parameters; outputs of 8 samples: 8 * 32 and 8 * 4
// floats.
TEST(LayerWatch, AnMlpHasItsLinearLayers) {
  const auto layers = layers_of(support::small_mlp(), 8);
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].name, "1");
  EXPECT_EQ(layers[0].parameters, 288 * 32 + 32);
  EXPECT_EQ(layers[1].parameters, 32 * 4 + 4);
  EXPECT_DOUBLE_EQ(layers[0].output_mb, 8 * 32 * 4 / 1e6);
  for (const LayerCost& layer : layers) {
    EXPECT_GT(layer.forward_s, 0);
    EXPECT_GT(layer.backward_s, 0) << layer.name;
  }
}

TEST(LayerWatch, EveryParameterOfAResnetIsSomeLayers) {
  const auto spec = support::small_resnet();
  const auto data = open(spec);
  const auto layers = layers_of(spec, 4);
  double parameters = 0;
  for (const LayerCost& layer : layers) parameters += layer.parameters;
  EXPECT_EQ(parameters, static_cast<double>(make(spec, *data)->parameters()));
  // 1 + 3 blocks of 2 convolutions, each with its norm, and one linear layer.
  EXPECT_EQ(layers.size(), 2 * 7 + 1U);
}

}  // namespace
}  // namespace mayfly
