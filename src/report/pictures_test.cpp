#include "report/pictures.h"

#include <gtest/gtest.h>

#include "support/text.h"

namespace mayfly {
namespace {

using support::has;

std::vector<std::string> picture_names(const Json& report) {
  std::vector<std::string> all;
  for (const Picture& picture : pictures(report)) all.push_back(picture.name);
  return all;
}

/// "" where there is none of the name.
std::string drawn(const Json& report, const std::string& name) {
  for (const Picture& picture : pictures(report))
    if (picture.name == name) return picture.svg;
  return {};
}

using PictureNames = std::vector<std::string>;

Json drawn_view(const std::string& name) {
  Json json = Json::parse(R"({
    "time_s": 52, "target_samples": 60000, "target_loss": 0.1, "deadline_s": 60, "budget_usd": 0.002,
    "on_demand_cost_usd": 0.0036,
    "counts": {"t_s": [0, 1, 12], "series": [{"type": "g4dn.xlarge", "market": "spot", "n": [0, 2, 1]},
                                             {"type": "p3.2xlarge", "market": "on-demand", "n": [0, 0, 1]}],
               "used": [0, 2, 2]},
    "progress": {"t_s": [0, 1, 52], "samples": [0, 0, 60000]},
    "losses": {"t_s": [1, 52], "loss": [2.3, 0.12]},
    "validation": {"t_s": [52], "loss": [0.2], "accuracy": [null]},
    "money": {"t_s": [0, 52], "usd": [0, 0.0012], "usd_per_hour": [0, 0.4]},
    "share": {"useful": 0.8, "redundant": 0, "reconfigure": 0.1, "lost": 0.02, "idle": 0.08},
    "predicted": {"time_s": 50, "time_s_p10": 45, "time_s_p90": 58, "cost_usd": 0.0011, "target_samples": 60000,
                  "loss": {"t_s": [0, 50], "loss": [2.3, 0.1]}}})");
  json["name"] = name;
  return json;
}

Json option(double time, double cost) {
  return {{"cluster", {{{"type", "g4dn.xlarge"}, {"market", "spot"}, {"zone", nullptr}, {"n", 2}}}},
          {"servers", Json::array()},
          {"time_s", time},
          {"cost_usd", cost}};
}

Json policy(const std::string& name) {
  return {{"policy", name},
          {"share", {{"useful", 0.9}, {"idle", 0.1}}},
          {"progress", {{"t_s", {0, 100}}, {"samples", {0, 5000}}}},
          {"money", {{"t_s", {0, 100}}, {"usd", {0, 3}}}}};
}

Json whole_report() {
  Json plan = option(6000, 2.6);
  plan["deadline_s"] = 6300;
  plan["frontier"] = {option(4700, 6), option(6000, 2.6)};
  plan["runners_up"] = Json::array({option(5600, 3.8)});
  const Json stall{{"seconds", 0.02}, {"seconds_low", 0.01}, {"seconds_high", 0.03}, {"share", 0.2}};
  return {{"format", "mayfly-report/1"},
          {"views", {drawn_view("survive")}},
          {"plan", plan},
          {"replay", {{"policies", {policy("checkpoint"), policy("liveput")}}, {"samples_target", 5000}}},
          {"profile", {{"stalls", {{"devices", 2}, {"step_s", 0.1}, {"interconnect", stall}, {"prep", stall}}}}}};
}

TEST(Pictures, ThereIsOneForEverythingAReportTells) {
  EXPECT_EQ(picture_names(whole_report()),
            (PictureNames{"timeline", "progress", "loss", "money", "machine-time", "frontier", "replay-progress",
                          "replay-machine-time", "replay-money", "stalls"}));
}

TEST(Pictures, ThereIsNoneOfWhatIsMissingOrEmpty) {
  EXPECT_EQ(picture_names({{"views", Json::array()}, {"plan", nullptr}}), PictureNames{});
  Json bare = drawn_view("bare");
  for (const char* key : {"losses", "validation", "money", "share", "predicted"}) bare[key] = nullptr;
  bare["counts"]["series"] = Json::array();
  EXPECT_EQ(picture_names({{"views", {bare}}}), (PictureNames{"progress"}));
}

TEST(Pictures, MachinesWithoutPricesHaveNoPictureOfMoney) {
  Json free = drawn_view("free");
  free["money"]["usd"] = {0, 0};
  EXPECT_EQ(drawn({{"views", {free}}}, "money"), "");
}

TEST(Timeline, NamesTypesWithTheirMarkets) {
  const std::string text = drawn(whole_report(), "timeline");
  EXPECT_TRUE(has(text, ">g4dn.xlarge spot</text>"));
  EXPECT_TRUE(has(text, ">p3.2xlarge on-demand</text>"));
  EXPECT_TRUE(has(text, ">training</text>"));
}

TEST(Timeline, ManyTypesShareTheLastColour) {
  Json many = drawn_view("many");
  for (int i = 0; i < 20; ++i)
    many["counts"]["series"].push_back({{"type", "t" + std::to_string(i)}, {"n", {1, 1, 1}}});
  const std::string text = drawn({{"views", {many}}}, "timeline");
  EXPECT_TRUE(has(text, ">t3</text>"));  // the two of the view, t0 to t3, others
  EXPECT_TRUE(has(text, ">others</text>"));
  EXPECT_FALSE(has(text, ">t4</text>"));
}

TEST(Progress, ShowsThePredictionTheTargetAndTheDeadline) {
  const std::string text = drawn(whole_report(), "progress");
  for (const char* part : {">trained<", ">predicted<", ">8 of 10 runs<", ">target<", ">60k<", ">deadline 1m<"})
    EXPECT_TRUE(has(text, part)) << part;
}

TEST(Progress, FurtherViewsAreFurtherLines) {
  Json replayed = drawn_view("survive");
  replayed["policy"] = "liveput";
  const std::string text = drawn({{"views", {drawn_view("survive"), replayed}}}, "progress");
  EXPECT_TRUE(has(text, ">survive</text>"));
  EXPECT_TRUE(has(text, ">survive (liveput)</text>"));
}

TEST(Progress, WithoutAPredictionStandsAlone) {
  Json alone = drawn_view("alone");
  alone["predicted"] = nullptr;
  const std::string text = drawn({{"views", {alone}}}, "progress");
  EXPECT_TRUE(has(text, ">trained<"));
  EXPECT_FALSE(has(text, ">predicted<"));
}

TEST(Frontier, ShowsTheChosenOptionInWords) {
  const std::string text = drawn(whole_report(), "frontier");
  EXPECT_TRUE(has(text, ">chosen: 2 x g4dn.xlarge spot</text>"));
  EXPECT_TRUE(has(text, ">runners-up<"));
  EXPECT_TRUE(has(text, ">deadline 1h45m<"));  // 6300 s
}

// 0.1 s less 0.02 s of interconnect and 0.02 s of prep.
TEST(Stalls, ComputeIsWhatIsLeft) {
  const std::string text = drawn(whole_report(), "stalls");
  EXPECT_TRUE(has(text, ">60%</text>"));
  EXPECT_TRUE(has(text, ">20%</text>"));
}

TEST(Stalls, OneDeviceHasNoInterconnect) {
  Json report = whole_report();
  report["profile"]["stalls"]["devices"] = 1;
  EXPECT_FALSE(has(drawn(report, "stalls"), "interconnect"));
}

TEST(Pictures, NamesOfADocumentAreEscaped) {
  const std::string bad = "<script>alert('1')</script>\n\"&";
  Json report = whole_report();
  report["views"][0]["name"] = report["replay"]["policies"][0]["policy"] = bad;
  report["views"][0]["counts"]["series"][0]["type"] = report["plan"]["cluster"][0]["type"] = bad;
  report["plan"]["profile"] = report["replay"]["profile"] = bad;
  for (const Picture& picture : pictures(report)) EXPECT_FALSE(has(picture.svg, "<script")) << picture.name;
  EXPECT_TRUE(has(drawn(report, "timeline"), "&lt;script&gt;"));
}

/// Replaces a value of the document, and then each of those within it, one at a time.
void spoil(const Json& whole, const Json::json_pointer& at, const Json& by) {
  Json report = whole;
  report[at] = by;
  for (const Picture& picture : pictures(report)) {
    EXPECT_TRUE(picture.svg.ends_with("</svg>\n"));
    EXPECT_FALSE(has(picture.svg, "nan") || has(picture.svg, "inf")) << at;
  }
  const Json& value = whole[at];
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items())
    spoil(whole, value.is_array() ? at / static_cast<std::size_t>(std::stoul(key)) : at / key, by);
}

TEST(Pictures, NoValueOfADocumentIsTrusted) {
  const Json report = whole_report();
  for (const Json& by : {Json(), Json("text"), Json(-1), Json(1e300), Json::array({nullptr}), Json::object()})
    for (const char* part : {"views", "plan", "replay", "profile"})
      spoil({{part, report[part]}}, Json::json_pointer() / part, by);
  for (const Json& by : {Json(), Json("text"), Json(1), Json::array()}) EXPECT_TRUE(pictures(by).empty());
}

}  // namespace
}  // namespace mayfly
