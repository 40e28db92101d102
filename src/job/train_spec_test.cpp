#include "job/train_spec.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "job/job_spec.h"

namespace mayfly {
namespace {

TEST(TrainSpecs, OfTheDocumentationLoad) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(MAYFLY_SOURCE_DIR) / "examples/formats/jobs")) {
    const auto job = load_job(entry.path());
    ASSERT_TRUE(job.has_value()) << job.error().message;
    ASSERT_TRUE(job->train.has_value()) << entry.path();
    EXPECT_EQ(job->train->model.name, entry.path().stem().string());
    EXPECT_TRUE(job->unused.empty()) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 7);
}

TEST(TrainSpecs, ReadEveryKey) {
  const auto job = parse_job(R"(
train:
  model: {name: gpt, layers: 2, heads: 3, embedding: 48, context: 32}
  data: {name: text, files: a.txt}
  validation: {name: text, files: [b.txt]}
  optimiser: {kind: adamw, rate: 0.002, weight_decay: 0.1, beta1: 0.8, beta2: 0.9, epsilon: 1e-6}
  schedule: {kind: cosine, warmup_steps: 10, total_steps: 110, floor: 0.1}
  checkpoint: {directory: saved, every: 2m, keep: 5}
  batch: 16
  clip: 1.5
  reduction: sum
  scale_rate: true
  device: cuda
  seed: 7
)",
                             "j.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  TrainSpec want;
  want.model = {.name = "gpt", .layers = 2, .heads = 3, .embedding = 48, .context = 32};
  want.data = {.name = "text", .files = {"a.txt"}};
  want.validation = DataSpec{.name = "text", .files = {"b.txt"}};
  want.optimiser = {
      .kind = OptimiserSpec::Kind::adamw, .rate = .002, .weight_decay = .1, .beta1 = .8, .beta2 = .9, .epsilon = 1e-6};
  want.schedule = {.kind = ScheduleSpec::Kind::cosine, .warmup_steps = 10, .total_steps = 110, .floor = .1};
  want.checkpoint = {.directory = "saved", .every = Seconds(120), .keep = 5};
  want.batch = 16;
  want.clip = 1.5;
  want.sum = true;
  want.scale_rate = true;
  want.device = "cuda";
  want.seed = 7;
  EXPECT_EQ(job->train, want);
  EXPECT_TRUE(job->unused.empty());
}

TEST(TrainSpecs, ReadTheLoader) {
  const auto job = parse_job(R"(
train:
  model: {name: dials, compute_ms: 1.5, device_ms: 2, parameters_mb: 8}
  data:
    {name: dials, files: d.bin, samples: 100, sample_kb: 110.5, prep_ms: 3,
     loader: {prep_threads: 0, ahead: 5, cache_mb: 64, partitioned: true, storage_mb_per_s: 530, share: search}}
)",
                             "j.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->train->model, (ModelSpec{.name = "dials", .compute_ms = 1.5, .device_ms = 2, .parameters_mb = 8}));
  const DataSpec want{.name = "dials",
                      .files = {"d.bin"},
                      .samples = 100,
                      .sample_kb = 110.5,
                      .prep_ms = 3,
                      .loader = {.prep_threads = 0,
                                 .ahead = 5,
                                 .cache_mb = 64,
                                 .partitioned = true,
                                 .storage = BytesPerSecond{530e6},
                                 .share = "search"}};
  EXPECT_EQ(job->train->data, want);
}

TEST(TrainSpecs, AdamHasASmallerRateUnlessTold) {
  const std::string start = "train: {model: {name: count}, data: {name: count, samples: 5}, optimiser: {kind: ";
  const auto rate = [&](const std::string& kind) {
    return parse_job(start + kind + "}}", "j.yaml")->train->optimiser.rate;
  };
  EXPECT_EQ(rate("sgd"), .1);
  EXPECT_EQ(rate("adam"), .001);
}

std::string block(const std::string& model, const std::string& data, const std::string& more = "") {
  return "train:\n  model: {" + model + "}\n  data: {" + data + "}\n" + (more.empty() ? "" : "  " + more + "\n");
}

