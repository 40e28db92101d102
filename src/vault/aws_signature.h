#pragma once

#include <map>
#include <string>
#include <string_view>

#include "vault/pieces.h"

namespace mayfly {

/// Who asks, as AWS and those who speak like it know people.
struct AwsKeys {
  std::string id{};
  std::string secret{};
  std::string token{};  ///< of keys that end; otherwise empty
  bool operator==(const AwsKeys&) const = default;
};

/// What a signature is over. https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
struct SigningTerms {
  std::string method = "GET";
  std::string path = "/";                      ///< encoded, see uri_encoded()
  std::map<std::string, std::string> query{};  ///< not encoded
  /// Names in small letters. Only these are signed: some stores refuse signatures over headers that they do not know.
  std::map<std::string, std::string> headers{};
  std::string payload_hash{};  ///< in hexadecimal digits, or UNSIGNED-PAYLOAD
  std::string time{};          ///< 20130524T000000Z
  std::string region{};
  std::string service = "s3";
};

/// What stands for the hash where the body is not signed because the connection itself is protected.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

/// The value of the Authorization header, signature version 4.
std::string authorization(const SigningTerms& terms, const AwsKeys& keys);

/// All but letters, digits, `-._~` and, where `keep_slash`, `/` as %XX.
std::string uri_encoded(std::string_view text, bool keep_slash);
/// Sorted and encoded as the signature wants it; a key without value has its `=`. The request must say it like this,
/// too.
std::string query_text(const std::map<std::string, std::string>& query);
std::string sha256_hex(const Pieces& pieces);
std::string sha256_hex(std::string_view text);
/// As it stands in a signed request.
std::string signing_time(double unix_seconds);

}  // namespace mayfly
