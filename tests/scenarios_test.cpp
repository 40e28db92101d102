// scenarios_test [--rewrite]: every file of tests/scenarios gives the transcript below its line of dashes. With
// --rewrite the files are written anew; the difference is reviewed like any other change.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "faults/scenario.h"

namespace mayfly {
namespace {

constexpr std::string_view kRuler = "----\n";
bool rewrite = false;

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(MAYFLY_SOURCE_DIR) + "/tests/scenarios")) {
    if (entry.path().extension() == ".txt") all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

class Scenarios : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenarios, GiveTheirTranscript) {
  const auto text = load_text(GetParam());
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const auto scenario = parse_scenario(*text, GetParam().filename().string());
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const std::string head = text->substr(0, text->find(kRuler));
  const std::string answer = transcript(*scenario);
  if (rewrite) {
    ASSERT_TRUE(save_text(GetParam(), head + std::string(kRuler) + answer).has_value());
    return;
  }
  ASSERT_NE(head.size(), text->size()) << "no line of dashes";
  EXPECT_EQ(text->substr(head.size() + kRuler.size()), answer) << "scenarios_test --rewrite writes it anew";
}

INSTANTIATE_TEST_SUITE_P(Files, Scenarios, testing::ValuesIn(files()), [](const auto& file) {
  std::string word = file.param.stem().string();
  std::replace_if(word.begin(), word.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return word;
});

TEST(Scenario, ErrorsNameTheLineTheWordSeenAndTheWordWanted) {
  const auto error = [](const std::string& text) { return parse_scenario(text, "f").error().message; };
  EXPECT_EQ(error("shapes 1x1:9\n0 lost 1\n"), "f:2: 1, want a worker: w1");
  EXPECT_EQ(error("shapes 1x1\n"), "f:1: 1x1, want a shape: PIPELINESxSTAGES[+EXTRA]:SAMPLES_PER_S");
  EXPECT_EQ(error("shapes 1x1:9\n5 tick\n4 tick\n"), "f:3: 4, want times that do not go back");
  EXPECT_EQ(error("# nothing\n"), "f: no shapes");
}

}  // namespace
}  // namespace mayfly

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  mayfly::rewrite = argc > 1 && std::string_view(argv[1]) == "--rewrite";
  return RUN_ALL_TESTS();
}