TEST(TrainSpecs, SayWhatIsWrong) {
  const std::string digits = "name: digits, samples: 100";
  const std::string cnn = "name: cnn";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"train: 5\n", "1: train: '5', want a mapping"},
      {"train: {model: {name: cnn}}\n", "1: train.data: missing"},
      {block("name: resnt", digits),
       "2: train.model.name: 'resnt', want one of mlp, cnn, resnet, gpt, torchscript, dials, count, script (did you "
       "mean "
       "'resnet'?)"},
      {block(cnn, "name: mnist"),
       "3: train.data.name: 'mnist', want one of digits, idx, cifar, text, images, synthetic, dials, count"},
      {block("name: resnet, depth: 18", digits),
       "2: train.model.depth: 18, want 6n+2: 8, 14, 20, 26, 32, 44, 56, 110 ..."},
      {block("name: cnn, depth: 20", digits), "2: train.model.depth: goes with resnet, not with cnn"},
      {block("name: gpt, heads: 3", "name: text, files: t"),
       "2: train.model.embedding: 128, want a multiple of the 3 heads"},
      {block("name: mlp, hidden: [1.5]", digits), "2: train.model.hidden: 1.5, want whole numbers up to 10^6"},
      {block(cnn, digits, "schedule: {kind: step, every_steps: 5, factor: 1.1}"),
       "4: train.schedule.factor: 1.1, want more than 0, at most 1"},
      {block("name: mlp", digits), "2: train.model.hidden: missing"},
      {block("name: torchscript", digits), "2: train.model.file: missing"},
      {block("name: count", digits), "3: train.data: digits data for the model count, want count"},
      {block(cnn, "name: count, samples: 5"), "3: train.data: count data for the model cnn, want any but count"},
      {block("name: gpt", digits), "3: train.data: digits data for the model gpt, want text"},
      {block(cnn, "name: synthetic, samples: 9, shape: [20]"),
       "3: train.data: synthetic data for the model cnn, want a shape of three numbers: channels, height and width"},
      {block(cnn, "name: digits"), "3: train.data.samples: missing"},
      {block(cnn, "name: idx, files: [a]"), "3: train.data.files: 1 given, want two: images, then labels"},
      {block(cnn, "name: idx, files: {a: b}"), "3: train.data.files: want a path or a list of paths"},
      {block(cnn, digits, "validation: {name: count, samples: 5}"),
       "4: train.validation: count data for the model cnn, want any but count"},
      {block(cnn, digits, "optimiser: {kind: adm}"),
       "4: train.optimiser.kind: 'adm', want one of sgd, adam, adamw (did you mean 'adam'?)"},
      {block(cnn, digits, "optimiser: {rate: 0}"), "4: train.optimiser.rate: '0', want a number above 0"},
      {block(cnn, digits, "optimiser: {momentum: 1}"),
       "4: train.optimiser.momentum: 1, want a number from 0 to below 1"},
      {block(cnn, digits, "optimiser: {beta1: 0.5}"),
       "4: train.optimiser.beta1: goes with adam and adamw, not with sgd"},
      {block(cnn, digits, "schedule: {kind: step}"), "4: train.schedule.every_steps: missing"},
      {block(cnn, digits, "schedule: {kind: cosine, total_steps: 5, warmup_steps: 5}"),
       "4: train.schedule.total_steps: 5, want more than the 5 steps of warmup"},
      {block(cnn, digits, "checkpoint: {every: 0s}"), "4: train.checkpoint.every: '0s', want a duration above 0"},
      {block(cnn, digits, "batch: 0"), "4: train.batch: '0', want a number above 0"},
      {block(cnn, digits, "reduction: max"), "4: train.reduction: 'max', want one of mean, sum"},
      {block(cnn, digits, "device: gpu"), "4: train.device: 'gpu', want one of cpu, cuda"},
      {block(cnn, digits + ", loader: {cache_m: 5}"),
       "3: train.data.loader.cache_m: unknown key (did you mean 'cache_mb'?)"},
      {block(cnn, digits + ", loader: {prep_threads: 1000}"),
       "3: train.data.loader.prep_threads: 1000, want at most 256"},
      {block(cnn, digits + ", loader: {ahead: -1}"), "3: train.data.loader.ahead: '-1', want a number of 0 or more"},
      {block(cnn, digits + ", loader: {partitioned: true}"),
       "3: train.data.loader.partitioned: wants a cache to take part with: cache_mb"},
      {block(cnn, digits, "validation: {" + digits + ", loader: {ahead: 1}}"),
       "4: train.validation: has a loader, which goes with data alone: validation is read by the trainer itself"},
      {block(cnn, "name: images, files: p"), "3: train.data.shape: missing"},
      {block(cnn, "name: images, files: p, shape: [4, 8, 8]"),
       "3: train.data.shape: want [CHANNELS, HEIGHT, WIDTH], 1 or 3 channels and sides up to 4096: [3, 224, 224]"},
      {block(cnn, "name: images, shape: [3, 8, 8]"),
       "3: train.data.files: 0 given, want one: the folder of the classes' folders"},
      {block(cnn, digits + ", prep_ms: 5"), "3: train.data.prep_ms: goes with dials, not with digits"},
      {block("name: dials", digits), "3: train.data: digits data for the model dials, want dials"},
      {block(cnn, "name: dials, samples: 5, files: d"),
       "3: train.data: dials data for the model cnn, want any but dials"},
      {block("name: cnn, device_ms: 5", digits), "2: train.model.device_ms: goes with dials, not with cnn"},
      {block(cnn, digits, "bacth: 5"), "4: train.bacth: unknown key (did you mean 'batch'?)"},
  };
  for (const auto& [text, message] : wrong) {
    const auto job = parse_job(text, "j.yaml");
    ASSERT_FALSE(job.has_value()) << text;
    EXPECT_EQ(job.error().message, "j.yaml:" + message);
  }
}

