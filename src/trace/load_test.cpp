#include "trace/load.h"

#include <gtest/gtest.h>

#include "trace/parcae_files.h"
#include "trace/write.h"

namespace mayfly {
namespace {

Trace parsed(std::string_view text, const TraceOptions& options = {}) {
  auto trace = parse_trace(text, "f.x", options);
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? *trace : Trace{.series = {Series{}}};
}

std::string error_of(std::string_view text, const TraceOptions& options = {}) {
  const auto trace = parse_trace(text, "f.x", options);
  return trace ? "" : trace.error().message;
}

std::vector<std::array<double, 4>> changes_of(const Series& series) {
  std::vector<std::array<double, 4>> rows;
  for (const Change& c : series.changes)
    rows.push_back({c.time.count(), double(c.added), double(c.removed), double(c.available)});
  return rows;
}
using Rows = std::vector<std::array<double, 4>>;

TEST(Events, KeepTheirTimesAndTheStaysOfMachines) {
  const Trace trace = parsed("480000,add,a\n480000,add,b\n540000,remove,a\n540000,add,c\n600000,remove,b\n");
  EXPECT_EQ(trace.observation, Observation::held);
  EXPECT_EQ(trace.duration, Seconds(660));
  const Series& series = trace.series[0];
  EXPECT_EQ(changes_of(series), (Rows{{480, 2, 0, 2}, {540, 1, 1, 2}, {600, 0, 1, 1}}));
  // The last figure is the rank among the losses.
  const std::vector<Stay> stays{{Seconds(480), Seconds(540), true, 0},
                                {Seconds(480), Seconds(600), true, 1},
                                {Seconds(540), Seconds(660), false, 0}};
  EXPECT_EQ(series.stays, stays);
  EXPECT_EQ(available_at(series, Seconds(479)), 0);
}

TEST(Events, NameTheLineTheValueSeenAndTheValueWanted) {
  EXPECT_EQ(error_of("0,add,a\n0,add,a\n"), "f.x:2: add 'a', which is there already; want a machine that is not");
  EXPECT_EQ(error_of("0,add,a\n\n5,remove,b\n"), "f.x:3: remove 'b', which is not there; want one added before");
  EXPECT_EQ(error_of("5,add,a\n4,add,b\n"), "f.x:2: time 4 ms goes back, want 5 or later");
  EXPECT_EQ(error_of("0,add,a\n1,grow,b\n"), "f.x:2: event 'grow', want add or remove");
  EXPECT_EQ(error_of("0,add,a\n1,add\n"), "f.x:2: '1,add', want ms,add|remove,machine");
  EXPECT_EQ(error_of("0,add,a\nnan,add,b\n"), "f.x:2: time 'nan', want milliseconds since the start");
  EXPECT_EQ(error_of("0,add,a\n1,add,\n"), "f.x:2: 'add' without a machine's name");
}

TEST(Counts, StepByStepAtOneMoment) {
  const Trace trace = parsed("0,1\n0,2\n60000,2\n120000,3\n120000,2\n120000,1\n");
  EXPECT_EQ(changes_of(trace.series[0]), (Rows{{0, 2, 0, 2}, {120, 1, 2, 1}}));
  EXPECT_EQ(trace.duration, Seconds(180));
  EXPECT_EQ(parsed("0,4\n90000,4\n", {.gap = Seconds(30)}).duration, Seconds(120));
  EXPECT_EQ(error_of("0,1\n1,-1\n"), "f.x:2: count '-1', want 0 to 1000000");
  EXPECT_EQ(error_of("0,1\n1,1.5\n"), "f.x:2: count '1.5', want 0 to 1000000");
}

TEST(Counts, MoreThanAnIntHoldsAtOneMomentIsRefused) {
  std::string text;
  for (int i = 0; i < 2100; ++i) text += "0,0\n0,1000000\n";
  EXPECT_EQ(error_of(text), "f.x: more than 1000000000 machines came or went at one moment");
}

// A last moment at the limit of 10^12 s lasts a gap longer, which no trace that mayfly writes could say.
TEST(Counts, WhatLastsLongerThanATraceMayIsRefused) {
  const auto trace = parse_trace("1000000000000000,0", "t.csv", {.format = "counts"});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("lasts"), std::string::npos) << trace.error().message;
}

TEST(Dates, GiveProbesWithTheUsualDistanceAsGap) {
  const Trace trace = parsed(
      "\xef\xbb\xbf"
      "date,availability\r\n2023-02-15 22:08:16,0\r\n2023-02-15 22:11:31,1\r\n2023-02-15 22:14:46,1\r\n");
  EXPECT_EQ(trace.observation, Observation::probe);
  EXPECT_EQ(trace.gap, Seconds(195));
  EXPECT_EQ(trace.duration, Seconds(585));
  EXPECT_EQ(trace.start_unix, 1676498896);
  EXPECT_EQ(changes_of(trace.series[0]), (Rows{{0, 0, 0, 0}, {195, 1, 0, 1}}));
  EXPECT_EQ(error_of("2023-02-15 22:08:16,0\n2023-02-15 22:08:16,1\n"),
            "f.x:2: time '2023-02-15 22:08:16', want one after the row before");
  EXPECT_EQ(error_of("date,count\n"), "f.x: no rows, want date,count");
}

TEST(Zones, AreOneSeriesEach) {
  const std::string text = "time,za,zb\n2025-10-04T00:10:00Z,16,0\n2025-10-04T00:20:00Z,8,3\n";
  const Trace trace = parsed(text);
  ASSERT_EQ(trace.series.size(), 2u);
  EXPECT_EQ(trace.series[1].zone, "zb");
  EXPECT_EQ(changes_of(trace.series[0]), (Rows{{0, 16, 0, 16}, {600, 0, 8, 8}}));
  EXPECT_EQ(changes_of(trace.series[1]), (Rows{{0, 0, 0, 0}, {600, 3, 0, 3}}));
  const Trace chosen = parsed(text, {.type = "a3", .zone = "zb"});
  ASSERT_EQ(chosen.series.size(), 1u);
  EXPECT_EQ(chosen.series[0].type, "a3");
  EXPECT_EQ(error_of(text, {.zone = "zc"}), "f.x: no zone 'zc' in it (did you mean 'za'?); want for example 'za'");
  EXPECT_EQ(error_of("time,za,zb\n2025-10-04T00:10:00Z,16\n"), "f.x:2: 2 columns, want 3 as in the first row");
  EXPECT_EQ(error_of("time,za,za\n"), "f.x:1: zone 'za', want a name of its own");
}

// The third reading is dated before the second line's copy of the first: it replaces that.
TEST(Gcloud, ANewerLineReplacesWhatWasWrittenAhead) {
  const Trace trace = parsed(
      "2021-12-10, 13:07:45, 80\n2021-12-10, 13:08:45, 80\n2021-12-10, 13:08:30, 70\n2021-12-10, 13:09:30, 70\n");
  EXPECT_EQ(changes_of(trace.series[0]), (Rows{{0, 80, 0, 80}, {45, 0, 10, 70}}));
  EXPECT_EQ(trace.duration, Seconds(165));
  EXPECT_EQ(error_of("2021-12-10, 13:07:45, 80\n2021-12-10, 13:05:44, 80\n"),
            "f.x:2: time '13:05:44' goes back by 121 s, want 120 at most");
}

TEST(ParcaeReplay, AddsAndRemovesNamedMachines) {
  const Trace trace = parsed(R"(# a comment
[0, "add", {"nodes": ["a", "b"], "duration": 30000, "x_strategy": [8, 2]}]
[30000, "no-op", {"nodes": [], "duration": 30000}]
[60000, "migration", {"nodes": [], "duration": 30000}]
[90000, "remove", {"nodes": ["b"], "duration": 30000}]
)");
  EXPECT_EQ(trace.gap, Seconds(30));
  EXPECT_EQ(trace.duration, Seconds(120));
  EXPECT_EQ(changes_of(trace.series[0]), (Rows{{0, 2, 0, 2}, {90, 0, 1, 1}}));
  EXPECT_EQ(trace.series[0].stays.size(), 2u);
  EXPECT_EQ(error_of("[0, \"remove\", {\"nodes\": [\"a\"]}]"),
            "f.x:1: remove 'a', which is not there; want one added before");
  EXPECT_EQ(error_of("[0, \"add\", {\"nodes\": [\"a\"]}]\n[1, \"ad"), "f.x:2: a quote that is not closed");
}

TEST(ParcaeChoices, KeepTheFilesOwnChangesAndChoices) {
  const std::string text = R"([{"interval": [0, 3, 0], "duration": 60000, "throughut-opt": [8, 2],
  "liveput-truth": [7, 2], "liveput-predict": [6, 2]},
 {"interval": [3, 0, 0], "duration": 60000}, {"interval": [3, 1, 2], "duration": 60000}])";
  const Trace trace = parsed(text);
  EXPECT_EQ(changes_of(trace.series[0]), (Rows{{0, 3, 0, 3}, {120, 1, 2, 2}}));
  EXPECT_EQ(trace.duration, Seconds(180));
  const auto choices = parse_parcae_choices(text, "f.x");
  ASSERT_TRUE(choices);
  EXPECT_EQ((*choices)[0].truth, (std::array{7, 2}));
  EXPECT_EQ(error_of("[{\"interval\": [0, 3, 0], \"duration\": 1},\n{\"interval\": [4, 0, 0], \"duration\": 1}]"),
            "f.x:2: interval 1 starts with 4 machines, want 3 as the one before left");
}

