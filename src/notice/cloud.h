#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mayfly {

/// Whose metadata service says that a machine will be taken away.
enum class Cloud { none, aws, gcp, azure };

/// "none", "aws", "gcp", "azure"
std::string_view name(Cloud cloud);
/// Nothing for any other word.
std::optional<Cloud> parse_cloud(std::string_view word);

/// Where a machine asks.
struct MetadataService {
  Cloud cloud = Cloud::none;
  std::string endpoint{};      ///< "http://169.254.169.254"; another one in tests and rehearsals
  std::string machine_name{};  ///< as Azure's events call this machine; empty: it is asked for
  bool operator==(const MetadataService&) const = default;
};

/// What the firmware says about the machine: /sys/class/dmi/id/NAME, empty where it cannot be read.
struct FirmwareWords {
  std::string sys_vendor{};
  std::string board_vendor{};
  std::string product_name{};
  std::string chassis_asset_tag{};
};
FirmwareWords firmware_words();

/// Endpoints set by hand: AWS_EC2_METADATA_SERVICE_ENDPOINT, GCE_METADATA_HOST and MAYFLY_AZURE_METADATA_ENDPOINT;
/// empty: the cloud's own.
struct MetadataEndpoints {
  std::string aws{};
  std::string gcp{};  ///< a host, with or without "http://"
  std::string azure{};
};

/// What `--notices` means here: a cloud by its name, "none", or "auto": the cloud whose endpoint is set, else the one
/// that the firmware names, else none. Touches no network.
Result<MetadataService> metadata_service(std::string_view wanted, const MetadataEndpoints& endpoints,
                                         const FirmwareWords& firmware);
/// The cloud that the firmware names.
Cloud cloud_of(const FirmwareWords& firmware);

/// "http://HOST[:PORT]" of an endpoint as people write it; an error for what is none.
Result<std::string> endpoint_url(const std::string& text);
/// The endpoint is on this machine: 127.0.0.0/8, [::1] or localhost.
bool on_loopback(const std::string& url);

}  // namespace mayfly
