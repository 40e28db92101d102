#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace mayfly {

/// A place in an object store: `s3://BUCKET/PREFIX`, whoever serves it.
struct StoreUrl {
  std::string bucket{};
  std::string prefix{};  ///< without slashes at its ends; empty: the whole bucket
  bool operator==(const StoreUrl&) const = default;

  /// What a thing in it is called there.
  std::string key(std::string_view name) const;
  /// The text of it, as people write it.
  std::string text() const;
};

/// Whether a text that may also name a folder or a file means an object store: it has a scheme.
bool is_store_url(std::string_view text);
/// The error names what is wrong with it. Only s3 is a scheme that is known.
Result<StoreUrl> parse_store_url(std::string_view text);

}  // namespace mayfly