TEST(GapJson, NeedsAWordOnWhatOneMeans) {
  const std::string text = R"({"metadata": {"gap_seconds": 600}, "data": [0, 1, 1, 0], "prices": [1, 1, 2.5, 1]})";
  EXPECT_EQ(error_of(text),
            "f.x:1: data: nothing says whether 1 means available or preempted; want metadata.polarity or --polarity");
  const Trace trace = parsed(text, {.preempted = true});
  EXPECT_EQ(changes_of(trace.series[0]), (Rows{{0, 1, 0, 1}, {600, 0, 1, 0}, {1800, 1, 0, 1}}));
  EXPECT_EQ(changes_of(parsed(text, {.preempted = false}).series[0]),
            (Rows{{0, 0, 0, 0}, {600, 1, 0, 1}, {1800, 0, 1, 0}}));
  const std::vector<PricePoint> prices{{Seconds(0), {1}}, {Seconds(1200), {2.5}}, {Seconds(1800), {1}}};
  EXPECT_EQ(trace.series[0].prices, prices);
  EXPECT_EQ(trace.duration, Seconds(2400));
  EXPECT_EQ(error_of(text, {.gap = Seconds(60), .preempted = true}),
            "f.x: the file's own gap is 600 s, want no other (60 s)");
  EXPECT_EQ(error_of(R"({"metadata": {"polarity": "preempted"}, "data": [0, 2]})"),
            "f.x:1: data[1]: 2, want 0 or 1 where 1 means preempted");
  EXPECT_EQ(error_of(R"({"metadata": {}, "data": [], "prices": [-1]})"),
            "f.x:1: price -1, want a price of 0 or more USD/h");
  EXPECT_EQ(error_of("{\"data\": [1,\nNaN]}"), "f.x:2: 'NaN', want a whole number of 0 or more");
}

