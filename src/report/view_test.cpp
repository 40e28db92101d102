#include "report/view.h"

#include <gtest/gtest.h>

#include "report/page.h"

namespace mayfly {
namespace {

Chronicle trained() {
  Chronicle chronicle;
  for (const char* line :
       {R"({"format":"mayfly-journal/1","job":"j"})",
        R"({"t_s":0,"event":"joined","worker":"w1","type":"g4dn.xlarge","market":"spot","usd_per_hour":0.36})",
        R"({"t_s":0,"command":"assign","generation":1,"data_parallel":1,"stages":1,"members":["w1"],"why":"fastest"})",
        R"({"t_s":1,"event":"committed","generation":1,"first_sample":0,"samples":10})",
        R"({"t_s":10,"event":"committed","generation":1,"first_sample":10,"samples":90})"})
    chronicle.add(line);
  return chronicle;
}

TEST(View, IsWhatTheJournalTellsWhereNothingElseIsKnown) {
  const Json view = view_json(trained(), {.name = "n"});
  EXPECT_EQ(view["name"], "n");
  EXPECT_EQ(view["samples"], 100);
  EXPECT_EQ(view["time_s"], 10);
  EXPECT_NEAR(view["cost_usd"].get<double>(), 0.001, 1e-12);
  for (const char* key : {"state", "phase", "deadline_s", "loss", "predicted", "on_demand_cost_usd"})
    EXPECT_TRUE(view[key].is_null()) << key;
  EXPECT_EQ(view["scorecard"], Json::array());
  EXPECT_EQ(view["counts"]["used"].back(), 1);
}

// The plan says 5 s, the run was told 10: it is stretched twofold, and so is the band.
TEST(View, APredictionIsStretchedAsTheRunIs) {
  const ViewContext context{.name = "n",
                            .status = RunStatus{.target = 100, .predicted_time = Seconds(10)},
                            .plan = Json::parse(R"({"format":"mayfly-plan/1","time_s":5,"time_s_p10":4,"time_s_p90":7,
                              "cost_usd":1,"saving":{"on_demand_cost_usd":3},"course":[{"time_s":2.5,"loss":0.5}]})")};
  const Json view = view_json(trained(), context);
  const Json& predicted = view["predicted"];
  EXPECT_EQ(predicted["time_s"], 10);
  EXPECT_EQ(predicted["time_s_p10"], 8);
  EXPECT_EQ(predicted["time_s_p90"], 14);
  EXPECT_EQ(predicted["loss"]["t_s"], Json::parse("[5.0]"));
  EXPECT_EQ(predicted["target_samples"], 100);
  // On demand the plan would have cost three times as much.
  EXPECT_NEAR(view["on_demand_cost_usd"].get<double>(), 0.003, 1e-12);
}

// 10 s of a machine that costs 0.526 USD/h on demand.
TEST(View, WithoutAPlanTheCatalogueSaysWhatTheHoursCostOnDemand) {
  const Catalog catalog{.types = {{.name = "g4dn.xlarge", .on_demand = Price{.rate = UsdPerHour{0.526}}}}};
  const Json view = view_json(trained(), {.catalog = &catalog});
  EXPECT_NEAR(view["on_demand_cost_usd"].get<double>(), 0.526 * 10 / 3600, 1e-12);
  const Json stretched = view_json(trained(), {.summary = {{"emulated", Json::object()}}, .catalog = &catalog});
  EXPECT_TRUE(stretched["on_demand_cost_usd"].is_null()) << "its prices are not the catalogue's";
}

// A spot machine for 10 s, its successor on demand for 30: by hand 10 s at 0.36 and 30 s at 0.526 USD/h are paid, and
// 40 s at 0.526 it would have been: 24 % were saved, not the 32 % that spot is cheaper.
TEST(View, WhatWasRentedOnDemandSavesNothing) {
  Chronicle chronicle = trained();
  for (const char* line :
       {R"({"t_s":10,"event":"lost","worker":"w1"})",
        R"({"t_s":10,"event":"joined","worker":"w2","type":"g4dn.xlarge","market":"on-demand","usd_per_hour":0.526})",
        R"({"t_s":40,"event":"committed","generation":1,"first_sample":100,"samples":90})"})
    chronicle.add(line);
  const Catalog catalog{.types = {{.name = "g4dn.xlarge", .on_demand = Price{.rate = UsdPerHour{0.526}}}}};
  const double paid = (0.36 * 10 + 0.526 * 30) / 3600;
  const double dear = 0.526 * 40 / 3600;
  const Json view = view_json(chronicle, {.catalog = &catalog});
  EXPECT_NEAR(view["cost_usd"].get<double>(), paid, 1e-12);
  EXPECT_NEAR(view["on_demand_cost_usd"].get<double>(), dear, 1e-12);
  // By a plan of two spot machines beside one server on demand: 0.72 and 0.1 USD/h, on demand 1.052 and 0.1.
  const ViewContext planned{.plan = Json::parse(R"({"time_s":3600,"cost_usd":0.82,"saving":{"on_demand_cost_usd":1.152},
      "cluster":[{"type":"g4dn.xlarge","market":"spot","n":2,"usd_per_hour":0.36}]})")};
  EXPECT_NEAR(view_json(chronicle, planned)["on_demand_cost_usd"].get<double>(), dear, 1e-12);
}

TEST(View, TheScorecardSetsPromisesAgainstTheSummary) {
  const ViewContext context{
      .status = RunStatus{.deadline = Seconds(8), .budget = Usd{1}, .target_loss = 0.5},
      .summary = Json::parse(R"({"end":"trained","time_s":10,"loss":0.4,"cost_usd":0.25,"missed":["deadline"]})")};
  const Json rows = view_json(trained(), context)["scorecard"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0],
            Json::parse(R"({"what":"time","promised":8.0,"predicted":null,"delivered":10.0,"unit":"s","kept":false})"));
  EXPECT_EQ(rows[1]["kept"], true);
  EXPECT_EQ(rows[1]["delivered"], 0.4);
  EXPECT_EQ(rows[2]["delivered"], 0.25);
}

TEST(View, NothingIsKeptOrBrokenBeforeTheEnd) {
  const Json rows = view_json(trained(), {.status = RunStatus{.deadline = Seconds(8)}})["scorecard"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0]["kept"].is_null());
}

TEST(Page, TextOfADocumentCannotLeaveItsPlace) {
  const std::string html = report_html({{"title", "</script><script>alert(1)</script>"}});
  EXPECT_EQ(html.find("</script><script>alert(1)"), std::string::npos);
  EXPECT_NE(html.find(R"({"title":"\u003c/script>\u003cscript>alert(1)\u003c/script>"}</script>)"), std::string::npos);
  EXPECT_NE(page().find(R"(type="application/json">null</script>)"), std::string_view::npos);
}

}  // namespace
}  // namespace mayfly
