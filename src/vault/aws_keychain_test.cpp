#include "vault/aws_keychain.h"

#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "base/text.h"
#include "support/stub_server.h"
#include "support/temp_folder.h"
#include "vault/unix_time.h"

namespace mayfly {
namespace {

using support::StubServer;
using Variables = std::map<std::string, std::string>;

const std::string kFarAway = "2099-01-01T00:00:00Z";

std::string key_document(const std::string& id, const std::string& ends) {
  return R"({"Version": 1, "AccessKeyId": ")" + id +
         R"(", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": ")" + ends + "\"}";
}

Surroundings around(Variables variables) {
  return {.variable = [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  }};
}

Result<TimedKeys> keys_with(const Variables& variables) {
  const auto surroundings = around(variables);
  const auto config = load_aws_config(surroundings);
  if (!config) return unexpected(config.error());
  return find_keys(*config, surroundings);
}

class Files {
 public:
  Files(const std::string& config, const std::string& credentials) {
    EXPECT_TRUE(save_text(folder_.path() / "config", config));
    EXPECT_TRUE(save_text(folder_.path() / "credentials", credentials));
  }
  Variables variables(Variables more = {}) const {
    more.insert({{"AWS_CONFIG_FILE", (folder_.path() / "config").string()},
                 {"AWS_SHARED_CREDENTIALS_FILE", (folder_.path() / "credentials").string()}});
    return more;
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  support::TempFolder folder_{};
};

TEST(AwsKeys, OfTheEnvironmentComeFirst) {
  const Files files("", "[default]\naws_access_key_id = B\naws_secret_access_key = b\n");
  const auto found = keys_with(files.variables({{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "a"}}));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->keys, (AwsKeys{"A", "a", ""}));
  EXPECT_FALSE(keys_with({{"AWS_ACCESS_KEY_ID", "A"}})) << "half of them";
}

TEST(AwsKeys, OfTheProfileThatIsNamed) {
  const Files files("[profile mine]\nregion = eu-north-1\nendpoint_url = http://127.0.0.1:9000\n",
                    "[default]\naws_access_key_id = B\naws_secret_access_key = b\n"
                    "[mine]\naws_access_key_id = C\naws_secret_access_key = c\naws_session_token = t\n");
  EXPECT_EQ(keys_with(files.variables())->keys, (AwsKeys{"B", "b", ""}));
  EXPECT_EQ(keys_with(files.variables({{"AWS_PROFILE", "mine"}}))->keys, (AwsKeys{"C", "c", "t"}));
  const auto config = load_aws_config(around(files.variables({{"AWS_PROFILE", "mine"}})));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->region, "eu-north-1");
  EXPECT_EQ(config->endpoint, "http://127.0.0.1:9000");
  EXPECT_FALSE(load_aws_config(around(files.variables({{"AWS_PROFILE", "nobody"}}))));
}

TEST(AwsConfig, TakesTheServicesOwnEndpointBeforeThatForAll) {
  const Files files(
      "[default]\nservices = here\nendpoint_url = http://all\n[services here]\ns3 =\n  endpoint_url = http://s3\n", "");
  EXPECT_EQ(load_aws_config(around(files.variables()))->endpoint, "http://s3");
  EXPECT_EQ(load_aws_config(around(files.variables()))->token_endpoint, "http://all");
  EXPECT_EQ(load_aws_config(around(files.variables({{"AWS_ENDPOINT_URL", "http://b"}})))->endpoint, "http://b");
  EXPECT_EQ(
      load_aws_config(around(files.variables({{"AWS_ENDPOINT_URL", "http://b"}, {"AWS_ENDPOINT_URL_S3", "http://c"}})))
          ->endpoint,
      "http://c");
}

TEST(AwsKeys, OfAProgram) {
  const Files files("", "");
  const std::string config =
      "[default]\ncredential_process = /bin/cat \"" + (files.path() / "answer").string() + "\"\n";
  ASSERT_TRUE(save_text(files.path() / "config", config));
  ASSERT_TRUE(save_text(files.path() / "answer", key_document("P", kFarAway)));
  const auto found = keys_with(files.variables());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->keys, (AwsKeys{"P", "s", "t"}));
  EXPECT_TRUE(found->until);
  ASSERT_TRUE(save_text(files.path() / "config", "[default]\ncredential_process = /bin/false\n"));
  const auto failed = keys_with(files.variables());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "profile default: credential_process: /bin/false: ended with code 1");
}

TEST(AwsKeys, OfAProfileThatNeedsABrowserSayWhatToDo) {
  const Files files("[default]\nsso_session = work\n", "");
  const auto failed = keys_with(files.variables());
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("aws configure export-credentials"), std::string::npos);
}

