#include "vault/store_answer.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(StoreAnswer, ListsObjectsPageByPage) {
  const auto page = parse_object_page(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
      "<Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>1/abc==</NextContinuationToken>"
      "<Contents><Key>a&amp;b/latest</Key><Size>12</Size></Contents>"
      "<Contents><Size>0</Size><Key>c</Key><Owner><ID>u</ID></Owner></Contents></ListBucketResult>");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->objects, (std::vector<StoredObject>{{"a&b/latest", 12}, {"c", 0}}));
  EXPECT_EQ(page->next, "1/abc==");
}

TEST(StoreAnswer, AnEmptyListingIsTheLast) {
  const auto page = parse_object_page("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->objects.empty());
  EXPECT_EQ(page->next, "");
}

TEST(StoreAnswer, AListingThatIsNoneIsAnError) {
  for (const auto* text :
       {"", "<html></html>", "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"})
    EXPECT_FALSE(parse_object_page(text)) << text;
}

TEST(StoreAnswer, ListsUnfinishedUploads) {
  const auto page = parse_upload_page(
      "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>"
      "<NextUploadIdMarker>2~x</NextUploadIdMarker><Upload><Key>k</Key><UploadId>2~x</UploadId></Upload>"
      "</ListMultipartUploadsResult>");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->uploads, (std::vector<UnfinishedUpload>{{"k", "2~x"}}));
  EXPECT_EQ(page->next_key, "k");
  EXPECT_EQ(page->next_id, "2~x");
  EXPECT_FALSE(
      parse_upload_page("<ListMultipartUploadsResult><Upload><Key>k</Key></Upload></ListMultipartUploadsResult>"));
}

TEST(StoreAnswer, SaysWhatIsWrong) {
  const auto error = parse_store_error(
      "<Error><Code>PermanentRedirect</Code><Message>use another</Message><Region>eu-west-1</Region></Error>");
  EXPECT_EQ(error.code, "PermanentRedirect");
  EXPECT_EQ(error.message, "use another");
  EXPECT_EQ(error.region, "eu-west-1");
  EXPECT_EQ(parse_store_error("Service Unavailable").code, "");
}

}  // namespace
}  // namespace mayfly