TEST(SpotHistory, IsOneSeriesOfPricesPerTypeAndZone) {
  const auto record = [](const char* zone, const char* price, const char* time, const char* product) {
    return fmt::format(
        R"({{"AvailabilityZone": "{}", "InstanceType": "p3.2xlarge", "ProductDescription": "{}", "SpotPrice": "{}",
"Timestamp": "{}"}})",
        zone, product, price, time);
  };
  const Trace trace =
      parsed("{\"SpotPriceHistory\": [" + record("b", "1.5", "2026-01-01T01:00:00+00:00", "Linux/UNIX") + "," +
             record("a", "1.2", "2026-01-01T02:00:00.000Z", "Linux/UNIX") + "," +
             record("a", "1.1", "2026-01-01T00:00:00Z", "Linux/UNIX") + "," +
             record("a", "9.9", "2026-01-01T00:00:00Z", "Windows") + "]}");
  ASSERT_EQ(trace.series.size(), 2u);
  const std::vector<PricePoint> prices{{Seconds(0), {1.1}}, {Seconds(7200), {1.2}}};
  EXPECT_EQ(trace.series[0].prices, prices);
  EXPECT_EQ(trace.series[1].zone, "b");
  EXPECT_EQ(trace.duration, Seconds(7260));
  EXPECT_EQ(error_of("{\"SpotPriceHistory\": [\n" + record("a", "-1", "2026-01-01T00:00:00Z", "Linux/UNIX") + "]}"),
            "f.x:2: SpotPrice '-1', want a price above 0");
}

