#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "base/file.h"
#include "wire/message.h"

// The version of the protocol stands in three places: here, in the text, and in the worker in Python.
namespace mayfly {
namespace {

/// What the pattern's first group matches, each time it is found in a file of the source tree.
std::vector<std::string> versions_in(const std::string& file, const char* pattern) {
  const auto text = load_text(std::string(MAYFLY_SOURCE_DIR) + "/" + file);
  EXPECT_TRUE(text.has_value()) << text.error().message;
  if (!text) return {};
  const std::regex wanted(pattern);
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text->begin(), text->end(), wanted); at != std::sregex_iterator(); ++at)
    found.push_back((*at)[1]);
  return found;
}

TEST(Protocol, HasTheVersionThatItsTextSays) {
  const std::vector<std::string> one{std::to_string(kProtocol)};
  EXPECT_EQ(versions_in("docs/protocol.md", R"(Version (\S+) \(`protocol` in the first message\))"), one);
  const auto examples = versions_in("docs/protocol.md", R"re("protocol": *([^,}]+))re");
  EXPECT_FALSE(examples.empty());
  for (const std::string& version : examples) EXPECT_EQ(version, one[0]);
}

TEST(Protocol, IsTheOneThatPythonWorkersSpeak) {
  EXPECT_EQ(versions_in("python/mayfly/secure.py", "\nPROTOCOL = (.+)\n"), std::vector{std::to_string(kProtocol)});
}

}  // namespace
}  // namespace mayfly
