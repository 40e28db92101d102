#include "vault/aws_config.h"

#include "base/file.h"
#include "base/text.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;
using Sections = std::map<std::string, AwsSettings>;

/// A file that nobody has named need not be there.
Result<Sections> sections_of(const Surroundings& around, const std::string& variable, const char* usual) {
  const std::string named = around.value(variable);
  const std::string home = around.value("HOME");
  if (named.empty() && home.empty()) return Sections{};
  const fs::path path = named.empty() ? fs::path(home) / ".aws" / usual : fs::path(named);
  std::error_code error;
  if (named.empty() && !fs::exists(path, error)) return Sections{};
  const auto text = load_text(path);
  if (!text) return fail("{}{}", named.empty() ? "" : variable + ": ", text.error().message);
  return parse_aws_file(*text, path.string());
}

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return {};
}

std::string setting(const AwsSettings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

/// The service's own word before that for all, the environment before the files.
std::string endpoint_of(const std::string& service, const Surroundings& around, const AwsSettings& settings,
                        const AwsSettings& services) {
  if (around.value("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == "true") return {};
  return first_of({around.value(service == "s3" ? "AWS_ENDPOINT_URL_S3" : "AWS_ENDPOINT_URL_STS"),
                   around.value("AWS_ENDPOINT_URL"), setting(services, service + ".endpoint_url"),
                   setting(settings, "endpoint_url")});
}

}  // namespace

std::string Surroundings::value(const std::string& name) const {
  return variable ? variable(name).value_or("") : std::string();
}

Result<AwsConfig> load_aws_config(const Surroundings& around) {
  const auto config = sections_of(around, "AWS_CONFIG_FILE", "config");
  if (!config) return unexpected(config.error());
  const auto credentials = sections_of(around, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  if (!credentials) return unexpected(credentials.error());
  AwsConfig found;
  const std::string asked = first_of({around.value("AWS_PROFILE"), around.value("AWS_DEFAULT_PROFILE")});
  if (!asked.empty()) found.profile = asked;
  const auto in_config = config->find(found.profile == "default" ? "default" : "profile " + found.profile);
  const auto in_credentials = credentials->find(found.profile);
  if (!asked.empty() && in_config == config->end() && in_credentials == credentials->end())
    return fail("AWS_PROFILE '{}': no such profile in ~/.aws/config and ~/.aws/credentials", printable(asked));
  if (in_credentials != credentials->end()) found.settings = in_credentials->second;
  if (in_config != config->end()) found.settings.insert(in_config->second.begin(), in_config->second.end());
  const auto services = config->find("services " + setting(found.settings, "services"));
  const AwsSettings of_services = services == config->end() ? AwsSettings{} : services->second;
  found.region =
      first_of({around.value("AWS_REGION"), around.value("AWS_DEFAULT_REGION"), setting(found.settings, "region")});
  found.endpoint = endpoint_of("s3", around, found.settings, of_services);
  found.token_endpoint = endpoint_of("sts", around, found.settings, of_services);
  found.ca_bundle = first_of({around.value("AWS_CA_BUNDLE"), setting(found.settings, "ca_bundle")});
  return found;
}

}  // namespace mayfly
