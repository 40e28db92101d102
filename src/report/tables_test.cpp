#include "report/tables.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

std::vector<std::string> table_names(const Json& report) {
  std::vector<std::string> all;
  for (const CsvTable& table : tables(report)) all.push_back(table.name);
  return all;
}

std::string text_of(const Json& report, const std::string& name) {
  for (const CsvTable& table : tables(report))
    if (table.name == name) return table.text;
  return {};
}

using TableNames = std::vector<std::string>;

Json tabled_view(const std::string& name) {
  Json json = Json::parse(R"({
    "machines": [{"name": "w1", "type": "g4dn.xlarge", "market": "spot", "usd_per_hour": 0.2, "from_s": 0.9,
                  "to_s": null, "end": null, "notice_s": 10.125}],
    "counts": {"t_s": [0, 0.9], "series": [{"type": "g4dn.xlarge", "market": "spot", "n": [0, 2]}], "used": [0, 1]},
    "progress": {"t_s": [0, 52], "samples": [0, 48000]},
    "losses": {"t_s": [1], "loss": [2.25]},
    "validation": {"t_s": [52], "loss": [0.5], "accuracy": [null]},
    "money": {"t_s": [0, 52], "usd": [0, 0.0012], "usd_per_hour": [0, 0.4]},
    "happenings": [{"id": 17, "t_s": 11.2, "kind": "lost", "text": "w2 lost, \"killed\"", "why": null, "worker": "w2",
                    "stall_s": 0.4, "cost_usd": 0.0001}],
    "scorecard": [{"what": "time", "promised": 60, "predicted": 50, "delivered": 52.1, "unit": "s", "kept": true}]})");
  json["name"] = name;
  return json;
}

