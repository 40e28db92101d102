#include "job/store_url.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(StoreUrl, HasABucketAndAPrefix) {
  EXPECT_EQ(parse_store_url("s3://bucket/a/b"), (StoreUrl{"bucket", "a/b"}));
  EXPECT_EQ(parse_store_url("s3://bucket/a/"), (StoreUrl{"bucket", "a"}));
  EXPECT_EQ(parse_store_url("s3://bucket"), (StoreUrl{"bucket", ""}));
  EXPECT_EQ(parse_store_url("s3://bucket/"), (StoreUrl{"bucket", ""}));
}

TEST(StoreUrl, NamesWhatLiesInIt) {
  EXPECT_EQ((StoreUrl{"bucket", "a/b"}).key("latest"), "a/b/latest");
  EXPECT_EQ((StoreUrl{"bucket", ""}).key("latest"), "latest");
  EXPECT_EQ((StoreUrl{"bucket", "a/b"}).text(), "s3://bucket/a/b");
  EXPECT_EQ((StoreUrl{"bucket", ""}).text(), "s3://bucket");
}

TEST(StoreUrl, IsToldFromAFolder) {
  EXPECT_TRUE(is_store_url("s3://bucket"));
  EXPECT_TRUE(is_store_url("gs://bucket")) << "a slip to be named, not a folder to be made";
  EXPECT_FALSE(is_store_url("checkpoints"));
  EXPECT_FALSE(is_store_url("/data/s3"));
  EXPECT_FALSE(is_store_url("a folder/x://y"));
  EXPECT_FALSE(is_store_url("://x"));
}

class NoStoreUrl : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(StoreUrls, NoStoreUrl,
                         testing::Values("", "s3:/bucket", "gs://bucket/a", "s3://", "s3://ab", "s3:///a",
                                         "s3://buc ket/a", "s3://.bucket", "s3://bu..cket", "s3://bucket/a//b",
                                         "s3://bucket/../b", "s3://bucket//", "s3://bucket/a\nb",
                                         "s3://bucket/" + std::string(901, 'a'), "s3://user:secret@bucket/a",
                                         "s3://bucket/\xff"));

TEST_P(NoStoreUrl, IsNamedInTheError) {
  const auto url = parse_store_url(GetParam());
  ASSERT_FALSE(url);
  EXPECT_NE(url.error().message.find("want"), std::string::npos) << url.error().message;
}

}  // namespace
}  // namespace mayfly
