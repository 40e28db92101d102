#include "job/store_url.h"

#include <algorithm>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::size_t kLeastBucket = 3;
constexpr std::size_t kMostBucket = 63;
/// Of the 1,024 bytes that a key may have, some are for what is put there.
constexpr std::size_t kMostPrefix = 900;

bool is_bucket_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

bool is_bucket(std::string_view name) {
  return name.size() >= kLeastBucket && name.size() <= kMostBucket &&
         std::all_of(name.begin(), name.end(), is_bucket_letter) && name.front() != '.' && name.back() != '.' &&
         name.find("..") == name.npos;
}

Result<void> check_prefix(std::string_view prefix, std::string_view url) {
  if (prefix.size() > kMostPrefix)
    return fail("'{}': {} bytes after the bucket, want at most {}", printable(url), prefix.size(), kMostPrefix);
  const bool controls = std::any_of(prefix.begin(), prefix.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (controls || valid_utf8(prefix) != prefix.size())
    return fail("'{}': want a prefix of printable characters", printable(url));
  for (const std::string_view part : split(prefix, '/')) {
    // Some clients and servers take such parts away, and would look elsewhere.
    if (part.empty() || part == "." || part == "..")
      return fail("'{}': '{}' between slashes: want names there", printable(url), part);
  }
  return {};
}

}  // namespace

std::string StoreUrl::key(std::string_view name) const {
  return prefix.empty() ? std::string(name) : fmt::format("{}/{}", prefix, name);
}

std::string StoreUrl::text() const {
  return prefix.empty() ? fmt::format("{}{}", kScheme, bucket) : fmt::format("{}{}/{}", kScheme, bucket, prefix);
}

bool is_store_url(std::string_view text) {
  const auto scheme = text.find("://");
  if (scheme == text.npos || scheme == 0) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(scheme),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); });
}

Result<StoreUrl> parse_store_url(std::string_view text) {
  if (!text.starts_with(kScheme))
    return fail("'{}': want s3://BUCKET/PREFIX; other stores are reached through their S3 interface", printable(text));
  const std::string_view rest = text.substr(kScheme.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  StoreUrl url{.bucket = std::string(rest.substr(0, slash))};
  if (!is_bucket(url.bucket))
    return fail("'{}': bucket '{}', want {} to {} letters, digits, dots, dashes", printable(text),
                printable(url.bucket), kLeastBucket, kMostBucket);
  std::string_view prefix = rest.substr(std::min(slash + 1, rest.size()));
  if (prefix.size() > 1 && prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.empty()) return url;
  if (const auto sound = check_prefix(prefix, text); !sound) return unexpected(sound.error());
  url.prefix = std::string(prefix);
  return url;
}

}  // namespace mayfly
