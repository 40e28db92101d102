#include "vault/object_store.h"

#include <gtest/gtest.h>

#include <atomic>

#include "support/stub_server.h"

namespace mayfly {
namespace {

using support::StubServer;

std::string error_text(const std::string& code) {
  return "<Error><Code>" + code + "</Code><Message>words</Message></Error>";
}

Surroundings around(const std::string& endpoint) {
  return {.variable = [endpoint](const std::string& name) -> std::optional<std::string> {
    if (name == "AWS_ENDPOINT_URL") return endpoint;
    if (name == "AWS_ACCESS_KEY_ID") return "AKID";
    if (name == "AWS_SECRET_ACCESS_KEY") return "SECRET";
    if (name == "AWS_REGION") return "eu-west-1";
    return std::nullopt;
  }};
}

ObjectStore store_at(const StubServer& server, ObjectStore::Options options = {}) {
  auto access = StoreAccess::open({.bucket = "bucket"}, around(server.endpoint()));
  EXPECT_TRUE(access) << access.error().message;
  return ObjectStore(*access, std::move(options));
}

TEST(ObjectStore, SignsHostDateHashAndNothingElse) {
  StubServer server;
  server.then(200);
  ASSERT_TRUE(store_at(server).create("a key", "hello"));
  const auto request = server.asked().at(0);
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/bucket/a%20key");
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(request.get_header_value("If-None-Match"), "*");
  EXPECT_EQ(request.get_header_value("x-amz-content-sha256"), sha256_hex("hello"));
  const auto signature = request.get_header_value("Authorization");
  EXPECT_NE(signature.find("/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, "),
            std::string::npos)
      << signature;
}

TEST(ObjectStore, AsksAgainWhereTheStoreIsBusyAndSaysSoOnce) {
  StubServer server;
  server.then(503, error_text("SlowDown"));
  server.then(500);
  server.then(200, "content");
  std::vector<std::string> said;
  auto store = store_at(server, {.said = [&](const std::string& text) { said.push_back(text); }});
  EXPECT_EQ(store.text("key").value_or(""), "content");
  EXPECT_EQ(said, std::vector<std::string>{"cannot read s3://bucket/key: status 503 (SlowDown): words; tried again"});
}

TEST(ObjectStore, EndsItsTriesWithItsPatience) {
  StubServer server;
  for (int i = 0; i < 100; ++i) server.then(503);
  const auto text = store_at(server, {.patience = Seconds(0.1)}).text("key");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, StoreFailure::Kind::away);
  EXPECT_EQ(server.asked().size(), 2U) << "the first pause is longer than the patience";
}

TEST(ObjectStore, EndsItsTriesWhereOthersSayEnough) {
  StubServer server;
  server.then(503);
  const std::atomic<bool> enough = true;
  EXPECT_FALSE(store_at(server, {.enough = &enough}).text("key"));
  EXPECT_EQ(server.asked().size(), 1U);
}

// What a person is told, by what the store says.
TEST(ObjectStore, SaysWhatToDo) {
  const std::vector<std::tuple<int, std::string, StoreFailure::Kind, std::string>> cases{
      {403, error_text("AccessDenied"), StoreFailure::Kind::refused,
       "cannot read s3://bucket/key: access denied: the key AKID needs s3:GetObject on the bucket 'bucket' "
       "(AccessDenied)"},
      {404, error_text("NoSuchKey"), StoreFailure::Kind::missing,
       "cannot read s3://bucket/key: there is none (NoSuchKey)"},
      {301, "<Error><Code>PermanentRedirect</Code><Region>us-west-2</Region></Error>", StoreFailure::Kind::refused,
       "cannot read s3://bucket/key: the bucket is in us-west-2: set AWS_REGION=us-west-2 (PermanentRedirect)"},
      {403, error_text("RequestTimeTooSkewed"), StoreFailure::Kind::refused,
       "cannot read s3://bucket/key: this machine's clock and the store's differ: set it (RequestTimeTooSkewed)"},
      {418, "", StoreFailure::Kind::refused, "cannot read s3://bucket/key: status 418"}};
  for (const auto& [status, body, kind, wanted] : cases) {
    StubServer server;
    server.then(status, body);
    const auto text = store_at(server).text("key");
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().kind, kind) << wanted;
    EXPECT_EQ(text.error().message, wanted);
  }
}

