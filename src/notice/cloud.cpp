#include "notice/cloud.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::array kNames = {std::pair{Cloud::none, "none"}, std::pair{Cloud::aws, "aws"},
                               std::pair{Cloud::gcp, "gcp"}, std::pair{Cloud::azure, "azure"}};
/// Azure's machines have this tag; other Hyper-V machines have the same vendor and product.
constexpr std::string_view kAzureTag = "7783-7084-3265-9085-8269-3286-77";

/// A missing one says nothing, as in containers that do not see the firmware.
std::string word_in(const std::string& name) {
  const auto text = load_text("/sys/class/dmi/id/" + name);
  return text ? std::string(trimmed(*text)) : "";
}

std::string own_endpoint(Cloud cloud) {
  if (cloud == Cloud::none) return "";
  return cloud == Cloud::gcp ? "http://metadata.google.internal" : "http://169.254.169.254";
}

}  // namespace

std::string_view name(Cloud cloud) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const auto& entry) { return entry.first == cloud; })->second;
}

std::optional<Cloud> parse_cloud(std::string_view word) {
  for (const auto& [cloud, text] : kNames) {
    if (word == text) return cloud;
  }
  return std::nullopt;
}

FirmwareWords firmware_words() {
  return {.sys_vendor = word_in("sys_vendor"),
          .board_vendor = word_in("board_vendor"),
          .product_name = word_in("product_name"),
          .chassis_asset_tag = word_in("chassis_asset_tag")};
}

Cloud cloud_of(const FirmwareWords& firmware) {
  if (firmware.sys_vendor == "Amazon EC2" || firmware.board_vendor == "Amazon EC2") return Cloud::aws;
  if (firmware.product_name == "Google Compute Engine") return Cloud::gcp;
  if (firmware.sys_vendor == "Microsoft Corporation" && firmware.product_name == "Virtual Machine" &&
      firmware.chassis_asset_tag == kAzureTag)
    return Cloud::azure;
  return Cloud::none;
}

Result<MetadataService> metadata_service(std::string_view wanted, const MetadataEndpoints& endpoints,
                                         const FirmwareWords& firmware) {
  const std::array set = {std::pair{Cloud::aws, &endpoints.aws}, std::pair{Cloud::gcp, &endpoints.gcp},
                          std::pair{Cloud::azure, &endpoints.azure}};
  std::optional<Cloud> cloud = parse_cloud(wanted);
  if (wanted == "auto") {
    const auto found = std::find_if(set.begin(), set.end(), [](const auto& entry) { return !entry.second->empty(); });
    cloud = found != set.end() ? found->first : cloud_of(firmware);
  }
  if (!cloud) return fail("notices '{}': want auto, aws, gcp, azure or none", wanted);
  MetadataService service{.cloud = *cloud, .endpoint = own_endpoint(*cloud)};
  for (const auto& [which, text] : set) {
    if (which != *cloud || text->empty()) continue;
    auto url = endpoint_url(*text);
    if (!url) return unexpected(url.error());
    service.endpoint = *std::move(url);
  }
  return service;
}

Result<std::string> endpoint_url(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  std::string host = text.starts_with(kScheme) ? text.substr(kScheme.size()) : text;
  while (host.ends_with('/')) host.pop_back();
  const bool odd = std::any_of(host.begin(), host.end(), [](char c) {
    return c <= ' ' || c >= 127 || c == '/' || c == '@' || c == '?' || c == '#';
  });
  const auto colon = host.rfind(':');
  const bool with_port = colon != host.npos && host.find(']', colon) == host.npos;
  const auto port = with_port ? parse_integer(host.substr(colon + 1)) : std::optional(80);
  if (host.empty() || odd || colon == 0 || !port || *port < 1 || *port > 65535)
    return fail("metadata endpoint '{}': want http://HOST or http://HOST:PORT", text);
  return std::string(kScheme) + host;
}

bool on_loopback(const std::string& url) {
  const auto tidy = endpoint_url(url);
  if (!tidy) return false;
  std::string host = tidy->substr(std::string_view("http://").size());
  if (host == "[::1]" || host.starts_with("[::1]:")) return true;
  host = host.substr(0, host.find(':'));
  if (host == "localhost") return true;
  const auto parts = split(host, '.');
  return parts.size() == 4 && parts[0] == "127" && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           const auto number = parse_integer(part);
           return number && *number >= 0 && *number <= 255;
         });
}

}  // namespace mayfly