TEST(TrainSpec, ServersSayHowLongTheyWait) {
  const auto spec = [](const std::string& servers) {
    return parse_job("train: {model: {name: count}, data: {name: count, samples: 10}, servers: " + servers + "}\n",
                     "j.yaml");
  };
  EXPECT_EQ(spec("{count: 2, standby: 1, sync: asp}")->train->servers,
            (ServersSpec{.count = 2, .standby = 1, .sync = ServersSpec::Sync::asp}));
  EXPECT_EQ(spec("{sync: ssp(3)}")->train->servers, (ServersSpec{.sync = ServersSpec::Sync::ssp, .bound = 3}));
  EXPECT_EQ(spec("{sync: bsp}")->train->servers, ServersSpec{});
  for (const auto* wrong : {"{sync: ssp}", "{sync: ssp(-1)}", "{sync: ssp(x)}", "{sync: fast}"})
    EXPECT_NE(spec(wrong).error().message.find("want asp, bsp or ssp(3)"), std::string::npos) << wrong;
  EXPECT_FALSE(spec("{count: 0}"));
}

TEST(RateFactor, WarmsUpInAStraightLine) {
  const ScheduleSpec schedule{.warmup_steps = 4};
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 0), .25);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 2), .75);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 3), 1);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 1000), 1);
  EXPECT_DOUBLE_EQ(rate_factor({}, 0), 1);
}

TEST(RateFactor, FallsByStairs) {
  const ScheduleSpec schedule{.kind = ScheduleSpec::Kind::step, .every_steps = 10, .factor = .5};
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 9), 1);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 10), .5);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 39), .125);
}

// Half way between warmup and end the cosine is 0: floor + (1 - floor) / 2 = 0.2 + 0.4.
TEST(RateFactor, FallsByCosineFromTheEndOfTheWarmupAndStays) {
  const ScheduleSpec schedule{.kind = ScheduleSpec::Kind::cosine, .warmup_steps = 10, .total_steps = 110, .floor = .2};
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 4), .5);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 10), 1);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 60), .6);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 110), .2);
  EXPECT_DOUBLE_EQ(rate_factor(schedule, 500), .2);
}

TEST(Scripts, HaveACommandAPlaceAndAnEnvironment) {
  const auto job = parse_job(R"(
run: python3 train.py
workdir: code
envs: {DATA: /data, RATE: 0.1, EMPTY: null}
setup: pip install things
train: {model: {name: script}, batch: 64}
)",
                             "job.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_TRUE(job->train->model.is_script());
  EXPECT_EQ(job->run, "python3 train.py");
  EXPECT_EQ(job->workdir, "code");
  const std::vector<std::pair<std::string, std::string>> wanted{{"DATA", "/data"}, {"RATE", "0.1"}, {"EMPTY", ""}};
  EXPECT_EQ(job->envs, wanted);
  EXPECT_EQ(job->unused, std::vector<std::string>{"setup"});
}

TEST(Scripts, AreNotWhatOtherJobsRun) {
  const auto job = parse_job("run: x\ntrain: {model: {name: count}, data: {name: count, samples: 9}}\n", "job.yaml");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_TRUE(job->run.empty());
  EXPECT_EQ(job->unused, std::vector<std::string>{"run"});
}

TEST(Scripts, RefuseWhatIsTheirOwnAffair) {
  const auto error = [](const std::string& top, const std::string& train) {
    const auto job = parse_job(top + "\ntrain: {model: {name: script}" + train + "}\n", "job.yaml");
    return job ? std::string() : job.error().message;
  };
  EXPECT_NE(error("", "").find("run: nothing to run"), std::string::npos);
  EXPECT_NE(error("run: x", ", data: {name: count, samples: 9}").find("data: is the script's own"), std::string::npos);
  EXPECT_NE(error("run: x", ", device: cuda").find("device: is the script's own"), std::string::npos);
  EXPECT_NE(error("run: x", ", optimiser: {rate: 1}").find("optimiser: is the script's own"), std::string::npos);
  EXPECT_EQ(error("run: x", ", optimiser: {rate: 1}, servers: {count: 2}"), "");
  EXPECT_NE(error("run: x\nenvs: [A]", "").find("envs: want NAME: value"), std::string::npos);
  EXPECT_NE(error("run: x\nenvs: {MAYFLY_TOKEN: 1}", "").find("are mayfly's"), std::string::npos);
}

}  // namespace
}  // namespace mayfly
