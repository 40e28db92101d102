#include <algorithm>

#include "vault/object_store.h"

namespace mayfly {
namespace {

/// Where nobody has said: the one that AWS itself takes, and that stores without regions accept.
constexpr const char* kUsualRegion = "us-east-1";

/// Names that are no part of a host's: a certificate for *.s3.REGION.amazonaws.com does not cover dots.
bool must_be_in_path(const std::string& bucket) {
  return std::any_of(bucket.begin(), bucket.end(),
                     [](char c) { return c == '.' || c == '_' || (c >= 'A' && c <= 'Z'); });
}

bool is_region(const std::string& region) {
  return !region.empty() && std::all_of(region.begin(), region.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

Result<std::shared_ptr<StoreAccess>> StoreAccess::open(const StoreUrl& url, const Surroundings& around) {
  auto config = load_aws_config(around);
  if (!config) return unexpected(config.error());
  auto access = std::make_shared<StoreAccess>();
  access->bucket = url.bucket;
  if (!config->region.empty()) access->region = config->region;
  if (access->region.empty()) access->region = kUsualRegion;
  if (!is_region(access->region)) return fail("AWS_REGION '{}': want a region such as eu-west-1", access->region);
  access->ca_bundle = config->ca_bundle;
  // Elsewhere than at AWS there is rarely a host for each bucket.
  access->in_path = !config->endpoint.empty() || must_be_in_path(url.bucket);
  std::string where = config->endpoint;
  if (where.empty())
    where = fmt::format("https://{}s3.{}.amazonaws.com{}", access->in_path ? "" : url.bucket + ".", access->region,
                        access->region.starts_with("cn-") ? ".cn" : "");
  auto endpoint = HttpEndpoint::parse(where);
  if (!endpoint) return fail("{}: the store's endpoint (AWS_ENDPOINT_URL): {}", url.text(), endpoint.error().message);
  access->endpoint = *std::move(endpoint);
  access->keychain = std::make_unique<AwsKeychain>(*std::move(config), around);
  return access;
}

}  // namespace mayfly
