#include "base/json_reader.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

const std::string kFile = "f.json";

TEST(JsonReader, ReadsValuesInTheirOrder) {
  JsonReader json(R"({"a": [1, -2.5e1], "b": {"c": "x\ty\u00e9\ud83d\ude00", "d": true}, "e": null} )", kFile);
  json.begin_object();
  EXPECT_EQ(json.next_key(), "a");
  json.begin_list();
  double sum = 0;
  while (json.next_item()) sum += json.number("a number");
  EXPECT_EQ(sum, -24);
  EXPECT_EQ(json.next_key(), "b");
  json.begin_object();
  EXPECT_EQ(json.next_key(), "c");
  EXPECT_EQ(json.text("a text"), "x\ty\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(json.next_key(), "d");
  EXPECT_TRUE(json.flag("a flag"));
  EXPECT_FALSE(json.next_key());
  EXPECT_EQ(json.next_key(), "e");
  json.skip();
  EXPECT_FALSE(json.next_key());
  json.finish();
  EXPECT_TRUE(json.ok());
}

std::string error_of(std::string_view text) {
  JsonReader json(text, kFile);
  json.skip();
  json.finish();
  return json.ok() ? "" : json.error().message;
}

TEST(JsonReader, SaysWhatIsWrongAndOnWhichLine) {
  EXPECT_EQ(error_of("[1,\n2,\nx]"), "f.json:3: 'x', want a value");
  EXPECT_EQ(error_of("[1 2]"), "f.json:1: '2', want ',' or ']'");
  EXPECT_EQ(error_of("[1,]"), "f.json:1: ']', want a value");
  EXPECT_EQ(error_of("{\"a\": 1,\n\"a\": 2}"), "f.json:2: key 'a' stands twice");
  EXPECT_EQ(error_of("{\"a\" 1}"), "f.json:1: '1', want ':'");
  EXPECT_EQ(error_of("{a: 1}"), "f.json:1: 'a', want a key in quotes");
  EXPECT_EQ(error_of("[1, 2"), "f.json:1: the file ends, want ']'");
  EXPECT_EQ(error_of("[1] 2"), "f.json:1: '2', want nothing after the document");
  EXPECT_EQ(error_of("\"ab"), "f.json:1: a quote that is not closed");
  EXPECT_EQ(error_of("\"\\ud800\""), "f.json:1: an escape that is not a character");
  EXPECT_EQ(error_of("\"\\x\""), "f.json:1: an escape that is not a character");
  EXPECT_EQ(error_of(std::string(100, '[')), "f.json:1: nested more than 64 deep");
}

TEST(JsonReader, AcceptsOnlyTheNumbersOfJson) {
  for (const char* good : {"0", "-0", "10", "1.5", "1e3", "1E-3", "-2.25e+1"}) EXPECT_EQ(error_of(good), "") << good;
  for (const char* bad : {"01", "+1", ".5", "1.", "1e", "-", "NaN", "Infinity", "1e999", "0x10"})
    EXPECT_NE(error_of(bad), "") << bad;
}

TEST(JsonReader, AnswersWithNothingAfterTheFirstError) {
  JsonReader json("[\"x\", 2, 3]", kFile);
  json.begin_list();
  int items = 0;
  while (json.next_item()) {
    json.number("a price");
    ++items;
  }
  EXPECT_EQ(items, 1);
  EXPECT_EQ(json.number("a price"), 0);
  EXPECT_EQ(json.error().message, "f.json:1: '\"x\"', want a price");
}

}  // namespace
}  // namespace mayfly
