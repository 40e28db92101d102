#include "vault/xml.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

XmlElement parsed(std::string_view text) {
  const auto root = parse_xml(text, "answer");
  EXPECT_TRUE(root) << root.error().message;
  return root.value_or(XmlElement{});
}

TEST(Xml, HasNamesTextsAndChildren) {
  const auto root = parsed(
      "<?xml version=\"1.0\"?>\n<!-- - --><s3:Error xmlns:s3='urn:x' a = \"<>\"><Code>Slow&amp;&#x41;&#10;</Code>"
      "<Empty/><Code>second</Code><Raw><![CDATA[a<b&]]></Raw></s3:Error>\n");
  EXPECT_EQ(root.name, "Error");
  EXPECT_EQ(root.text_of("Code"), "Slow&A\n");
  EXPECT_EQ(root.text_of("Empty"), "");
  EXPECT_EQ(root.text_of("Raw"), "a<b&");
  EXPECT_EQ(root.text_of("Nothing"), "");
  EXPECT_EQ(root.children.size(), 4U);
}

// U+E9 is c3 a9, U+20AC e2 82 ac, U+1F600 f0 9f 98 80.
TEST(Xml, WritesCharactersByNumberAsUtf8) {
  EXPECT_EQ(parsed("<a>&#233;&#x20ac;&#x1F600;</a>").text, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

class NoXml : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Texts, NoXml,
                         testing::Values("", "text", "<a>", "<a", "<a></b>", "<a></a><b/>", "<a b></a>", "<a b=c/>",
                                         "<a>&nbsp;</a>", "<a>&#0;</a>", "<a>&#xd800;</a>", "<a>&lt</a>", "<a>&#;</a>",
                                         "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "<a><!ENTITY x></a>", "< a/>",
                                         "<a><![CDATA[x</a>", "<a></a", "<a></ab>"));

TEST_P(NoXml, IsAnError) {
  const auto root = parse_xml(GetParam(), "answer");
  ASSERT_FALSE(root);
  EXPECT_TRUE(root.error().message.starts_with("answer: byte ")) << root.error().message;
}

TEST(Xml, GoesNoDeeperThanTwentyLevels) {
  const auto nested = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += "<a>";
    for (int i = 0; i < levels; ++i) text += "</a>";
    return text;
  };
  EXPECT_TRUE(parse_xml(nested(20), "answer"));
  EXPECT_FALSE(parse_xml(nested(21), "answer"));
}

}  // namespace
}  // namespace mayfly
