#include "trace/stats.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/problems.h"
#include "trace/load.h"
#include "trace/parcae_files.h"

namespace mayfly {
namespace {

// 2 machines for 60 s, 3 for 60 s, 0 for 120 s: (120 + 180) / 240 = 1.25. Both losses of machines were one event.
TEST(TraceStats, AreWorkedOutByHand) {
  const Series series{.changes = {{Seconds(0), 2, 0, 2}, {Seconds(60), 1, 0, 3}, {Seconds(120), 0, 3, 0}},
                      .prices = {{Seconds(60), {1}}, {Seconds(120), {4}}}};
  const TraceStats stats = trace_stats(series, Seconds(240));
  EXPECT_DOUBLE_EQ(*stats.mean_available, 1.25);
  EXPECT_EQ(stats.min_available, 0);
  EXPECT_EQ(stats.max_available, 3);
  EXPECT_DOUBLE_EQ(stats.share_at_zero, 0.5);
  EXPECT_EQ(stats.preemption_events, 1);
  EXPECT_EQ(stats.instances_preempted, 3);
  EXPECT_EQ(stats.addition_events, 1);
  EXPECT_EQ(stats.instances_added, 3);
  EXPECT_EQ(stats.share_multi, 1.0);
  EXPECT_EQ(stats.share_to_zero, 1.0);
  EXPECT_FALSE(stats.lifetime);
  // 1 USD/h for 60 s and 4 for 120 s: 540 / 180 = 3.
  EXPECT_DOUBLE_EQ(stats.price->mean.value, 3);
  EXPECT_EQ(stats.price->most.value, 4);
}

TEST(TraceStats, CountNothingBeforeTheFirstObservation) {
  const TraceStats stats = trace_stats({.changes = {{Seconds(60), 2, 0, 2}}}, Seconds(120));
  EXPECT_EQ(stats.min_available, 0);
  EXPECT_DOUBLE_EQ(*stats.mean_available, 1);
  EXPECT_DOUBLE_EQ(stats.share_at_zero, 0.5);
  EXPECT_FALSE(stats.share_multi);
}

TEST(TraceStats, OfPricesAloneHaveNoMachines) {
  const TraceStats stats = trace_stats({.prices = {{Seconds(0), {2}}}}, Seconds(60));
  EXPECT_FALSE(stats.mean_available);
  EXPECT_EQ(stats.price->mean.value, 2);
}

// From 00:30 two machines: half an hour in hour 0, then one is lost at 01:30 after an hour of hour 1 with two, one.
// Hour 1 holds 0.5 * 2 + 0.5 * 1 = 1.5 machine-hours and one loss. The whole days in between add alike to every hour.
TEST(TraceStats, LossesFallIntoHoursOfTheDay) {
  const Series series{.changes = {{Seconds(0), 2, 0, 2}, {Seconds(3600), 0, 1, 1}}};
  const TraceStats stats = trace_stats(series, Seconds(5400), 1800);
  EXPECT_EQ(stats.losses_per_hour[0], 0);
  EXPECT_DOUBLE_EQ(*stats.losses_per_hour[1], 1 / 1.5);
  EXPECT_FALSE(stats.losses_per_hour[2]);
  const TraceStats longer = trace_stats(series, Seconds(5400 + 10 * 86400), 1800);
  EXPECT_DOUBLE_EQ(*longer.losses_per_hour[1], 1 / 11.5);
  EXPECT_EQ(longer.losses_per_hour[2], 0);
}

class PublishedTraces : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = support::shared_data();
    if (!data) GTEST_SKIP() << "the published traces are not here";
    folder_ = *data / "traces";
  }
  Trace load(const std::string& file) {
    auto trace = load_trace(folder_ / file);
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? *trace : Trace{.series = {Series{}}};
  }
  std::filesystem::path folder_;
};

