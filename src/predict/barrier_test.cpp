#include <gtest/gtest.h>

#include <vector>

#include "predict/speed.h"

namespace mayfly {
namespace {

// Ring of 4 machines, 100 MB of gradients in 10 tensors of 1 ms latency over 1 GB/s: .01 + 2 x 3/4 x .1 = .16 s; half
// of the backward pass (2/3 x .3 s x .5 = .1 s) hides .1 s of it: .3 + .06 = .36 s.
TEST(Queue, RingHidesWhatTheBackwardPassAllows) {
  const Workload job{.sync = Sync::bsp,
                     .exchange = Exchange::all_reduce,
                     .parameters = 100e6,
                     .tensors = 10,
                     .latency = .001,
                     .overlap = .5,
                     .global_batch = 128};
  const Worker worker{.compute = .3, .batch = 32, .nic = 1e9};
  const Group group{&worker, 4};
  const Speed speed = queue_speed(job, {&group, 1}, {});
  EXPECT_NEAR(1 / speed.updates_per_s, .36, 1e-12);
  EXPECT_NEAR(speed.samples_per_s, 4 * 32 / .36, 1e-9);
  EXPECT_EQ(speed.bottleneck(), Part::compute);
  const Group one{&worker, 1};
  EXPECT_NEAR(1 / queue_speed(job, {&one, 1}, {}).updates_per_s, 1.2, 1e-12);
}

// A step of 32 samples takes .3 s, of which .06 s are fixed. On four machines each computes 8: .06 + .24 / 4 = .12 s.
// Where each adds its own 32 the step has 128 and takes .3 s; with at most 64, .06 + .24 / 2 = .18 s.
TEST(Queue, AStepIsOfAsManySamplesOnAnyNumberOfMachines) {
  Workload job{.sync = Sync::bsp, .exchange = Exchange::all_reduce, .global_batch = 32};
  const Worker worker{.compute = .3, .batch = 32, .fixed = .06, .nic = 1e9};
  const Group group{&worker, 4};
  EXPECT_NEAR(1 / queue_speed(job, {&group, 1}, {}).updates_per_s, .12, 1e-12);
  EXPECT_EQ(queue_speed(job, {&group, 1}, {}).batch, 32);
  job.global_batch = 0;  // of the largest machine
  EXPECT_NEAR(1 / queue_speed(job, {&group, 1}, {}).updates_per_s, .12, 1e-12);
  job.scale_batch = true;
  EXPECT_NEAR(1 / queue_speed(job, {&group, 1}, {}).updates_per_s, .3, 1e-12);
  EXPECT_EQ(queue_speed(job, {&group, 1}, {}).batch, 128);
  job.most_batch = 64;
  EXPECT_NEAR(1 / queue_speed(job, {&group, 1}, {}).updates_per_s, .18, 1e-12);
}

// Two machines of 32 samples in .3 s and two of 32 in .1 s: 853.3 samples/s together, so their 128 take .15 s. Half of
// the backward pass hides .05 s of the ring's .16 s: .26 s.
TEST(Queue, WorkWithABarrierIsDealtOutBySpeed) {
  const Workload job{.sync = Sync::bsp,
                     .exchange = Exchange::all_reduce,
                     .parameters = 100e6,
                     .tensors = 10,
                     .latency = .001,
                     .overlap = .5,
                     .global_batch = 128};
  const Worker slow{.compute = .3, .batch = 32, .nic = 1e9};
  const Worker fast{.compute = .1, .batch = 32, .nic = 1e9};
  const std::vector<Group> mixed{{&slow, 2}, {&fast, 2}};
  EXPECT_NEAR(1 / queue_speed(job, mixed, {}).updates_per_s, .26, 1e-12);
  EXPECT_NEAR(queue_speed(job, mixed, {}).samples_per_s, 128 / .26, 1e-9);
}

// Synchronous, 4 workers, 50 MB through one 1 GB/s server: 4 x .05 out, .2 s of compute, 4 x .05 in: .6 s. Of what goes
// in, half of the backward pass hides 2/3 x .2 x .5 = .0667 s, however much there is to hide.
TEST(Queue, BarrierQueuesEveryoneAtTheServer) {
  const Workload job{.sync = Sync::bsp, .parameters = 50e6, .global_batch = 32};
  const Worker worker{.compute = .2, .batch = 8, .rate = 1e9, .nic = 1e9};
  const Group group{&worker, 4};
  const Speed speed = queue_speed(job, {&group, 1}, {.count = 1, .nic = 1e9, .cores = 4});
  EXPECT_NEAR(1 / speed.updates_per_s, .6, 1e-12);
  EXPECT_EQ(speed.bottleneck(), Part::server_network);
  Workload hidden = job;
  hidden.overlap = .5;
  EXPECT_NEAR(1 / queue_speed(hidden, {&group, 1}, {.count = 1, .nic = 1e9, .cores = 4}).updates_per_s, .6 - .2 / 3,
              1e-12);
  hidden.overlap = 1;
  hidden.global_batch = 8;
  const Group one{&worker, 1};
  EXPECT_NEAR(1 / queue_speed(hidden, {&one, 1}, {.count = 1, .nic = 1e9, .cores = 4}).updates_per_s, .25, 1e-12);
}

// As above, in turn: the last of four has its pull after .2 s, computes for .2 s and pushes for .05 s. Where the server
// needs .08 s of a core for each push, the first arrives after .05 + .2 s and they are through .32 s later.
TEST(Queue, WhoPullsInTurnPushesWhileOthersPull) {
  Workload job{.sync = Sync::bsp, .parameters = 50e6, .in_turn = true, .global_batch = 32};
  const Worker worker{.compute = .2, .batch = 8, .rate = 1e9, .nic = 1e9};
  const Group group{&worker, 4};
  EXPECT_NEAR(1 / queue_speed(job, {&group, 1}, {.count = 1, .nic = 1e9, .cores = 1}).updates_per_s, .45, 1e-12);
  job.server_cpu = .08;
  EXPECT_NEAR(1 / queue_speed(job, {&group, 1}, {.count = 1, .nic = 1e9, .cores = 1}).updates_per_s, .57, 1e-12);
}

// Two machines of 32 samples in .4 s that wait .02 s and reduce for .1 s, of which .06 s hide behind .2 of computing:
// alone .4 + .02 + .1 - .06 = .46 s. Of the same step both compute .2 s, behind which .04 s hide: .2 + .01 + .1 - .04 =
// .27 s.
TEST(Queue, AShorterStepHidesLessOfTheExchangeInsideAMachine) {
  Workload job{.sync = Sync::bsp, .exchange = Exchange::all_reduce, .global_batch = 32};
  const Interconnect inside{.always = .1, .waiting = .05, .hideable = .06, .hides = .2};
  const Worker worker{.compute = .4, .batch = 32, .interconnect = inside, .nic = 1e9};
  const Group one{&worker, 1}, two{&worker, 2};
  EXPECT_NEAR(1 / queue_speed(job, {&one, 1}, {}).updates_per_s, .46, 1e-12);
  const Speed speed = queue_speed(job, {&two, 1}, {});
  EXPECT_NEAR(1 / speed.updates_per_s, .27, 1e-12);
  EXPECT_NEAR(speed.breakdown[static_cast<std::size_t>(Part::interconnect)], .07, 1e-12);
}

// Paces 100 and 300 samples/s: of 64 samples one of the slow gets 64 / 700 of 100, one of the fast thrice as much.
TEST(Queue, AStepThatAllShareIsDealtOutByPace) {
  Workload job{.sync = Sync::bsp, .exchange = Exchange::all_reduce, .global_batch = 64};
  const Worker slow{.compute = .35, .batch = 32, .fixed = .03, .nic = 1e9};
  const Worker fast{.compute = .2, .batch = 60, .nic = 1e9};
  const std::vector<Group> mixed{{&slow, 1}, {&fast, 2}};
  EXPECT_NEAR(*share_of_step(job, mixed, slow), 64 / 7.0, 1e-12);
  EXPECT_NEAR(*share_of_step(job, mixed, fast), 3 * 64 / 7.0, 1e-12);
  job.scale_batch = true;
  EXPECT_FALSE(share_of_step(job, mixed, slow));
}

}  // namespace
}  // namespace mayfly
