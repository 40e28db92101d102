#include "plan/freight.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

// 25 million parameters of 4 bytes; with momentum another 4 each, with Adam 8.
TEST(Freight, ACheckpointIsTheParametersAndWhatTheOptimiserKeeps) {
  Profile profile{.parameters = Bytes{100e6}};
  EXPECT_NEAR(checkpoint_size(profile)->value, 100e6, 1);
  profile.recipe.optimiser = Optimiser::momentum;
  EXPECT_NEAR(checkpoint_size(profile)->value, 200e6, 1);
  profile.recipe.optimiser = Optimiser::adam;
  EXPECT_NEAR(checkpoint_size(profile)->value, 300e6, 1);
  profile.recipe.optimiser = Optimiser::adam_paged;
  EXPECT_NEAR(checkpoint_size(profile)->value, 300e6, 1);
  // In half precision with a master copy, by their number: 2 + 4 + 8 bytes.
  profile.recipe.parameters = 25e6;
  profile.recipe.optimiser = Optimiser::adam;
  profile.recipe.weights = Weights::half_with_master;
  EXPECT_NEAR(checkpoint_size(profile)->value, 350e6, 1);
  EXPECT_FALSE(checkpoint_size({}));
}

TEST(Freight, TheJobsWordComesBeforeWhatWasMeasured) {
  Profile profile{.dataset_size = Bytes{5e9}, .parameters = Bytes{100e6}};
  profile.origin.basis = Basis::measured;
  JobSpec job{.train = TrainSpec{.optimiser = {.kind = OptimiserSpec::Kind::adamw}, .checkpoint = {.keep = 5}}};
  Freight freight = freight_of(profile, job);
  EXPECT_EQ(freight.data.size, Bytes{5e9});
  EXPECT_EQ(freight.data.basis, Basis::measured);
  EXPECT_NEAR(freight.checkpoint.size->value, 300e6, 1);
  EXPECT_EQ(freight.checkpoint.basis, Basis::scaled);
  EXPECT_EQ(freight.keep, 5);
  profile.checkpoint = CheckpointSize{.data_mb = 40, .graph_mb = 2};
  EXPECT_EQ(freight_of(profile, job).checkpoint.size, Bytes{42e6});
  job.costs = CostsSpec{.data = {.size = Bytes{7e9}, .cloud = "aws", .region = "us-east-1"},
                        .checkpoints = {.size = Bytes{1e9}},
                        .every = Seconds(60),
                        .keep = 2};
  freight = freight_of(profile, job);
  EXPECT_EQ(freight.data.size, Bytes{7e9});
  EXPECT_EQ(freight.data.basis, Basis::given);
  EXPECT_EQ(freight.data.at, (Site{"aws", "us-east-1"}));
  EXPECT_EQ(freight.checkpoint.size, Bytes{1e9});
  EXPECT_EQ(freight.every, Seconds(60));
  EXPECT_EQ(freight.keep, 2);
}

// 8 GB of image and 40 GB of data at 1 GB/s, 100 s of boot, 20 of set-up; a worker starts in 12 s, 5 of them to load.
TEST(Freight, APreludeIsWhatComesBeforeTheFirstStep) {
  Profile profile{.dataset_size = Bytes{40e9}, .start = StartProfile{Seconds(12), Seconds(5), Seconds(3)}};
  const JobSpec job{.costs = CostsSpec{.load = Loading::share, .image = Bytes{8e9}, .setup = Seconds(20)}};
  Freight freight = freight_of(profile, job);
  const Prelude one = prelude(freight, BytesPerSecond{1e9}, 4, Seconds(100));
  EXPECT_EQ(one.start, Seconds(100 + 8 + 20 + 7 + 3));
  EXPECT_EQ(one.load, Seconds(10));
  EXPECT_TRUE(one.unknown.empty());
  freight.load = Loading::copy;
  EXPECT_EQ(prelude(freight, BytesPerSecond{1e9}, 4, Seconds(100)).load, Seconds(40));
  EXPECT_FALSE(prelude(freight, BytesPerSecond{1e9}, 4, Seconds(100)).assumes_network);
  EXPECT_EQ(prelude(freight, {}, 4, {}).unknown, std::vector<std::string>{"how long machines boot"});
}

// 40 GB at 2.5 Gbit/s, 0.3125 GB/s: 128 s. Where nothing is to be loaded nothing is assumed.
TEST(Freight, WhereNobodySaysTheNetworkTheSlowestIsAssumed) {
  Freight freight = freight_of({.dataset_size = Bytes{40e9}}, {});
  const Prelude blind = prelude(freight, {}, 4, Seconds(100));
  EXPECT_TRUE(blind.assumes_network);
  EXPECT_TRUE(blind.unknown.empty());
  EXPECT_EQ(blind.load, Seconds(128));
  freight.load = Loading::stream;
  EXPECT_FALSE(prelude(freight, {}, 4, Seconds(100)).assumes_network);
  freight.image = Bytes{5e9};
  EXPECT_EQ(prelude(freight, {}, 4, Seconds(100)).start, Seconds(116));
}

TEST(Freight, TheSlowestTypeHoldsUpTheOthers) {
  const Profile profile{.dataset_size = Bytes{40e9}};
  const InstanceType fast{.name = "f", .network = BytesPerSecond{4e9}},
      slow{.name = "s", .network_burst = BytesPerSecond{1e9}};
  const Freight freight = freight_of(profile, {});
  EXPECT_EQ(before_training(freight, profile, {&fast, &slow}, 2, Seconds(60)), Seconds(100));
  EXPECT_EQ(before_training(freight, profile, {&fast}, 2, Seconds(60)), Seconds(70));
  Profile measured = profile;
  measured.types["s"].network = BytesPerSecond{8e9};
  EXPECT_EQ(before_training(freight, measured, {&fast, &slow}, 2, Seconds(60)), Seconds(70));
}

}  // namespace
}  // namespace mayfly
