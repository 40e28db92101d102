#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/document.h"
#include "base/file.h"
#include "base/least_squares.h"
#include "base/table.h"
#include "base/text.h"
#include "base/units.h"

namespace mayfly {
namespace {

TEST(Units, MultiplyIntoWhatTheyMean) {
  EXPECT_DOUBLE_EQ((UsdPerHour{3.6} * Seconds(1800)).value, 1.8);
  EXPECT_DOUBLE_EQ((megabytes(10) / megabytes_per_second(4)).count(), 2.5);
  EXPECT_DOUBLE_EQ(gigabits_per_second(8).value, 1e9);
  EXPECT_DOUBLE_EQ((Samples{10} / Seconds(4)).value, 2.5);
}

TEST(Durations, AreReadAsPeopleWriteThem) {
  const std::vector<std::pair<const char*, double>> good{{"90s", 90},     {"15m", 900}, {"6h", 21600},  {"2d", 172800},
                                                         {"1h30m", 5400}, {"42", 42},   {"1.5h", 5400}, {"0", 0}};
  for (const auto& [text, seconds] : good) EXPECT_DOUBLE_EQ(parse_duration(text)->count(), seconds) << text;
  for (const char* bad : {"", "x", "5x", "-1", "1h-5m", "30m1h", "h", "1h30", "nan", "inf", "1e400", "5 m", "1e308d"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Durations, AreShownShort) {
  const std::vector<std::pair<double, const char*>> shown{{17.3, "17.3s"},  {90, "1m30s"},      {900, "15m"},
                                                          {5400, "1h30m"},  {21600, "6h"},      {172800, "2d"},
                                                          {180000, "2d2h"}, {INFINITY, "never"}};
  for (const auto& [seconds, text] : shown) EXPECT_EQ(format_duration(Seconds(seconds)), text);
}

TEST(Numbers, AreWholeFiniteAndNothingElse) {
  EXPECT_EQ(parse_number("1e3"), 1000);
  for (const char* bad : {"", "1x", "nan", "inf", "1e999", " 1", "0x10", "1,5"}) EXPECT_FALSE(parse_number(bad)) << bad;
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_FALSE(parse_integer("99999999999"));
}

TEST(Dates, AreCalendarDays) {
  EXPECT_EQ(*parse_date("1970-01-02"), 1);
  EXPECT_EQ(*parse_date("2022-09-01"), 19236);
  for (const char* bad : {"2022-13-01", "2023-02-29", "22-1-1", "2022/09/01", ""}) EXPECT_FALSE(parse_date(bad)) << bad;
}

TEST(Times, AreReadInTheFormsOfTheProviders) {
  // 2022-09-01 is day 19236; 07:10:55 is 25855 s into a day.
  const double expected = 19236.0 * 86400 + 25855;
  EXPECT_EQ(parse_time("2022-09-01T07:10:55Z"), expected);
  EXPECT_EQ(parse_time("2022-09-01 07:10:55"), expected);
  EXPECT_EQ(parse_time("2022-09-01T09:10:55+02:00"), expected);
  EXPECT_EQ(parse_time("2022-09-01T07:10:55.500Z"), expected + 0.5);
  EXPECT_EQ(format_time(expected), "2022-09-01T07:10:55Z");
  for (const char* bad : {"", "2022-09-01", "2022-09-01T24:00:00Z", "2022-02-30T00:00:00Z", "2022-09-01T07:10:55 UTC",
                          "2022-09-01T07:10:55.", "1969-12-31T23:59:59Z", "2022-09-01T07:10:5xZ"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

TEST(NearestWord, IsASlipOfTheKeysOrNothing) {
  const std::vector<std::string> words{"g3.8xlarge", "g3.16xlarge", "p3.2xlarge"};
  EXPECT_EQ(nearest_word("g3.8xlrage", words), "g3.8xlarge");
  EXPECT_FALSE(nearest_word("m5.metal", words));
  EXPECT_FALSE(nearest_word(std::string(100000, 'g'), words));
}

struct Point {
  double x = 0;
  std::optional<double> y{};
  bool operator==(const Point&) const = default;
};
Result<Point> read_point(std::string_view text) {
  return read_document(text, "p.yaml", "point/1", [](Section& root) {
    return Point{root.number("x", Range::positive), root.maybe_number("why")};
  });
}

TEST(Documents, AreReadIntoStructs) {
  EXPECT_EQ(*read_point("format: point/1\nx: 2\n"), (Point{2, {}}));
  EXPECT_EQ(*read_point("{\"format\": \"point/1\", \"x\": 2.5,\n\t\"why\": 1}"), (Point{2.5, 1}));
}

TEST(Documents, NameTheLineTheValueSeenAndTheValueWanted) {
  const std::vector<std::pair<const char*, const char*>> wrong{
      {"format: point/1\nx: -2\n", "p.yaml:2: x: '-2', want a number above 0"},
      {"format: point/1\nx: nan\n", "p.yaml:2: x: 'nan', want a number above 0"},
      {"format: point/1\nx: \"2\"\n", "p.yaml:2: x: '2', want a number above 0"},
      {"format: point/1\nx: [1]\n", "p.yaml:2: x: a list, want a number above 0"},
      {"format: point/1\nwhy: 1\n", "p.yaml:1: x: missing"},
      {"format: point/1\nxx: 1\n", "p.yaml:2: xx: unknown key (did you mean 'x'?)"},
      {"format: point/1\nx: 1e300\n", "p.yaml:2: x: '1e300', want a number up to 10^18"},
      {"format: point/1\nx: \xff\n", "p.yaml:2: not UTF-8 text"},
      {"format: point/1\nx: 1\nwhi: 1\n", "p.yaml:3: whi: unknown key (did you mean 'why'?)"},
      {"format: point/1\nx: 1\nx: 1\n", "p.yaml:3: key 'x' stands twice (first on line 2)"},
      {"format: point/2\nx: 1\n", "p.yaml:1: format: 'point/2', want 'point/1'"},
      {"x: 1\n", "p.yaml:1: format: missing; want 'format: point/1' (is this a file of another kind?)"},
      {"- 1\n", "p.yaml:1: a list, want a mapping"},
      {"", "p.yaml:1: empty file"},
      {"# only\n", "p.yaml:1: nothing but comments"},
      {"format: point/1\n---\nx: 1\n", "p.yaml: more than one document, want one"},
  };
  for (const auto& [text, message] : wrong) {
    const auto result = read_point(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().message, message);
  }
  EXPECT_FALSE(read_point("format: point/1\nx: {\n"));
  EXPECT_FALSE(read_point(std::string(100000, '[')));
  EXPECT_FALSE(read_point(std::string("x\0y", 3)));
}

template <class T>
std::string message(const Result<T>& result) {
  return result ? "no error" : result.error().message;
}

TEST(Documents, AliasesDoNotUnfoldWithoutEnd) {
  std::string bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j > 0 ? ",*a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  const auto result = parse_document(bomb, "bomb.yaml");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "bomb.yaml:5: aliases that unfold into more than 100000 values");
}

// 2000 copies of 64 kB would be 131 MB.
TEST(Documents, ALongTextIsNotCopiedWithoutEnd) {
  std::string bomb = "a: &a " + std::string(1 << 16, 'x') + "\nb:\n";
  for (int i = 0; i < 2000; ++i) bomb += "- *a\n";
  EXPECT_NE(message(parse_document(bomb, "bomb.yaml")).find("more than 100000 values"), std::string::npos);
}

TEST(Documents, AliasesDoNotNestWithoutEnd) {
  std::string tower = "a0: &a0 [1]\n";
  for (int i = 1; i < 150; ++i) tower += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  EXPECT_EQ(message(parse_document(tower, "tower.yaml")), "tower.yaml:100: nested too deeply");
}

TEST(Documents, AnAliasIsACopy) {
  const auto root = parse_document("a: &a {x: 1, y: [2, 3]}\nb: *a\n", "two.yaml");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("b")->find("y")->items.size(), 2u);
}

TEST(Documents, WholeNumbersGoUpToABillionItself) {
  const auto read = [](const std::string& text) {
    return read_document("n: " + text, "n.yaml", "", [](Section& root) { return root.integer("n"); });
  };
  EXPECT_EQ(read("1000000000").value_or(-1), 1'000'000'000);
  EXPECT_EQ(message(read("1000000001")), "n.yaml:1: n: '1000000001', want a whole number up to 10^9");
  EXPECT_EQ(message(read("2.5")), "n.yaml:1: n: '2.5', want a whole number up to 10^9");
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\tb\n\x1b[31mred\r\x07\x7f"), "a\tb\n\\x1b[31mred\\x0d\\x07\\x7f");
  EXPECT_EQ(printable("gr\u00fc\u00dfe \U0001f40c"), "gr\u00fc\u00dfe \U0001f40c");
  EXPECT_EQ(printable("\u009b2J"), "\\xc2\\x9b2J");
  EXPECT_EQ(printable("\x9b"
                      "2J\xff"
                      "fine"),
            "\\x9b2J\\xfffine");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable(""), "");
}

TEST(Files, AreWrittenWholeOrNotAtAll) {
  const auto folder = std::filesystem::temp_directory_path() / ("mayfly-files-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "a.txt";
  ASSERT_TRUE(save_text(path, "one"));
  ASSERT_TRUE(save_text(path, "two"));
  EXPECT_EQ(*load_text(path), "two");
  EXPECT_FALSE(save_text(folder / "none" / "a.txt", "x"));
  EXPECT_FALSE(load_text(folder));
  EXPECT_FALSE(load_text(folder / "missing"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(Files, ThatFailWhileBeingReadAreAnError) {
  const auto text = load_text("/proc/self/mem");  // opens, but nothing lies at its beginning
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message, "/proc/self/mem: reading failed");
}

TEST(Tables, AlignTheirColumns) {
  Table table({"NAME", ">N"});
  table.add({"a", "10"});
  table.add({"long", "5"});
  EXPECT_EQ(table.text("  "), "  NAME   N\n  a     10\n  long   5\n");
}

TEST(LeastSquares, SolvesAndRefuses) {
  // y = 1 + 2 x through three points.
  const std::vector<double> rows{1, 0, 1, 1, 1, 2};
  const std::vector<double> targets{1, 3, 5};
  const auto x = linear_least_squares(rows, 2, targets);
  ASSERT_TRUE(x.has_value());
  EXPECT_NEAR((*x)[0], 1, 1e-12);
  EXPECT_NEAR((*x)[1], 2, 1e-12);
  const std::vector<double> same{1, 2, 1, 2, 1, 2};
  EXPECT_FALSE(linear_least_squares(same, 2, targets));
}

TEST(LeastSquares, FitsACurveWithinBoundsAndKnowsItsError) {
  // y = 3 e^(-x / 2) with alternating noise of .01.
  FitProblem problem{.start = {1, 1}, .lower = {0, .1}, .upper = {10, 10}, .residuals = 40};
  problem.evaluate = [](std::span<const double> x, std::span<double> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double t = .1 * static_cast<double>(i);
      out[i] = x[0] * std::exp(-t / x[1]) - 3 * std::exp(-t / 2) - (i % 2 == 0 ? .01 : -.01);
    }
  };
  const auto fit = nonlinear_least_squares(problem);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->x[0], 3, .02);
  EXPECT_NEAR(fit->x[1], 2, .02);
  ASSERT_EQ(fit->covariance.size(), 4u);
  EXPECT_GT(fit->covariance[0], 0);
  EXPECT_LT(std::sqrt(fit->covariance[0]), .02);
}

TEST(LeastSquares, HasNoCovarianceForWhatTheDataDoNotDetermine) {
  FitProblem problem{.start = {1, 1}, .residuals = 5};
  problem.evaluate = [](std::span<const double> x, std::span<double> out) {
    for (double& r : out) r = x[0] + x[1] - 3;
  };
  const auto fit = nonlinear_least_squares(problem);
  ASSERT_TRUE(fit.has_value());
  EXPECT_TRUE(fit->covariance.empty());
}

TEST(Text, Utf8IsWhatOthersTakeForIt) {
  for (const std::string_view good :
       {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(valid_utf8(good), good.size()) << printable(good);
  // Cut off, longer than need be, half of a pair, beyond the last character.
  for (const std::string_view bad :
       {"\xc3", "\xc0\x80", "\xe0\x9f\xbf", "\xf0\x89\x9e\x96", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"})
    EXPECT_EQ(valid_utf8(bad), 0u) << printable(bad);
}

}  // namespace
}  // namespace mayfly