TEST(Journal, TurnsWorkersIntoStays) {
  const std::string text = R"({"format": "mayfly-journal/1", "job": "j"}
{"t_s": 0, "event": "joined", "worker": "w1", "type": "p3.2xlarge", "zone": "a"}
{"t_s": 0, "command": "rent", "n": 2}
{"t_s": 5, "event": "joined", "worker": "w2", "type": "p3.2xlarge", "zone": "b"}
{"t_s": 65.5, "event": "lost", "worker": "w1"}
{"t_s": 100, "event": "step")";
  const Trace trace = parsed(text);
  ASSERT_EQ(trace.series.size(), 2u);
  EXPECT_EQ(trace.series[0].stays, (std::vector<Stay>{{Seconds(0), Seconds(65.5), true}}));
  EXPECT_EQ(trace.duration, Seconds(125.5));
  EXPECT_EQ(error_of(text + "\n"), "f.x:6: the file ends, want '}'");
  EXPECT_EQ(error_of("{\"format\": \"mayfly-journal/2\"}\n"),
            "f.x:1: format: 'mayfly-journal/2', want 'mayfly-journal/1'");
}

TEST(MayflyTrace, ComesBackAsItWasWritten) {
  const Trace trace{.name = "a \"b\"",
                    .observation = Observation::probe,
                    .gap = Seconds(0.1),
                    .duration = Seconds(1000.7),
                    .start_unix = 1.7e9 + 0.25,
                    .series = {{.type = "t",
                                .zone = "z",
                                .changes = {{Seconds(0), 2, 0, 2}, {Seconds(1.0 / 3), 1, 2, 1}},
                                .prices = {{Seconds(0), {0.1}}, {Seconds(9), {1e-7}}},
                                .stays = {{Seconds(0), Seconds(1.0 / 3), true}}},
                               {}}};
  const auto again = parse_trace(mayfly_trace_text(trace), "f.x");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, trace);
}

TEST(MayflyTrace, RefusesWhatCannotBe) {
  const auto with = [](std::string_view series) {
    return fmt::format("{{\"format\": \"mayfly-trace/1\", \"gap_s\": 1, \"duration_s\": 10, \"series\": [{{{}}}]}}",
                       series);
  };
  EXPECT_EQ(error_of(with(R"("changes": [[0, 1, 2]])")), "f.x:1: -1 machines left at 0 s, want 0 to 1000000");
  EXPECT_EQ(error_of(with(R"("changes": [[1, 1, 0], [1, 1, 0]])")), "f.x:1: time 1, want above 1");
  EXPECT_EQ(error_of(with(R"("changes": [[11, 1, 0]])")),
            "f.x:1: duration_s: 10, want 11 or more: something happens then");
  EXPECT_EQ(error_of(with(R"("stays": [[5, 1, true]])")),
            "f.x:1: a stay from 5 to 1 s, want an end that is not before");
  EXPECT_EQ(error_of(with(R"("prices": [[0, -1]])")), "f.x:1: -1, want a price of 0 or more USD/h");
  EXPECT_EQ(error_of(with(R"("pieces": [])")), "f.x:1: pieces: unknown key (did you mean 'prices'?)");
}

TEST(Files, OfNoKnownKindAreRefused) {
  EXPECT_EQ(error_of(""), "f.x:1: empty file");
  EXPECT_EQ(error_of("\n \n# nothing\n"), "f.x:1: empty file");
  EXPECT_EQ(error_of(std::string_view("0,1\n\0", 5)), "f.x:2: binary file, want text");
  EXPECT_EQ(error_of("0,add,\xff\n"), "f.x:1: not UTF-8, want text");
  EXPECT_NE(error_of("hello\n").find("not a trace"), std::string::npos);
  EXPECT_NE(error_of("{\"format\": \"mayfly-plan/1\"}").find("'mayfly-plan/1', want 'mayfly-trace/1'"),
            std::string::npos);
  EXPECT_NE(error_of("0,1", {.format = "event"}).find("did you mean 'events'"), std::string::npos);
}

TEST(Writers, GiveBackEventsAndCounts) {
  const Trace trace = parsed("0,add,x\n60000,add,y\n90000,remove,x\n");
  EXPECT_EQ(*events_text(trace), "0,add,node1\n60000,add,node2\n90000,remove,node1\n");
  EXPECT_EQ(*counts_text(trace), "0,1\n60000,2\n90000,1\n");
  EXPECT_EQ(parsed(*counts_text(parsed("0,1\n", {.gap = Seconds(600)}))).duration, Seconds(600));
  EXPECT_EQ(events_text(parsed("0,1\n")).error().message,
            "only counts machines, want a trace that names them (or --to counts)");
}

}  // namespace
}  // namespace mayfly