TEST(CsvText, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_text("plain text"), "plain text");
  EXPECT_EQ(csv_text("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_text("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_text("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_text(""), "");
}

TEST(CsvText, TakesFormulasTheirMeaning) {
  EXPECT_EQ(csv_text("=1+1"), "'=1+1");
  EXPECT_EQ(csv_text("+1"), "'+1");
  EXPECT_EQ(csv_text("-1"), "'-1");
  EXPECT_EQ(csv_text("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_text("\t=1"), "'\t=1");
  EXPECT_EQ(csv_text("=HYPERLINK(\"x\",\"y\")"), "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
  EXPECT_EQ(csv_text("a=1"), "a=1");
}

TEST(Tables, OfOneViewHaveNoPrefix) {
  EXPECT_EQ(table_names({{"views", {tabled_view("run")}}}),
            (TableNames{"machines", "counts", "progress", "losses", "validation", "money", "happenings", "scorecard"}));
}

TEST(Tables, OfSeveralViewsHaveTheirNames) {
  const Json report{{"views",
                     {{{"name", "../a b"}, {"losses", {{"t_s", {1}}, {"loss", {2}}}}},
                      {{"name", "../a b"}, {"losses", {{"t_s", {1}}, {"loss", {2}}}}}}}};
  EXPECT_EQ(table_names(report), (TableNames{"a-b-losses", "a-b-2-losses"}));
}

TEST(Tables, HaveAHeaderUnitsAndEmptyCellsForWhatIsNotKnown) {
  const Json report{{"views", {tabled_view("run")}}};
  EXPECT_EQ(text_of(report, "machines"),
            "name,type,market,usd_per_hour,from_s,to_s,end,notice_s\r\n"
            "w1,g4dn.xlarge,spot,0.2,0.9,,,10.125\r\n");
  EXPECT_EQ(text_of(report, "counts"),
            "time_s,machines training,machines held g4dn.xlarge spot\r\n"
            "0,0,0\r\n"
            "0.9,1,2\r\n");
  EXPECT_EQ(text_of(report, "happenings"),
            "id,time_s,kind,worker,text,why,stall_s,cost_usd\r\n"
            "17,11.2,lost,w2,\"w2 lost, \"\"killed\"\"\",,0.4,0.0001\r\n");
  EXPECT_EQ(text_of(report, "validation"), "time_s,loss,accuracy\r\n52,0.5,\r\n");
  EXPECT_EQ(text_of(report, "scorecard"), "what,unit,promised,predicted,delivered,kept\r\ntime,s,60,50,52.1,true\r\n");
}

TEST(Tables, NegativeNumbersAreNumbers) {
  const Json report{{"views", {{{"losses", {{"t_s", {1}}, {"loss", {-0.5}}}}}}}};
  EXPECT_EQ(text_of(report, "losses"), "time_s,loss\r\n1,-0.5\r\n");
}

TEST(PlanOptions, SayWhichTheyAre) {
  const auto option = [](double time, double cost) {
    return Json{{"cluster",
                 {{{"type", "p3.2xlarge"}, {"market", "spot"}, {"zone", "us-east-1a"}, {"n", 2}},
                  {{"type", "g4dn.xlarge"}, {"market", "spot"}, {"zone", nullptr}, {"n", 1}}}},
                {"servers", {{{"type", "m5.xlarge"}, {"market", "on-demand"}, {"zone", nullptr}, {"n", 1}}}},
                {"time_s", time},
                {"cost_usd", cost}};
  };
  Json plan = option(10, 2);
  plan["time_s_p10"] = 9;
  plan["runners_up"] = Json::array({option(11, 3)});
  plan["frontier"] = {
      {{"functions", 8}, {"memory_mib", 1024}, {"platform", "=lambda"}, {"time_s", 5}, {"cost_usd", 4}}};
  plan["considered"] = {option(10, 2), nullptr, Json::object()};
  const std::string cluster = "2 x p3.2xlarge spot us-east-1a + 1 x g4dn.xlarge spot,1 x m5.xlarge on-demand";
  EXPECT_EQ(text_of({{"plan", plan}}, "plan-options"),
            "which,cluster,servers,platform,functions,memory_mib,time_s,time_s_p10,time_s_p90,cost_usd,cost_usd_p10,"
            "cost_usd_p90,cost_usd_p50,cost_usd_p95,deadline_probability\r\n"
            "chosen," +
                cluster + ",,,,10,9,,2,,,,,\r\n" + "runner-up," + cluster + ",,,,11,,,3,,,,,\r\n" +
                "frontier,,,'=lambda,8,1024,5,,,4,,,,,\r\n" + "considered," + cluster + ",,,,10,,,2,,,,,\r\n");
}

TEST(PlanOptions, OfNoPlanAreTheNearest) {
  const Json plan{{"feasible", false}, {"nearest", {{"time_s", 5}, {"cost_usd", 4}}}};
  EXPECT_NE(text_of({{"plan", plan}}, "plan-options").find("\r\nnearest,,,,,,5,"), std::string::npos);
}

TEST(Replay, HasOneRowForEachPolicyAndEachInterval) {
  const Json policy{{"policy", "liveput"},
                    {"samples", 1000},
                    {"cost_usd", 1.5},
                    {"share", {{"useful", 0.75}, {"idle", 0.25}}},
                    {"intervals", {{{"t_s", 0}, {"available", 4}, {"data_parallel", 2}, {"stages", 2}}}},
                    {"progress", {{"t_s", {0, 60}}, {"samples", {0, 1000}}}}};
  const Json report{{"replay", {{"policies", {policy}}}}};
  EXPECT_EQ(table_names(report), (TableNames{"replay-policies", "replay-intervals", "replay-progress"}));
  EXPECT_EQ(text_of(report, "replay-policies"),
            "policy,samples,samples_per_s,cost_usd,time_s,machine_hours,changes,preemptions,share_of_ideal,finished,"
            "share_useful,share_redundant,share_reconfigure,share_lost,share_idle\r\n"
            "liveput,1000,,1.5,,,,,,,0.75,,,,0.25\r\n");
  EXPECT_EQ(text_of(report, "replay-intervals"),
            "policy,time_s,available,data_parallel,stages,extra\r\nliveput,0,4,2,2,\r\n");
  EXPECT_EQ(text_of(report, "replay-progress"), "policy,time_s,samples\r\nliveput,0,0\r\nliveput,60,1000\r\n");
}

TEST(StallTable, HasTheIntervals) {
  const Json stall{{"seconds", 0.02}, {"seconds_low", -0.01}, {"seconds_high", 0.03}, {"share", 0.2}};
  EXPECT_EQ(text_of({{"profile", {{"stalls", {{"prep", stall}, {"fetch", "none"}}}}}}, "stalls"),
            "stall,time_s,time_s_low,time_s_high,share\r\nprep,0.02,-0.01,0.03,0.2\r\n");
}

TEST(Tables, WrongKindsOfValuesMakeNoTable) {
  for (const Json& report : {Json(), Json("text"), Json::array({1}), Json{{"views", 5}, {"plan", "x"}},
                             Json{{"views", {nullptr, 3, {{"counts", {1}}, {"machines", {1, "x"}}}}}},
                             Json{{"replay", {{"policies", {nullptr, 1}}}}, {"profile", {{"stalls", {1}}}}}})
    EXPECT_TRUE(tables(report).empty()) << report;
}

}  // namespace
}  // namespace mayfly
