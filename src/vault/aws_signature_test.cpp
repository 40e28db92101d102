#include "vault/aws_signature.h"

#include <gtest/gtest.h>

// The expected signatures are AWS's own: the examples of the S3 reference (Signature Calculations for the Authorization
// Header) and the Signature Version 4 test suite.
namespace mayfly {
namespace {

const AwsKeys kReference{.id = "AKIAIOSFODNN7EXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
const AwsKeys kSuite{.id = "AKIDEXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

SigningTerms reference(std::string_view body = "") {
  const std::string hash = sha256_hex(body);
  return {.headers = {{"host", "examplebucket.s3.amazonaws.com"},
                      {"x-amz-content-sha256", hash},
                      {"x-amz-date", "20130524T000000Z"}},
          .payload_hash = hash,
          .time = "20130524T000000Z",
          .region = "us-east-1"};
}

SigningTerms suite() {
  return {.headers = {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}},
          .payload_hash = sha256_hex(""),
          .time = "20150830T123600Z",
          .region = "us-east-1",
          .service = "service"};
}

std::string signature(const SigningTerms& terms, const AwsKeys& keys) {
  const std::string text = authorization(terms, keys);
  const std::string mark = "Signature=";
  return text.substr(text.find(mark) + mark.size());
}

TEST(AwsSignature, OfAPartOfAnObject) {
  auto terms = reference();
  terms.path = "/test.txt";
  terms.headers["range"] = "bytes=0-9";
  EXPECT_EQ(authorization(terms, kReference),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(AwsSignature, OfAnUpload) {
  auto terms = reference("Welcome to Amazon S3.");
  terms.method = "PUT";
  terms.path = "/" + uri_encoded("test$file.text", true);
  terms.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  terms.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  EXPECT_EQ(signature(terms, kReference), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(AwsSignature, OfAKeyWithoutValueInTheQuery) {
  auto terms = reference();
  terms.query = {{"lifecycle", ""}};
  EXPECT_EQ(signature(terms, kReference), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(AwsSignature, OfAListing) {
  auto terms = reference();
  terms.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_EQ(signature(terms, kReference), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(AwsSignature, OfTheTestSuite) {
  EXPECT_EQ(signature(suite(), kSuite), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")
      << "get-vanilla";
  auto ordered = suite();
  ordered.query = {{"Param2", "value2"}, {"Param1", "value1"}};
  EXPECT_EQ(signature(ordered, kSuite), "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500")
      << "get-vanilla-query-order-key-case";
  auto utf8 = suite();
  utf8.path = "/" + uri_encoded("\u1234", true);
  EXPECT_EQ(signature(utf8, kSuite), "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85") << "get-utf8";
  auto post = suite();
  post.method = "POST";
  EXPECT_EQ(signature(post, kSuite), "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b")
      << "post-vanilla";
}

TEST(AwsSignature, TakesBlanksOfAHeaderAsOne) {
  auto one = reference();
  one.headers["x-amz-meta-a"] = "b c";
  auto many = reference();
  many.headers["x-amz-meta-a"] = "  b   c ";
  EXPECT_EQ(signature(one, kReference), signature(many, kReference));
}

TEST(AwsSignature, ChangesWithWhateverIsSigned) {
  const std::string before = signature(reference(), kReference);
  auto other = reference();
  other.path = "/other";
  EXPECT_NE(signature(other, kReference), before);
  EXPECT_NE(signature(reference("x"), kReference), before);
  EXPECT_NE(signature(reference(), kSuite), before);
}

TEST(AwsSignature, TimeHasNoSeparators) { EXPECT_EQ(signing_time(1369353600), "20130524T000000Z"); }

}  // namespace
}  // namespace mayfly
