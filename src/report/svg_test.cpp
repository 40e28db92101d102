#include "report/svg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "support/text.h"

namespace mayfly {
namespace {

using support::has;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::vector<std::string> texts(double low, double high, AxisScale scale, int wanted) {
  const AxisTicks ticks = ticks_within(low, high, scale, wanted);
  std::vector<std::string> all;
  for (const double at : ticks.at) all.push_back(tick_text(at, scale, ticks));
  return all;
}

using Texts = std::vector<std::string>;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// 100 / 5 = 20 is 2 times a power of ten.
TEST(AxisTicks, StepIsOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_EQ(ticks_within(0, 100, AxisScale::real, 5).at, (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_DOUBLE_EQ(ticks_within(0, 0.3, AxisScale::real, 5).step, 0.1);  // 0.06 and up: 0.1
}

// 5400 s / 6 = 900 s, which is on the list of times as 15 minutes.
TEST(AxisTicks, TimesAreMinutesHoursAndDays) {
  EXPECT_EQ(texts(0, 5400, AxisScale::time, 6), (Texts{"0", "15m", "30m", "45m", "1h", "1h15m", "1h30m"}));
  EXPECT_EQ(texts(0, 3.0 * 86400, AxisScale::time, 3), (Texts{"0", "1d", "2d", "3d"}));
  EXPECT_EQ(texts(0, 2.5, AxisScale::time, 5), (Texts{"0", "0.5s", "1.0s", "1.5s", "2.0s", "2.5s"}));
  EXPECT_EQ(texts(0, 0.15, AxisScale::time, 3), (Texts{"0", "50ms", "100ms", "150ms"}));
}

TEST(AxisTicks, CountedThingsHaveNoTicksBetweenThem) {
  EXPECT_EQ(texts(0, 2, AxisScale::whole, 6), (Texts{"0", "1", "2"}));
  EXPECT_EQ(texts(0, 60000, AxisScale::whole, 3), (Texts{"0", "20k", "40k", "60k"}));
}

TEST(AxisTicks, MoneyAndSharesSayWhatTheyAre) {
  EXPECT_EQ(texts(0, 0.0012, AxisScale::usd, 3), (Texts{"$0", "$0.0005", "$0.0010"}));
  EXPECT_EQ(texts(0, 1, AxisScale::percent, 4), (Texts{"0%", "50%", "100%"}));  // 0.25 and up: 0.5
}

TEST(AxisTicks, OneValueGetsRoom) {
  const AxisTicks nothing = ticks_around(0, 0, AxisScale::real, 5);
  EXPECT_EQ(nothing.low, 0);
  EXPECT_EQ(nothing.high, 1);
  const AxisTicks one = ticks_around(50, 50, AxisScale::real, 5);
  EXPECT_LT(one.low, 50);
  EXPECT_GT(one.high, 50);
}

TEST(AxisTicks, AreFewForAnyRange) {
  for (const AxisScale scale : {AxisScale::whole, AxisScale::real, AxisScale::time, AxisScale::usd, AxisScale::percent})
    for (const double high : {5e-324, 1e-12, 0.3, 59.0, 86401.0, 1e9, 1e18})
      for (const double low : {0.0, -high, high * (1 - 1e-7)}) {
        const AxisTicks ticks = ticks_around(low, high, scale, 6);
        EXPECT_LE(ticks.at.size(), 9u) << low << ' ' << high;
        EXPECT_GE(ticks.at.size(), 2u) << low << ' ' << high;
        EXPECT_LT(ticks.low, ticks.high);
        for (const double at : ticks.at) EXPECT_LT(tick_text(at, scale, ticks).size(), 24u);
      }
}

TEST(FigureText, HasThreeDigits) {
  EXPECT_EQ(figure_text(559999, AxisScale::whole), "560k");
  EXPECT_EQ(figure_text(0.19876, AxisScale::real), "0.199");
  EXPECT_EQ(figure_text(0.0125, AxisScale::time), "12.5ms");
  EXPECT_EQ(figure_text(5400, AxisScale::time), "1h30m");
  EXPECT_EQ(figure_text(0.00123, AxisScale::usd), "$0.00123");
  EXPECT_EQ(figure_text(4.5, AxisScale::usd), "$4.50");
  EXPECT_EQ(figure_text(0.62, AxisScale::percent), "62%");
}

TEST(XmlText, EscapesMarkupAndBothQuotes) {
  EXPECT_EQ(xml_text("<script>alert(\"a\" & 'b')</script>"),
            "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;");
}

TEST(XmlText, ReplacesWhatXmlCannotHold) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(xml_text(std::string("a\0b", 3)), "a" + replaced + "b");
  EXPECT_EQ(xml_text("a\xFFz"), "a" + replaced + "z");
  EXPECT_EQ(xml_text("\xEF\xBF\xBF"), replaced);
  EXPECT_EQ(xml_text("two\nlines"), "two lines");
  EXPECT_EQ(xml_text("\xC3\xA9\xE2\x82\xAC"), "\xC3\xA9\xE2\x82\xAC");
}

TEST(Shortened, CutsBetweenCharactersAndFits) {
  EXPECT_EQ(shortened("short", 100, 10), "short");
  // Each character counts as 10 wide, and so does the ellipsis: two and it are 30.
  EXPECT_EQ(shortened("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 30, 10), "\xC3\xA9\xC3\xA9\u2026");
  EXPECT_LE(text_width(shortened(std::string(1000, 'W'), 200, 15), 15), 200);
}

/// A line over 0 to 10 s with values 0 to 100.
Chart small_chart() {
  return {.title = "T",
          .description = "D",
          .x = {.label = "time", .scale = AxisScale::time},
          .y = {.label = "samples", .scale = AxisScale::whole},
          .lines = {{.name = "line", .curve = {{0, 10}, {0, 100}}}}};
}

TEST(Chart, IsAStandaloneDocumentOnWhite) {
  const std::string text = svg(small_chart());
  EXPECT_TRUE(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 "));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  EXPECT_TRUE(has(text, "<title>T</title>\n<desc>D</desc>"));
  EXPECT_TRUE(has(text, "fill=\"#ffffff\"/>"));
  EXPECT_TRUE(has(text, "font-family=\"sans-serif\""));
  EXPECT_FALSE(has(text, " id="));
}

// Steps 0 -> 1 at 5 s: three spots, (0,0), (5,0), (5,1), as opposed to two on a straight line.
TEST(Chart, StepsHoldTheirValueUntilTheNext) {
  Chart chart = small_chart();
  chart.lines[0] = {.curve = {{0, 5}, {0, 1}}, .steps = true};
  const std::string text = svg(chart);
  const std::size_t from = text.find("<polyline points=\"") + 18;
  EXPECT_EQ(count(text.substr(from, text.find('"', from) - from), ","), 3u);
}

TEST(Chart, LeavesOutWhatIsNoFiniteNumber) {
  Chart chart = small_chart();
  chart.lines[0].curve = {{0, kNan, 2, 3, kInfinite}, {1, 2, kInfinite, 1e300, 5}};
  chart.rules = {{.name = "never", .at = kInfinite, .vertical = true}};
  chart.points = {{.curve = {{kNan}, {1}}}};
  chart.stack = ChartStack{.x = {0, kNan, 2}, .layers = {{.y = {kInfinite, -5}}, {}}};
  chart.bands = {{.x = {kNan}, .low = {1}, .high = {kInfinite}}};
  const std::string text = svg(chart);
  EXPECT_FALSE(has(text, "nan"));
  EXPECT_FALSE(has(text, "inf"));
  EXPECT_FALSE(has(text, "never"));
}

TEST(Chart, OfNothingShowsBareAxes) {
  const std::string text = svg(Chart{});
  EXPECT_TRUE(has(text, ">0.2</text>"));
  EXPECT_EQ(count(text, "<polyline"), 0u);
}

TEST(Chart, NamesRulesInTheMarginWithTheirValue) {
  Chart chart = small_chart();
  chart.rules = {{.name = "deadline", .at = 12, .vertical = true}, {.name = "target", .at = 90}};
  const std::string text = svg(chart);
  EXPECT_TRUE(has(text, ">deadline 12s</text>"));
  EXPECT_TRUE(has(text, ">target</text>"));
  EXPECT_TRUE(has(text, ">90</text>"));
  EXPECT_EQ(count(text, "\"7 4\""), 2u);
}

// 41 s would leave 10 of 41 for the data, which is less than a quarter.
TEST(Chart, PointsAtRulesThatAreFarOff) {
  Chart chart = small_chart();
  chart.rules = {{.name = "deadline", .at = 41, .vertical = true}, {.name = "budget", .at = 1e6}};
  const std::string text = svg(chart);
  EXPECT_TRUE(has(text, ">deadline 41s \u2192</text>"));
  EXPECT_TRUE(has(text, ">1M \u2191</text>"));
  EXPECT_EQ(count(text, "\"7 4\""), 0u);
}

/// Where the first text that reads so stands.
double height_of(const std::string& text, const std::string& words) {
  return std::stod(text.substr(text.rfind(" y=\"", text.find(">" + words + "<")) + 4));
}

// Wherever the rules are: in the middle, and where there is no room above or below.
TEST(Chart, KeepsTheNamesOfEqualRulesApartAndBesideThePlot) {
  for (const double at : {0.0, 50.0, 100.0}) {
    Chart chart = small_chart();
    chart.rules = {{.name = "a", .at = at}, {.name = "b", .at = at}, {.name = "c", .at = at}};
    const std::string text = svg(chart);
    std::vector<double> heights{height_of(text, "a"), height_of(text, "b"), height_of(text, "c")};
    std::sort(heights.begin(), heights.end());
    EXPECT_GE(heights[1] - heights[0], 36);
    EXPECT_GE(heights[2] - heights[1], 36);
    EXPECT_GE(heights[0], height_of(text, "100"));  // ticks
    EXPECT_LE(heights[2], height_of(text, "0"));
  }
}

TEST(Chart, EscapesEveryText) {
  const std::string bad = "<script>\"'&";
  Chart chart = small_chart();
  chart.title = chart.description = chart.x.label = chart.y.label = bad;
  chart.lines[0].name = bad;
  chart.rules = {{.name = bad, .at = 5, .vertical = true}, {.name = bad, .at = 50}};
  chart.points = {{.name = bad, .curve = {{1}, {1}}}};
  chart.stack = ChartStack{.x = {0, 1}, .layers = {{.name = bad, .y = {1, 1}}}};
  chart.bands = {{.name = bad, .x = {0, 1}, .low = {0, 0}, .high = {1, 1}}};
  const std::string text = svg(chart);
  EXPECT_FALSE(has(text, "<script"));
  EXPECT_EQ(count(text, "&lt;script&gt;&quot;&#39;&amp;"), 11u);  // the title is there twice
}

TEST(BarChart, PartsLieSideBySide) {
  const BarChart chart{.x = {.scale = AxisScale::percent},
                       .parts = {{.name = "a", .colour = "#111111"}, {.name = "b", .colour = "#eeeeee"}},
                       .rows = {{.label = "row", .values = {0.25, 0.75}}},
                       .shares = true};
  const std::string text = svg(chart);
  EXPECT_TRUE(has(text, ">25%</text>"));
  EXPECT_TRUE(has(text, ">75%</text>"));
  EXPECT_TRUE(has(text, "fill=\"#ffffff\">25%"));  // on dark
  EXPECT_TRUE(has(text, "fill=\"#000000\">75%"));  // on light
}

TEST(BarChart, TheLegendHasThePartsThatAreThere) {
  const std::string text = svg(BarChart{.parts = {{.name = "some"}, {.name = "none"}}, .rows = {{.values = {1, 0}}}});
  EXPECT_TRUE(has(text, ">some</text>"));
  EXPECT_FALSE(has(text, ">none</text>"));
}

TEST(BarChart, LeavesOutWhatHasNoLength) {
  const BarChart chart{.parts = {{.name = "a", .colour = "#123456"}},
                       .rows = {{.values = {kNan}},
                                {.values = {-1}},
                                {.values = {}},
                                {.values = {kInfinite}, .low = kNan, .high = kInfinite},
                                {.label = "<b>", .values = {1}, .note = "<i>"}},
                       .legend = false};
  const std::string text = svg(chart);
  EXPECT_EQ(count(text, "#123456"), 1u);
  EXPECT_FALSE(has(text, "nan"));
  EXPECT_FALSE(has(text, "inf"));
  EXPECT_TRUE(has(text, "&lt;b&gt;"));
  EXPECT_TRUE(has(text, "&lt;i&gt;"));
}

}  // namespace
}  // namespace mayfly