TEST(AwsKeys, OfAWebIdentity) {
  StubServer server;
  server.then(200,
              "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
              "<AccessKeyId>W</AccessKeyId><SecretAccessKey>w</SecretAccessKey><SessionToken>t</SessionToken>"
              "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
              "</AssumeRoleWithWebIdentityResponse>");
  const support::TempFolder folder;
  ASSERT_TRUE(save_text(folder.path() / "token", "a+b/c\n"));
  const Variables variables{{"AWS_WEB_IDENTITY_TOKEN_FILE", (folder.path() / "token").string()},
                            {"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"},
                            {"AWS_ENDPOINT_URL_STS", server.endpoint()}};
  const auto found = keys_with(variables);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->keys, (AwsKeys{"W", "w", "t"}));
  EXPECT_EQ(server.asked().at(0).body,
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=mayfly&Version="
            "2011-06-15&WebIdentityToken=a%2Bb%2Fc");
  server.then(
      400, "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>too old</Message></Error></ErrorResponse>");
  const auto refused = keys_with(variables);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("status 400: too old"), std::string::npos) << refused.error().message;
}

TEST(AwsKeys, OfAContainer) {
  StubServer server;
  server.then(200,
              R"({"AccessKeyId": "C", "SecretAccessKey": "c", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"})");
  const auto found = keys_with({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.endpoint() + "/v1/keys"},
                                {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "word"}});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->keys, (AwsKeys{"C", "c", "t"}));
  EXPECT_EQ(server.asked().at(0).target, "/v1/keys");
  EXPECT_EQ(server.asked().at(0).get_header_value("Authorization"), "word");
  EXPECT_FALSE(keys_with({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/keys"}}))
      << "in the clear to another machine";
}

TEST(AwsKeys, OfAMachineWithASessionAlone) {
  StubServer server;
  server.then(200, "session");
  server.then(200, "my-role\n");
  server.then(200, key_document("M", kFarAway));
  const auto found = keys_with({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.endpoint()}});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->keys.id, "M");
  const auto asked = server.asked();
  EXPECT_EQ(asked.at(0).method, "PUT");
  EXPECT_EQ(asked.at(2).target, "/latest/meta-data/iam/security-credentials/my-role");
  EXPECT_EQ(asked.at(2).get_header_value("X-aws-ec2-metadata-token"), "session");
  server.then(403);
  EXPECT_FALSE(keys_with({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.endpoint()}})) << "not asked the old way";
  EXPECT_EQ(server.asked().size(), 4U);
}

TEST(AwsKeys, ThatCannotBeInAHeaderAreRefused) {
  EXPECT_FALSE(parse_key_document(R"({"AccessKeyId": "a\r\nX: y", "SecretAccessKey": "s"})", "it"));
  EXPECT_FALSE(parse_key_document(R"({"AccessKeyId": "a"})", "it"));
  EXPECT_FALSE(parse_key_document(R"({"AccessKeyId": "a", "SecretAccessKey": "s", "Expiration": "soon"})", "it"));
  EXPECT_FALSE(parse_key_document("[]", "it"));
}

TEST(AwsKeychain, RenewsKeysBeforeTheyEnd) {
  StubServer server;
  const auto surroundings = around({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.endpoint() + "/"}});
  AwsKeychain keychain(*load_aws_config(surroundings), surroundings);
  server.then(200, key_document("first", format_time(unix_time() + 100)));
  server.then(200, key_document("second", kFarAway));
  EXPECT_EQ(keychain.keys()->id, "first");
  EXPECT_EQ(keychain.keys()->id, "second") << "a hundred seconds are too few";
  EXPECT_EQ(keychain.keys()->id, "second");
  EXPECT_EQ(server.asked().size(), 2U);
}

TEST(AwsKeychain, KeepsKeysThatCannotBeRenewedYet) {
  StubServer server;
  const auto surroundings = around({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.endpoint() + "/"}});
  AwsKeychain keychain(*load_aws_config(surroundings), surroundings);
  server.then(200, key_document("first", format_time(unix_time() + 100)));
  server.then(500);
  EXPECT_EQ(keychain.keys()->id, "first");
  EXPECT_EQ(keychain.keys()->id, "first");
}

TEST(AwsKeychain, AsksAnewForKeysThatWereRefused) {
  StubServer server;
  const auto surroundings = around({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.endpoint() + "/"}});
  AwsKeychain keychain(*load_aws_config(surroundings), surroundings);
  server.then(200, key_document("first", kFarAway));
  server.then(200, key_document("second", kFarAway));
  const auto first = keychain.keys();
  ASSERT_TRUE(first);
  keychain.discard(*first);
  EXPECT_EQ(keychain.keys()->id, "second");
}

}  // namespace
}  // namespace mayfly
