#include "vault/aws_signature.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::size_t kHashSize = 32;
using Hash = std::array<unsigned char, kHashSize>;

std::string hex_of(const Hash& hash) { return fmt::format("{:02x}", fmt::join(hash, "")); }

Hash hmac(std::span<const unsigned char> key, std::string_view text) {
  Hash hash{};
  unsigned size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  MAYFLY_CHECK(
      ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), hash.data(), &size) != nullptr,
      "OpenSSL has no SHA-256");
  return hash;
}

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

/// Blanks in a row count as one.
std::string header_value(std::string_view value) {
  std::string text;
  for (const char c : trimmed(value)) {
    if (c != ' ' || text.empty() || text.back() != ' ') text += c;
  }
  return text;
}

std::string signed_names(const SigningTerms& terms) {
  std::vector<std::string> names;
  for (const auto& [name, value] : terms.headers) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ";"));
}

std::string canonical_request(const SigningTerms& terms) {
  std::string text = fmt::format("{}\n{}\n{}\n", terms.method, terms.path, query_text(terms.query));
  for (const auto& [name, value] : terms.headers) text += fmt::format("{}:{}\n", name, header_value(value));
  return text + fmt::format("\n{}\n{}", signed_names(terms), terms.payload_hash);
}

Hash signing_key(const SigningTerms& terms, std::string_view day, const AwsKeys& keys) {
  const std::string secret = "AWS4" + keys.secret;
  const Hash of_day = hmac(bytes_of(secret), day);
  const Hash of_region = hmac(of_day, terms.region);
  const Hash of_service = hmac(of_region, terms.service);
  return hmac(of_service, "aws4_request");
}

}  // namespace

std::string authorization(const SigningTerms& terms, const AwsKeys& keys) {
  const auto day = std::string_view(terms.time).substr(0, 8);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, terms.region, terms.service);
  const std::string to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, terms.time, scope, sha256_hex(canonical_request(terms)));
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm, keys.id, scope,
                     signed_names(terms), hex_of(hmac(signing_key(terms, day, keys), to_sign)));
}

std::string uri_encoded(std::string_view text, bool keep_slash) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash);
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

std::string query_text(const std::map<std::string, std::string>& query) {
  // Sorted by the encoded name: an encoded character may come before one that is not.
  std::map<std::string, std::string> encoded;
  for (const auto& [name, value] : query) encoded[uri_encoded(name, false)] = uri_encoded(value, false);
  std::string text;
  for (const auto& [name, value] : encoded) text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

std::string sha256_hex(const Pieces& pieces) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> digest(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free);
  bool good = ::EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) == 1;
  for (const auto span : pieces.spans()) good = good && ::EVP_DigestUpdate(digest.get(), span.data(), span.size()) == 1;
  Hash hash{};
  MAYFLY_CHECK(good && ::EVP_DigestFinal_ex(digest.get(), hash.data(), nullptr) == 1, "OpenSSL has no SHA-256");
  return hex_of(hash);
}

std::string sha256_hex(std::string_view text) { return sha256_hex(Pieces(text)); }

std::string signing_time(double unix_seconds) {
  std::string text = format_time(unix_seconds);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

}  // namespace mayfly
