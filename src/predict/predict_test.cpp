#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "predict/cycles.h"
#include "predict/prediction.h"
#include "predict/serverless.h"
#include "predict/worker.h"
#include "support/problems.h"

namespace mayfly {
namespace {

using support::shipped_catalog;
using support::shipped_profile;
using support::spotdnn_problem;

Speed shares(const std::vector<double>& speeds) {
  CycleSum sum;
  for (const double speed : speeds) sum.add(1, 1 / speed, 1);
  return sum.total();
}

// spotDNN (5) with the largest share first: n equal workers give sqrt(1 - 1/n).
TEST(ConvergenceCoefficient, FollowsFromTheSharesOfUpdates) {
  const std::vector<std::pair<std::size_t, double>> equal{{1, 0}, {2, .7071}, {3, .8165}, {4, .8660}, {10, .9487}};
  for (const auto& [n, expected] : equal) EXPECT_NEAR(shares(std::vector<double>(n, 1.0)).cc, expected, 5e-5);
  // 1 : .565 -> sqrt(2) (1 - 1/1.565) = .5106; 1 : 1 : .565 -> .757 (Table VI prints .51 and .75).
  EXPECT_NEAR(shares({1, .565}).cc, .511, 5e-4);
  EXPECT_NEAR(shares({1, 1, .565}).cc, .757, 5e-4);
  // Two equal fastest workers: never below .7071, so Table VI's .59 cannot be (errata, item 2).
  EXPECT_GE(shares({1, 1, .01}).cc, .7071);
}

struct Contention {
  double slope, offset, request;
  int workers;
  double probability, bandwidth;
};

TEST(SpotDnnBandwidth, MatchesTheContentionTable) {
  // The prototype's ResNet-110 row, to 1e-6, then the draft's four workloads as printed.
  const std::vector<Contention> exact{{.8, -1.92, 142, 9, .480000, 137.840000},
                                      {.8, -1.92, 142, 10, .609822, 128.583913},
                                      {.8, -1.92, 142, 11, .733300, 117.867769},
                                      {.8, -1.92, 142, 12, .851281, 106.246186},
                                      {.8, -1.92, 142, 13, .964441, 94.074700},
                                      {.8, -1.92, 142, 14, 1, 85.714286},
                                      {.8, -1.92, 142, 15, 1, 80}};
  for (const auto& c : exact) {
    EXPECT_NEAR(spotdnn_contention({c.slope, c.offset}, c.workers), c.probability, 1e-6);
    EXPECT_NEAR(spotdnn_bandwidth({c.slope, c.offset}, c.workers, c.request, 1200), c.bandwidth, 1e-6);
  }
  const std::vector<Contention> printed{
      {.81, -1.92, 142, 8, .3710, 142},  {.81, -1.92, 142, 10, .6414, 127.89}, {.81, -1.92, 142, 16, 1, 75},
      {.42, -.27, 543, 2, .3240, 543},   {.42, -.27, 543, 4, .57, 404.49},     {.42, -.27, 543, 8, .9179, 182.25},
      {.42, -.27, 543, 16, 1, 75},       {1, -1.41, 620, 2, .0042, 619.92},    {1, -1.41, 620, 4, .59, 431.2},
      {1, -1.41, 620, 8, 1, 150},        {.41, -.4, 562, 2, .1798, 562},       {.41, -.4, 562, 4, .42, 451.96},
      {.41, -.4, 562, 8, .7597, 249.02}, {.41, -.4, 562, 10, .8965, 165.73}};
  for (const auto& c : printed) {
    EXPECT_NEAR(spotdnn_contention({c.slope, c.offset}, c.workers), c.probability, 5e-5);
    EXPECT_NEAR(spotdnn_bandwidth({c.slope, c.offset}, c.workers, c.request, 1200), c.bandwidth, 5e-3);
  }
}

TEST(SpotDnnBandwidth, ProbabilityIsClampedBelowToo) {
  EXPECT_EQ(spotdnn_contention({.8, -1.92}, 1), 0);
  // Contended by two fast workers on a slow link although the fit says -.79: the request is granted, never more.
  EXPECT_EQ(spotdnn_bandwidth({.8, -1.92}, 2, 1000, 1200), 1000);
}

struct Golden {
  std::vector<int> counts;
  double loss, bandwidth, speed, batch, cc, iterations, time, rounded_time;
};

// Golden set A: model outputs that equal published values (Table I, Fig. 6a, 7a).
TEST(SpotDnn, ReproducesThePublishedFigures) {
  const std::vector<Golden> goldens{
      {{2, 0, 2, 0, 0}, .9, 142, 5806, 1024, .789285, 10637.5, 1876.128, 1876.04},
      {{0, 0, 5, 3, 0}, .8, 142, 11075, 1403.130, .882791, 20119.612, 2549.024, 2549.02},
      {{0, 2, 5, 2, 0}, .8, 137.84, 10531.123, 1261.924, .866231, 21675.652, 2597.351, 2597.34},
      {{0, 0, 4, 3, 0}, .8, 142, 10057, 1457.763, .873096, 18667.201, 2705.813, 2705.85},
  };
  for (const auto& golden : goldens) {
    const auto made = spotdnn_problem({2, 5, 5, 8, 5}, golden.loss, 1e6);
    const auto counts = support::spotdnn_counts(made.problem, golden.counts);
    std::vector<Group> groups;
    int workers = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      if (counts[k] > 0) groups.push_back({&made.problem.kinds[k].worker, counts[k]});
      workers += counts[k];
    }
    EXPECT_NEAR(spotdnn_bandwidth(*made.problem.job.contention, workers, 142, 1200), golden.bandwidth, 1e-6);
    const Speed speed = spotdnn_speed(made.problem.job, groups, made.problem.servers[0].pool);
    EXPECT_NEAR(speed.samples_per_s, golden.speed, 1e-3);
    EXPECT_NEAR(speed.batch, golden.batch, 1e-3);
    EXPECT_NEAR(speed.cc, golden.cc, 1e-6);
    const double iterations = *iterations_for(ToLoss{golden.loss}, *made.profile, speed, workers, Sync::asp);
    EXPECT_NEAR(iterations, golden.iterations, 1e-3 * golden.iterations);
    EXPECT_NEAR(iterations / speed.updates_per_s, golden.time, 1e-6 * golden.time);
    // The prototype rounds the batch to .1, the iterations to whole ones and the time (iterations x batch / speed) to
    // .01 s, half to even.
    const double batch = std::rint(speed.batch * 10) / 10;
    const double whole =
        std::rint(((-0.2 * batch + 2507.6) * std::sqrt(static_cast<double>(workers))) / (golden.loss - 0.5) - 876.5);
    EXPECT_NEAR(std::rint(whole * batch / speed.samples_per_s * 100) / 100, golden.rounded_time, 1e-9);
  }
}

TEST(SpotDnn, IterationsOfFigure6) {
  const auto made = spotdnn_problem({2, 5, 5, 8, 5}, .9, 1e6);
  const auto counts = support::spotdnn_counts(made.problem, {0, 4, 0, 4, 0});
  std::vector<Group> groups;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] > 0) groups.push_back({&made.problem.kinds[k].worker, counts[k]});
  }
  const Speed speed = spotdnn_speed(made.problem.job, groups, made.problem.servers[0].pool);
  EXPECT_NEAR(speed.samples_per_s, 10980, 1e-3);
  EXPECT_NEAR(speed.batch, 1608.515, 1e-3);
  EXPECT_NEAR(speed.cc, .887314, 1e-6);
  const std::vector<std::pair<double, double>> iterations{{.9, 14580.1}, {1.4, 5993}, {1.9, 3540}, {2.4, 2378}};
  for (const auto& [loss, expected] : iterations) {
    EXPECT_NEAR(*iterations_for(ToLoss{loss}, *made.profile, speed, 8, Sync::asp), expected, .5);
  }
}

