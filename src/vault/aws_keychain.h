#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "vault/aws_config.h"
#include "vault/aws_signature.h"

namespace mayfly {

/// Keys, and until when they are good.
struct TimedKeys {
  AwsKeys keys{};
  std::optional<double> until{};  ///< seconds since 1970; absent: for ever
  std::string from{};             ///< for people: "AWS_ACCESS_KEY_ID"
};

/// The answer of a credential_process, a container's or a machine's service.
Result<TimedKeys> parse_key_document(std::string_view text, const std::string& from);
/// The answer to AssumeRoleWithWebIdentity.
Result<TimedKeys> parse_assumed_role(std::string_view text, const std::string& from);

/// Asks, in this order: the environment, the profile's own keys, its credential_process, a web identity (of the
/// environment or the profile), the container's service, the machine's (IMDSv2 alone). The first that is set up
/// answers: where it fails, so does all of it.
Result<TimedKeys> find_keys(const AwsConfig& config, const Surroundings& around);

/// Keys that are renewed before they end. Callable from several threads.
class AwsKeychain {
 public:
  AwsKeychain(AwsConfig config, Surroundings around) : config_(std::move(config)), around_(std::move(around)) {}

  Result<AwsKeys> keys();
  /// The store says that these have ended: the next call asks anew.
  void discard(const AwsKeys& keys);

 private:
  AwsConfig config_;
  Surroundings around_;
  std::mutex mutex_{};
  std::optional<TimedKeys> known_{};
};

}  // namespace mayfly
