#include "vault/aws_files.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(AwsFiles, HaveSectionsAndSettings) {
  const auto file = parse_aws_file(
      "# mine\n[default]\naws_access_key_id = AKID\nAWS_SECRET_ACCESS_KEY=a=b/c+d # not of it\n\n"
      "[profile  my one]\nregion = eu-west-1\n; a comment\n",
      "credentials");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file, (std::map<std::string, AwsSettings>{
                       {"default", {{"aws_access_key_id", "AKID"}, {"aws_secret_access_key", "a=b/c+d"}}},
                       {"profile my one", {{"region", "eu-west-1"}}}}));
}

TEST(AwsFiles, HaveNestedSettings) {
  const auto file = parse_aws_file(
      "[services mine]\ns3 =\n  endpoint_url = http://127.0.0.1:9000\n  other = x\nsts =\n  endpoint_url = "
      "http://127.0.0.1:9001\n[default]\n  region = x\n",
      "config");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->at("services mine").at("s3.endpoint_url"), "http://127.0.0.1:9000");
  EXPECT_EQ(file->at("services mine").at("sts.endpoint_url"), "http://127.0.0.1:9001");
  EXPECT_EQ(file->at("default").at("region"), "x") << "indented, but of no group";
}

TEST(AwsFiles, NameTheLineThatIsWrong) {
  for (const auto* text : {"[default]\nkey\n", "[default\n", "key = 1\n", "[default]\n= 1\n"}) {
    const auto file = parse_aws_file(text, "config");
    ASSERT_FALSE(file) << text;
    EXPECT_TRUE(file.error().message.starts_with("config:")) << file.error().message;
  }
}

TEST(AwsFiles, CommandsAreWords) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(command_words("/opt/a b  'c d' \"e \\\" f\\g\" h\\ i ''"),
            (Words{"/opt/a", "b", "c d", "e \" f\\g", "h i", ""}));
  EXPECT_EQ(command_words("a$(b) ~/c;d"), (Words{"a$(b)", "~/c;d"})) << "nothing is expanded";
  EXPECT_EQ(command_words("  "), Words{});
  EXPECT_FALSE(command_words("a 'b"));
  EXPECT_FALSE(command_words("a\\"));
}

}  // namespace
}  // namespace mayfly