TEST(SpotDnn, CostsOfTableIToTheCent) {
  const auto cost = [](double hourly, double seconds) { return (UsdPerHour{hourly} * Seconds(seconds)).value; };
  EXPECT_NEAR(cost(5 * .684 + 3 * 1.37, 2549.02), 5.33, .005);
  EXPECT_NEAR(cost(2 * .3612 + 5 * .684 + 2 * 1.37, 2597.34), 4.97, .005);
  EXPECT_NEAR(cost(4 * .684 + 3 * 1.37, 2710.85), 5.16, .005);
  EXPECT_NEAR(cost(5 * 2.28 + 3 * 4.56, 2549.02), 17.758, .005);  // printed 17.75
}

// The CM-DARE+ baseline: speeds of single GPUs add up, in spotDNN's window search. With 531 samples/s per M60 it plans
// [0,0,4,3,0] for Table I, which spotDNN's own model then finds to need 2705.8 s of 2600.
TEST(Additive, PlansWhatCmDarePlusIsSaidToPlan) {
  const auto plan = [](const std::vector<int>& quotas, double loss, double deadline) {
    auto made = spotdnn_problem(quotas, loss, deadline);
    made.problem.predictor = Predictor::additive;
    for (Kind& kind : made.problem.kinds) {
      const double single = kind.name == "p3.2xlarge"     ? 1885
                            : kind.name == "g4dn.4xlarge" ? 750
                            : kind.name == "p2.8xlarge"   ? 264
                                                          : 531;
      const double gpus = kind.name == "g3.8xlarge"    ? 2
                          : kind.name == "g3.16xlarge" ? 4
                          : kind.name == "p2.8xlarge"  ? 8
                                                       : 1;
      kind.worker = {.compute = kind.worker.batch / (single * gpus), .batch = kind.worker.batch};
    }
    return support::paper_order(made.problem, window_search(made.problem).best.at(0).counts);
  };
  EXPECT_EQ(plan({0, 5, 5, 5, 5}, .8, 2600), (std::vector<int>{0, 0, 4, 3, 0}));
  EXPECT_EQ(plan({2, 5, 5, 8, 5}, .9, 1900), (std::vector<int>{2, 0, 2, 0, 0}));
  EXPECT_EQ(plan({2, 5, 5, 8, 5}, .8, 2400), (std::vector<int>{2, 0, 3, 0, 0}));
  EXPECT_EQ(plan({2, 5, 5, 8, 5}, .7, 3700), (std::vector<int>{2, 0, 3, 0, 0}));
}