// Published figures: 683 minutes, 177 machines added, 167 removed in 79 events, 16397 machine-minutes.
void expect_p3(const Trace& trace) {
  const TraceStats stats = trace_stats(trace);
  EXPECT_EQ(trace.duration, Seconds(683 * 60));
  int sum = 0;
  for (int minute = 0; minute < 683; ++minute) sum += available_at(trace.series[0], Seconds(minute * 60));
  EXPECT_EQ(sum, 16397);
  EXPECT_NEAR(*stats.mean_available, 24.0073, 5e-5);
  EXPECT_EQ(stats.instances_added, 177);
  EXPECT_EQ(stats.instances_preempted, 167);
  EXPECT_EQ(stats.addition_events, 83);
  EXPECT_EQ(stats.preemption_events, 79);
  EXPECT_EQ(stats.preemption_sizes, (std::map<int, long long>{{1, 39}, {2, 13}, {3, 15}, {4, 7}, {5, 1}, {6, 4}}));
  EXPECT_EQ(stats.min_available, 10);
  EXPECT_EQ(stats.max_available, 32);
}

TEST_F(PublishedTraces, P3IsTheSameInThreeFormats) {
  for (const char* file : {"bamboo/p3-trace.csv", "parcae/p3.csv", "parcae/bert/choices_p3.json"}) {
    SCOPED_TRACE(file);
    expect_p3(load(file));
  }
  const auto lifetime = trace_stats(load("bamboo/p3-trace.csv")).lifetime;
  ASSERT_TRUE(lifetime);
  EXPECT_NEAR(Hours(lifetime->mean).count(), 1.462, 5e-4);
  EXPECT_NEAR(Hours(lifetime->p50).count(), 0.983, 5e-4);
  EXPECT_EQ(lifetime->still_there, 10);
}

// Published of the segment 5.5-6.5 h: mean 27.483, 20 to 32 machines, 9 events that took 19.
TEST_F(PublishedTraces, SegmentsOfReplaysAreSlicesOfTheWhole) {
  const TraceStats replayed = trace_stats(load("parcae/bert/trace_hh_55_65.txt"));
  EXPECT_NEAR(*replayed.mean_available, 27.483, 5e-4);
  EXPECT_EQ(replayed.preemption_events, 9);
  EXPECT_EQ(replayed.instances_preempted, 19);
  const Series cut = slice(load("bamboo/p3-trace.csv").series[0], Seconds(5.5 * 3600), Seconds(6.5 * 3600));
  EXPECT_NEAR(*trace_stats(cut, Seconds(3600)).mean_available, *replayed.mean_available, 1e-9);
}

TEST_F(PublishedTraces, ChoicesOfTheFirstIntervalAreTheReleasedOnes) {
  const auto path = folder_ / "parcae/bert/choices_p3.json";
  const auto choices = parse_parcae_choices(*load_text(path), path.string());
  ASSERT_TRUE(choices) << choices.error().message;
  ASSERT_EQ(choices->size(), 683u);
  EXPECT_EQ(choices->front(),
            (ParcaeChoice{
                .added = 18, .duration = Seconds(60), .throughput_opt = {4, 4}, .truth = {4, 4}, .predict = {4, 4}}));
}

TEST_F(PublishedTraces, ProbesAndLogsLoad) {
  const Trace zones = load("skynomad/h100-16.csv");
  ASSERT_EQ(zones.series.size(), 3u);
  EXPECT_EQ(zones.observation, Observation::probe);
  EXPECT_EQ(zones.gap, Seconds(600));
  const Trace probes = load("skynomad/v100-1-us-east-1a.csv");
  EXPECT_EQ(probes.gap, Seconds(195));
  EXPECT_EQ(trace_stats(probes).max_available, 1);
  const TraceStats google = trace_stats(load("bamboo/gcloud-v100x1-east1c.txt"));
  EXPECT_EQ(google.min_available, 30);
  EXPECT_EQ(google.max_available, 80);
  EXPECT_EQ(load("bamboo/g4dn-trace.csv").series[0].changes[0].time, Seconds(480));
}

}  // namespace
}  // namespace mayfly