TEST(ObjectStore, TakesItsOwnObjectForCreatedWhereTheAnswerWasLost) {
  StubServer server;
  server.then(412, error_text("PreconditionFailed"));
  server.then(200, "mine");
  EXPECT_TRUE(store_at(server).create("key", "mine"));
  server.then(412, error_text("PreconditionFailed"));
  server.then(200, "another's");
  const auto created = store_at(server).create("key", "mine");
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().kind, StoreFailure::Kind::taken);
}

TEST(ObjectStore, KnowsACompletionThatFailedWithStatus200) {
  StubServer server;
  server.then(200, error_text("InternalError"));
  server.then(200, "<CompleteMultipartUploadResult/>");
  EXPECT_TRUE(store_at(server).complete({"key", "id"}, {"\"a\"", "\"b\""}));
  ASSERT_EQ(server.asked().size(), 2U);
  EXPECT_EQ(server.asked()[1].body,
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag></Part><Part><PartNumber>2"
            "</PartNumber><ETag>\"b\"</ETag></Part></CompleteMultipartUpload>");
}

TEST(ObjectStore, ReadsAPieceOrNothing) {
  StubServer server;
  server.then(206, "4567");
  std::vector<std::byte> into(4);
  ASSERT_TRUE(store_at(server).read("key", 4, into));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(into.data()), 4), "4567");
  EXPECT_EQ(server.asked().at(0).get_header_value("Range"), "bytes=4-7");
  server.then(206, "45");
  EXPECT_FALSE(store_at(server).read("key", 4, into)) << "fewer than asked for";
  server.then(200, "0123");
  EXPECT_FALSE(store_at(server).read("key", 4, into)) << "of another place";
}

TEST(ObjectStore, GoesThroughAllPages) {
  StubServer server;
  server.then(200,
              "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a/b=</NextContinuationToken>"
              "<Contents><Key>p/1</Key><Size>1</Size></Contents></ListBucketResult>");
  server.then(200, "<ListBucketResult><Contents><Key>p/2</Key><Size>2</Size></Contents></ListBucketResult>");
  const auto objects = store_at(server).list("p/");
  ASSERT_TRUE(objects) << objects.error().message;
  EXPECT_EQ(*objects, (std::vector<StoredObject>{{"p/1", 1}, {"p/2", 2}}));
  EXPECT_EQ(server.asked().at(1).target, "/bucket?continuation-token=a%2Fb%3D&list-type=2&prefix=p%2F");
}

TEST(ObjectStore, RemovingWhatIsNotThereIsNoFailure) {
  StubServer server;
  server.then(404, error_text("NoSuchKey"));
  EXPECT_TRUE(store_at(server).remove("key"));
}

TEST(StoreAccess, IsAtAwsWhereNobodySaysOtherwise) {
  const auto plain = StoreAccess::open({.bucket = "bucket"}, around(""));
  ASSERT_TRUE(plain);
  EXPECT_EQ((*plain)->endpoint.text(), "https://bucket.s3.eu-west-1.amazonaws.com");
  EXPECT_FALSE((*plain)->in_path);
  const auto dotted = StoreAccess::open({.bucket = "a.bucket"}, around(""));
  ASSERT_TRUE(dotted);
  EXPECT_EQ((*dotted)->endpoint.text(), "https://s3.eu-west-1.amazonaws.com") << "no certificate has dots in a label";
  EXPECT_TRUE((*dotted)->in_path);
  EXPECT_FALSE(StoreAccess::open({.bucket = "bucket"}, around("127.0.0.1:9000")));
}

}  // namespace
}  // namespace mayfly
