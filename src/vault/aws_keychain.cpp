#include "vault/aws_keychain.h"

#include <functional>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "vault/http.h"
#include "vault/key_program.h"
#include "vault/unix_time.h"
#include "vault/xml.h"

namespace mayfly {
namespace {

/// They are renewed so long before their end: a transfer under way must not outlast them.
constexpr double kRenewBefore = 300;
/// A metadata service is next door or not there at all.
HttpConnection::Options next_door() { return {.connect = Seconds(1), .silence = Seconds(2)}; }
constexpr const char* kMachineService = "http://169.254.169.254";
constexpr const char* kContainerService = "http://169.254.170.2";

std::string setting_of(const AwsConfig& config, const std::string& name) {
  const auto found = config.settings.find(name);
  return found == config.settings.end() ? "" : found->second;
}

std::string text_in(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<TimedKeys> checked(TimedKeys found, const std::string& ends) {
  if (found.keys.id.empty() || found.keys.secret.empty()) return fail("{}: gives no keys", found.from);
  // Whatever is put into a header must not end it.
  for (const std::string* part : {&found.keys.id, &found.keys.secret, &found.keys.token}) {
    if (printable(*part) != *part || part->find_first_of(" \t\n") != part->npos)
      return fail("{}: gives keys with blanks or control characters", found.from);
  }
  if (ends.empty()) return found;
  found.until = parse_time(ends);
  if (!found.until) return fail("{}: keys that end at '{}', want a time", found.from, printable(ends));
  return found;
}

Result<HttpAnswer> good_answer(HttpConnection& service, const HttpRequest& request, const std::string& what) {
  auto answer = service.ask(request);
  if (!answer) return fail("{}: {}", what, answer.error().message);
  if (answer->status == 200) return *std::move(answer);
  std::string_view why = answer->body;
  const auto error = parse_xml(answer->body, what);
  const XmlElement* const detail = error ? error->find("Error") : nullptr;
  if (detail != nullptr) why = detail->text_of("Message");
  return fail("{}: status {}: {}", what, answer->status, printable(why.substr(0, 200)));
}

Result<std::optional<TimedKeys>> from_environment(const Surroundings& around) {
  TimedKeys found{.from = "AWS_ACCESS_KEY_ID"};
  found.keys = {.id = around.value("AWS_ACCESS_KEY_ID"),
                .secret = around.value("AWS_SECRET_ACCESS_KEY"),
                .token = around.value("AWS_SESSION_TOKEN")};
  if (found.keys.id.empty() && found.keys.secret.empty()) return std::nullopt;
  if (found.keys.id.empty() || found.keys.secret.empty())
    return fail("of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set, want both");
  auto sound = checked(std::move(found), "");
  if (!sound) return unexpected(sound.error());
  return *std::move(sound);
}

Result<std::optional<TimedKeys>> from_profile(const AwsConfig& config) {
  TimedKeys found{.from = "profile " + config.profile};
  found.keys = {.id = setting_of(config, "aws_access_key_id"),
                .secret = setting_of(config, "aws_secret_access_key"),
                .token = setting_of(config, "aws_session_token")};
  if (!found.keys.id.empty()) {
    auto sound = checked(std::move(found), "");
    if (!sound) return unexpected(sound.error());
    return *std::move(sound);
  }
  if (const std::string line = setting_of(config, "credential_process"); !line.empty()) {
    const auto output = key_program_output(line);
    if (!output) return fail("{}: credential_process: {}", found.from, output.error().message);
    auto keys = parse_key_document(*output, found.from + ": credential_process");
    if (!keys) return unexpected(keys.error());
    return *std::move(keys);
  }
  // What takes a browser or another role first is the AWS tools' own affair.
  for (const auto* name : {"sso_session", "sso_start_url", "source_profile", "credential_source"}) {
    if (!setting_of(config, name).empty())
      return fail(
          "profile {}: its keys come by {}, which mayfly does not do: eval \"$(aws configure export-credentials "
          "--profile {} --format env)\"",
          config.profile, name, config.profile);
  }
  return std::nullopt;
}

Result<std::optional<TimedKeys>> from_web_identity(const AwsConfig& config, const Surroundings& around) {
  const auto either = [&](const std::string& variable, const std::string& name) {
    const std::string value = around.value(variable);
    return value.empty() ? setting_of(config, name) : value;
  };
  const std::string file = either("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
  if (file.empty()) return std::nullopt;
  const std::string role = either("AWS_ROLE_ARN", "role_arn");
  if (role.empty()) return fail("AWS_WEB_IDENTITY_TOKEN_FILE is set, but not AWS_ROLE_ARN: want both");
  std::string session = either("AWS_ROLE_SESSION_NAME", "role_session_name");
  if (session.empty()) session = "mayfly";
  const auto token = load_text(file);
  if (!token) return fail("AWS_WEB_IDENTITY_TOKEN_FILE: {}", token.error().message);
  std::string url = config.token_endpoint;
  if (url.empty())
    url = config.region.empty() ? "https://sts.amazonaws.com"
                                : fmt::format("https://sts.{}.amazonaws.com", config.region);
  const auto endpoint = HttpEndpoint::parse(url);
  if (!endpoint) return unexpected(endpoint.error());
  HttpConnection service(*endpoint, {.connect = Seconds(5), .silence = Seconds(20), .ca_bundle = config.ca_bundle});
  const std::string form = query_text({{"Action", "AssumeRoleWithWebIdentity"},
                                       {"Version", "2011-06-15"},
                                       {"RoleArn", role},
                                       {"RoleSessionName", session},
                                       {"WebIdentityToken", std::string(trimmed(*token))}});
  const auto answer = good_answer(
      service,
      {.method = "POST", .headers = {{"Content-Type", "application/x-www-form-urlencoded"}}, .body = Pieces(form)},
      "AssumeRoleWithWebIdentity at " + endpoint->text());
  if (!answer) return unexpected(answer.error());
  auto keys = parse_assumed_role(answer->body, "AssumeRoleWithWebIdentity");
  if (!keys) return unexpected(keys.error());
  return *std::move(keys);
}

/// Loopback, and the addresses where ECS and EKS serve keys: elsewhere they would travel in the clear.
bool may_be_plain(const HttpEndpoint& endpoint) {
  return endpoint.host == "localhost" || endpoint.host.starts_with("127.") || endpoint.host == "[::1]" ||
         endpoint.host == "169.254.170.2" || endpoint.host == "169.254.170.23" || endpoint.host == "[fd00:ec2::23]";
}

Result<std::optional<TimedKeys>> from_container(const Surroundings& around) {
  const std::string relative = around.value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  std::string url = around.value("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (relative.empty() && url.empty()) return std::nullopt;
  if (!relative.empty()) url = kContainerService + relative;
  const auto path = url.find('/', std::min(url.find("://"), url.size() - 1) + 3);
  const auto endpoint = HttpEndpoint::parse(url.substr(0, path));
  if (!endpoint) return unexpected(endpoint.error());
  if (!endpoint->secure() && !may_be_plain(*endpoint))
    return fail("AWS_CONTAINER_CREDENTIALS_FULL_URI '{}': want https, or a host of this machine", printable(url));
  HttpRequest request{.target = path == std::string::npos ? "/" : url.substr(path)};
  std::string word = around.value("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = around.value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    const auto text = load_text(file);
    if (!text) return fail("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: {}", text.error().message);
    word = trimmed(*text);
  }
  if (word.find_first_of("\r\n") != word.npos) return fail("the container's authorization token has a line end");
  if (!word.empty()) request.headers["Authorization"] = word;
  HttpConnection service(*endpoint, next_door());
  const auto answer = good_answer(service, request, "the container's credentials");
  if (!answer) return unexpected(answer.error());
  auto keys = parse_key_document(answer->body, "the container's credentials");
  if (!keys) return unexpected(keys.error());
  return *std::move(keys);
}

/// IMDSv2. A service that gives no session token is not asked the old way.
Result<TimedKeys> from_machine(const Surroundings& around) {
  const std::string named = around.value("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const auto endpoint = HttpEndpoint::parse(named.empty() ? kMachineService : named);
  if (!endpoint) return unexpected(endpoint.error());
  HttpConnection service(*endpoint, next_door());
  const std::string what = "the machine's role";
  const auto token = good_answer(
      service,
      {.method = "PUT", .target = "/latest/api/token", .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}},
      what);
  if (!token) return unexpected(token.error());
  const std::map<std::string, std::string> headers{{"X-aws-ec2-metadata-token", std::string(trimmed(token->body))}};
  const std::string path = "/latest/meta-data/iam/security-credentials/";
  const auto role = good_answer(service, {.target = path, .headers = headers}, what);
  if (!role) return unexpected(role.error());
  const auto name = trimmed(split(role->body, '\n').front());
  if (name.empty()) return fail("{}: it has none", what);
  const auto keys = good_answer(service, {.target = path + uri_encoded(name, false), .headers = headers}, what);
  if (!keys) return unexpected(keys.error());
  return parse_key_document(keys->body, what);
}

}  // namespace

Result<TimedKeys> parse_key_document(std::string_view text, const std::string& from) {
  const Json document = parsed_json(text);
  if (!document.is_object()) return fail("{}: no JSON object", from);
  const std::string token = text_in(document, "SessionToken");
  return checked({.keys = {.id = text_in(document, "AccessKeyId"),
                           .secret = text_in(document, "SecretAccessKey"),
                           .token = token.empty() ? text_in(document, "Token") : token},
                  .from = from},
                 text_in(document, "Expiration"));
}

Result<TimedKeys> parse_assumed_role(std::string_view text, const std::string& from) {
  const auto root = parse_xml(text, from);
  if (!root) return unexpected(root.error());
  const XmlElement* const result = root->find("AssumeRoleWithWebIdentityResult");
  const XmlElement* const keys = result == nullptr ? nullptr : result->find("Credentials");
  if (keys == nullptr) return fail("{}: gives no keys", from);
  return checked({.keys = {.id = std::string(keys->text_of("AccessKeyId")),
                           .secret = std::string(keys->text_of("SecretAccessKey")),
                           .token = std::string(keys->text_of("SessionToken"))},
                  .from = from},
                 std::string(keys->text_of("Expiration")));
}

Result<TimedKeys> find_keys(const AwsConfig& config, const Surroundings& around) {
  for (const auto& source :
       {std::function([&] { return from_environment(around); }), std::function([&] { return from_profile(config); }),
        std::function([&] { return from_web_identity(config, around); }),
        std::function([&] { return from_container(around); })}) {
    auto found = source();
    if (!found) return unexpected(found.error());
    if (*found) return **std::move(found);
  }
  constexpr const char* kHint =
      "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE (docs/storage.md)";
  if (around.value("AWS_EC2_METADATA_DISABLED") == "true") return fail("{}", kHint);
  auto found = from_machine(around);
  if (!found) return fail("{}; {}", kHint, found.error().message);
  return found;
}

Result<AwsKeys> AwsKeychain::keys() {
  const std::lock_guard lock(mutex_);
  const double now = unix_time();
  if (known_ && (!known_->until || *known_->until - now > kRenewBefore)) return known_->keys;
  auto found = find_keys(config_, around_);
  if (!found) {
    // Until their end the old ones do.
    if (known_ && known_->until && *known_->until > now) return known_->keys;
    return unexpected(found.error());
  }
  known_ = *std::move(found);
  return known_->keys;
}

void AwsKeychain::discard(const AwsKeys& keys) {
  const std::lock_guard lock(mutex_);
  if (known_ && known_->keys == keys) known_.reset();
}

}  // namespace mayfly