struct CynthiaCase {
  Profile profile = shipped_profile("cynthia-example");
  Worker worker = *make_worker(profile, *shipped_catalog("default").find("m4.xlarge"), shipped_catalog("default"));
  Speed speed(Sync sync, int workers, int servers) {
    profile.sync = sync;
    const Group group{&worker, workers};
    return cynthia_speed(make_workload(profile), {&group, 1}, {.count = servers, .nic = 110e6});
  }
};

// 100 GFLOP on 5 x 20 GFLOPS: 1.0 s; 2 x 5 x 50 MB over 5 x 110 MB/s: .909 s, hidden. 5000 steps: 5000 s.
TEST(Cynthia, SynchronousExample) {
  CynthiaCase example;
  const Speed speed = example.speed(Sync::bsp, 5, 5);
  EXPECT_NEAR(1 / speed.updates_per_s, 1.0, 1e-12);
  EXPECT_NEAR(speed.breakdown[static_cast<std::size_t>(Part::server_network)], .909, 5e-4);
  EXPECT_EQ(speed.bottleneck(), Part::compute);
  const double steps = *iterations_for(ToLoss{.6}, example.profile, speed, 5, Sync::bsp);
  EXPECT_NEAR(steps, 5000, 1e-9);
}

// 25 workers on 5 servers: 5 s of compute + 100 MB over 22 MB/s = 4.545 s; 25,000 steps / 25 workers: 9545 s.
TEST(Cynthia, AsynchronousExampleMissesTheDeadlineItsComputeBoundAllows) {
  CynthiaCase example;
  const Speed speed = example.speed(Sync::asp, 25, 5);
  EXPECT_NEAR(25 / speed.updates_per_s, 9.545, 5e-4);
  const double steps = *iterations_for(ToLoss{.6}, example.profile, speed, 25, Sync::asp);
  EXPECT_NEAR(steps, 25000, 1e-9);
  EXPECT_NEAR(steps / speed.updates_per_s, 9545, 1);
}

TEST(Cynthia, ServerCpuSlowsTheWorkersDown) {
  CynthiaCase example;
  example.profile.cynthia->base_gflops = 20;
  example.profile.cynthia->server_gflops_used = 10;
  const Group group{&example.worker, 8};
  // 8 workers ask for 80 GFLOPS of a 40 GFLOPS server: half pace, 100 / (8 x 20 x .5) = 1.25 s.
  const Speed speed =
      cynthia_speed(make_workload(example.profile), {&group, 1}, {.count = 1, .nic = 1e12, .gflops = 40});
  EXPECT_NEAR(1 / speed.updates_per_s, 1.25, 1e-12);
}

