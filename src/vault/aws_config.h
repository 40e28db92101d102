#pragma once

#include <string>

#include "base/result.h"
#include "vault/aws_files.h"
#include "vault/surroundings.h"

namespace mayfly {

/// What the AWS tools would read here: the profile in use, and what was said about it.
struct AwsConfig {
  std::string profile = "default";
  AwsSettings settings{};        ///< of the profile, from both files; those of the credentials file win
  std::string region{};          ///< empty: nobody has said
  std::string endpoint{};        ///< of S3; empty: AWS's own
  std::string token_endpoint{};  ///< of STS; empty: AWS's own
  std::string ca_bundle{};
};

/// AWS_PROFILE, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3,
/// AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL, AWS_CA_BUNDLE, and the files below ~/.aws. A profile that was asked for by
/// name and is in neither file is an error; a file that is not there is none.
Result<AwsConfig> load_aws_config(const Surroundings& around);

}  // namespace mayfly
