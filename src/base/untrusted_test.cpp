#include "base/untrusted.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/temp_folder.h"

namespace mayfly {
namespace {

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(ParsedJson, TakesWhatIsNestedAHundredLevelsDeepAndNoDeeper) {
  EXPECT_TRUE(parsed_json(nested(100)).is_array());
  EXPECT_TRUE(parsed_json(nested(101)).is_discarded());
  EXPECT_TRUE(parsed_json(nested(2'000'000)).is_discarded());
  EXPECT_TRUE(parsed_json(std::string(2'000'000, '{')).is_discarded());
}

TEST(ParsedJson, BracketsInTextAreText) {
  const std::string brackets(500, '[');
  EXPECT_EQ(parsed_json("\"" + brackets + "\""), Json(brackets));
  EXPECT_EQ(parsed_json("[\"\\\"" + brackets + "\"]")[0], Json("\"" + brackets));
  EXPECT_TRUE(parsed_json("not JSON").is_discarded());
}

TEST(OwnText, IsThatOfARegularFileAlone) {
  const support::TempFolder folder;
  std::ofstream(folder.path() / "file") << "text";
  std::filesystem::create_symlink(folder.path() / "file", folder.path() / "link");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(load_own_text(folder.path() / "file").value_or(""), "text");
  for (const char* name : {"link", "pipe", "nothing"}) EXPECT_FALSE(load_own_text(folder.path() / name)) << name;
  EXPECT_FALSE(load_own_text(folder.path()));
}

}  // namespace
}  // namespace mayfly