FunctionPlatform lambda_2020() {
  return {.name = "aws-lambda", .memory_mib_max = 3008, .timeout = Seconds(900), .usd_per_gib_s = 0.0000166667};
}

TEST(Serverless, MobileNetTimeoutTestOfThePaper) {
  const auto profile = shipped_profile("lambda-mobilenet");
  // 7 functions of 1728 MiB, 6 epochs: (50000 // 7) // 64 x 6 = 666 iterations, 1042.82 s; .205306 USD of functions,
  // .232419 with the server at 2.6e-5 USD/s.
  EXPECT_NEAR(serverless_fewest_functions(profile, 1728, 6, Seconds(1200)), 6.116, 5e-4);
  const auto p = serverless_prediction(profile, lambda_2020(), {7, 1728}, 6, {0});
  EXPECT_EQ(p.iterations, 666);
  EXPECT_NEAR(p.time.count(), 1042.82, .005);
  EXPECT_NEAR(p.cost.value, .205306, 5e-7);
  EXPECT_NEAR(serverless_prediction(profile, lambda_2020(), {7, 1728}, 6, {.0936}).cost.value, .232419, 5e-7);
  EXPECT_EQ(p.restarts, 1);
}

TEST(Serverless, PaperFormHasRealIterations) {
  auto profile = shipped_profile("lambda-mobilenet");
  profile.serverless->whole_iterations = false;
  profile.serverless->function_network = megabytes_per_second(84);
  EXPECT_NEAR(serverless_prediction(profile, lambda_2020(), {7, 1728}, 6, {0}).time.count(), 1034.17, .005);
  EXPECT_EQ(serverless_most_functions(*profile.serverless), 14);                              // 1200 / 84
  EXPECT_EQ(serverless_most_functions(*shipped_profile("lambda-mobilenet").serverless), 15);  // 1200 / 80
}

TEST(Serverless, TimesComputedFromTheReleasedCode) {
  struct Row {
    const char* profile;
    FunctionFleet fleet;
    double epochs, time;
  };
  const std::vector<Row> rows{{"lambda-1dcnn", {8, 960}, 3, 72.83},       {"lambda-1dcnn", {8, 1472}, 3, 49.20},
                              {"lambda-1dcnn", {8, 1984}, 3, 38.32},      {"lambda-1dcnn", {8, 2496}, 3, 32.08},
                              {"lambda-1dcnn", {8, 3008}, 3, 28.02},      {"lambda-resnet50", {8, 2496}, 1, 445.54},
                              {"lambda-resnet50", {8, 2624}, 1, 438.99},  {"lambda-resnet50", {8, 2752}, 1, 432.69},
                              {"lambda-resnet50", {8, 2880}, 1, 426.64},  {"lambda-resnet50", {8, 3008}, 1, 420.82},
                              {"lambda-mobilenet", {4, 3008}, 3, 655.74}, {"lambda-mobilenet", {6, 3008}, 3, 437.16},
                              {"lambda-mobilenet", {8, 3008}, 3, 326.19}, {"lambda-mobilenet", {10, 3008}, 3, 287.14},
                              {"lambda-mobilenet", {12, 3008}, 3, 261.11}};
  for (const auto& row : rows) {
    EXPECT_NEAR(
        serverless_prediction(shipped_profile(row.profile), lambda_2020(), row.fleet, row.epochs, {0}).time.count(),
        row.time, .005);
  }
}

// Fig. 4, 11 and Table 3 as printed: cost = ((m / 1024) n 0.0000166667 + 2.6e-5) T.
TEST(Serverless, CostFormulaReproducesThePrintedCosts) {
  const auto cost = [](int memory, int functions, double seconds) {
    return (memory / 1024.0 * functions * 0.0000166667 + 2.6e-5) * seconds;
  };
  EXPECT_NEAR(cost(1728, 4, 525.4), .0728, 5e-5);
  EXPECT_NEAR(cost(3008, 32, 181.7), .2895, 5e-4);
  EXPECT_NEAR(cost(3008, 10, 53.6), .02765, 5e-5);
  EXPECT_NEAR(cost(2560, 8, 566.6), .2036, 5e-5);
  EXPECT_NEAR(cost(3008, 8, 703.95), .2940, 5e-4);
}

TEST(Serverless, ARestartCostsItsStall) {
  auto profile = shipped_profile("lambda-mobilenet");
  profile.serverless->restart = Seconds(6);
  EXPECT_NEAR(serverless_prediction(profile, lambda_2020(), {7, 1728}, 6, {0}).time.count(), 1048.82, .005);
}

// Asynchronous and in turn: a cycle of .2 + 2 x .05 s, undisturbed until the link is full at 20 updates a second.
TEST(Queue, WhoComesInTurnMeetsNobodyUntilTheLinkIsFull) {
  const Workload job{.parameters = 50e6, .in_turn = true};
  const Worker worker{.compute = .2, .batch = 8, .rate = 1e9, .nic = 1e9};
  const Worker slow{.compute = .7, .batch = 8, .rate = 1e9, .nic = 1e9};
  const ServerPool server{.count = 1, .nic = 1e9, .cores = 4};
  for (const auto& [workers, updates] : {std::pair{1, 1 / .3}, {3, 10.0}, {6, 20.0}, {10, 20.0}}) {
    const Group group{&worker, workers};
    EXPECT_NEAR(queue_speed(job, {&group, 1}, server).updates_per_s, updates, 1e-9) << workers;
  }
  // 8 of .3 s and one of .8 s ask for 27.9; all wait .1228 s: 8 / .4228 + 1 / .9228 = 20.
  const std::vector<Group> mixed{{&worker, 8}, {&slow, 1}};
  EXPECT_NEAR(queue_speed(job, mixed, server).updates_per_s, 20, 1e-9);
}

TEST(Queue, NamesTheServersCpuWhenThatIsTheLimit) {
  const Workload job{.parameters = 1e6, .server_cpu = .4};
  const Worker worker{.compute = .1, .batch = 8, .rate = 1e9, .nic = 1e9};
  const Group group{&worker, 16};
  const Speed speed = queue_speed(job, {&group, 1}, {.count = 1, .nic = 1e9, .cores = 4});
  EXPECT_EQ(speed.bottleneck(), Part::server_cpu);
  EXPECT_NEAR(speed.updates_per_s, 10, .01);  // .4 core-seconds on 4 cores: at most 10 per second
}

TEST(Queue, MoreServersNeverSlowTheClusterAndMoreWorkersNeverLowerItsUpdates) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const auto uniform = [&](double low, double high) {
      return low + (high - low) * static_cast<double>(random() % 10000) / 1e4;
    };
    const Workload job{.parameters = uniform(1e6, 5e8), .in_turn = trial % 2 == 1};
    const Worker fast{.compute = uniform(.05, 1), .batch = 64, .rate = uniform(5e7, 2e9), .nic = 2e9};
    const Worker slow{.compute = uniform(1, 3), .batch = 128, .rate = uniform(5e7, 2e9), .nic = 2e9};
    double before = 0;
    for (int n = 1; n < 12; ++n) {
      const std::vector<Group> groups{{&fast, n}, {&slow, 2}};
      const double one = queue_speed(job, groups, {.count = 1, .nic = 1e9, .cores = 4}).updates_per_s;
      EXPECT_GE(one, before * (1 - 1e-12));
      EXPECT_GE(queue_speed(job, groups, {.count = 2, .nic = 1e9, .cores = 4}).updates_per_s, one * (1 - 1e-12));
      before = one;
    }
  }
}

TEST(Workers, AreScaledFromAnotherGpuWhereTheyWereNotMeasured) {
  const auto catalog = shipped_catalog("default");
  const auto profile = shipped_profile("spotdnn-resnet110");
  const auto measured = make_worker(profile, *catalog.find("p3.2xlarge"), catalog);
  const auto twin = make_worker(profile, *catalog.find("p3.8xlarge"), catalog);
  ASSERT_TRUE(measured && twin);
  EXPECT_EQ(measured->basis, Basis::given);
  EXPECT_EQ(twin->basis, Basis::scaled);
  EXPECT_EQ(twin->batch, 4 * 1024);
  EXPECT_DOUBLE_EQ(twin->compute, measured->compute);  // the same GPU, four of them, four times the batch
  EXPECT_NEAR(twin->relative_sd, std::hypot(0.0, 0.04 / 1.28155), 1e-6);  // in another machine
  const auto other = make_worker(profile, *catalog.find("g5.xlarge"), catalog);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->basis, Basis::scaled);
  EXPECT_GT(other->relative_sd, 0.08);
}

// A catalogue that knows nothing of its GPUs but their FP32 peaks: twice the peak, half the time, give or take a
// factor.
TEST(Workers, AreScaledByFp32PeaksWhereNoMoreIsKnownAndHardlyBelieved) {
  Catalog catalog{.name = "bare"};
  for (const auto& [name, tflops] : {std::pair{"fast", 20.0}, std::pair{"slow", 10.0}}) {
    catalog.types.push_back(
        {.name = name, .gpu_count = 1, .vcpus = 4, .memory_gib = 16, .network = BytesPerSecond{1e9}});
    catalog.types.back().gpu = Gpu{.model = name, .tflops_fp32 = tflops};
  }
  Profile profile{.name = "p", .parameters = Bytes{1e6}};
  profile.types["slow"] = {.batch = 8, .compute = Seconds{1}};
  const auto fast = make_worker(profile, *catalog.find("fast"), catalog);
  ASSERT_TRUE(fast);
  EXPECT_DOUBLE_EQ(fast->compute, 0.5);
  EXPECT_NEAR(fast->relative_sd, kFlopsScalingSd, 1e-12);
}

// Twice the batch on the other machine: twice the work, 2^0.103 = 1.074 times as fast for each sample.
TEST(Workers, AreScaledToTheBatchTheyWillBeGiven) {
  const auto catalog = shipped_catalog("default");
  Profile profile{.name = "p", .parameters = Bytes{1e8}, .exchange = Exchange::all_reduce};
  profile.types["g4dn.xlarge"] = {.batch = 32, .compute = Seconds{0.1}};
  const auto& type = *catalog.find("g5.xlarge");
  const auto same = make_worker(profile, type, catalog);
  profile.types["g5.xlarge"] = {.batch = 64};
  const auto twice = make_worker(profile, type, catalog);
  ASSERT_TRUE(same && twice);
  EXPECT_EQ(twice->batch, 64);
  EXPECT_NEAR(twice->compute, same->compute * 2 / std::pow(2, 0.103), 1e-12);
}

// 512 images of 0.0246 TFLOP in a second are 12.6 TFLOPS, 4 % of an A100's peak; with a hundred times the work, 4 times
// it.
TEST(Workers, AboveWhatTheHardwareCanDoAreRefused) {
  const auto catalog = shipped_catalog("default");
  Profile profile{
      .name = "p", .parameters = Bytes{1e8}, .recipe = {.precision = Precision::bf16, .tflop_per_sample = 0.0246}};
  profile.types["a2-highgpu-1g"] = {.batch = 512, .compute = Seconds{1}};
  const auto& type = *catalog.find("a2-highgpu-1g");
  const auto worker = make_worker(profile, type, catalog);
  ASSERT_TRUE(worker);
  EXPECT_NEAR(*profile.recipe.work() * worker->batch / worker->compute / *machine_peak(profile, type), 0.0404, 1e-4);
  profile.recipe.tflop_per_sample = 2.46;
  const auto refused = make_worker(profile, type, catalog);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("404 % of the bf16 peak"), std::string::npos) << refused.error().message;
}

TEST(Workers, PipelineSpeedsAreForTheirOwnTypeOnly) {
  const auto catalog = shipped_catalog("default");
  const auto profile = shipped_profile("parcae-bert");
  EXPECT_FALSE(make_worker(profile, *catalog.find("g5.xlarge"), catalog));
  const auto worker = make_worker(profile, *catalog.find("p3.2xlarge"), catalog);
  ASSERT_TRUE(worker);
  const Group group{&*worker, 18};
  // 18 machines: the best measured shape is 4 x 4 at 350.133 samples/s.
  EXPECT_NEAR(queue_speed(make_workload(profile), {&group, 1}, {}).samples_per_s, 350.133, 1e-9);
}

TEST(Estimates, BandsAreLogNormalAndAbsentWhereNothingIsKnown) {
  EXPECT_FALSE(with_band(100, 0).p10);
  const auto band = with_band(100, .1);
  EXPECT_NEAR(*band.p90, 113.67, .01);  // exp(.1 x 1.28155)
  EXPECT_NEAR(*band.p10 * *band.p90, 1e4, 1e-6);
}

}  // namespace
}  // namespace mayfly
