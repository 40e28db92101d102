#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// Why a store did not do what it was asked.
struct StoreFailure {
  enum class Kind {
    away,     ///< no answer, or too busy for one: another time it may do it
    missing,  ///< no such object, bucket or upload
    taken,    ///< it is there already
    stale,    ///< the keys have ended: others may do
    refused,  ///< asking again changes nothing
  };
  Kind kind = Kind::refused;
  std::string message{};
};
template <class T>
using StoreResult = tl::expected<T, StoreFailure>;

struct StoredObject {
  std::string key{};
  std::uint64_t bytes = 0;
  bool operator==(const StoredObject&) const = default;
};
struct UnfinishedUpload {
  std::string key{};
  std::string id{};
  bool operator==(const UnfinishedUpload&) const = default;
};

/// One page of a listing.
struct ObjectPage {
  std::vector<StoredObject> objects{};
  std::string next{};  ///< what to ask for the next one with; empty: this was the last
};
Result<ObjectPage> parse_object_page(std::string_view text);

struct UploadPage {
  std::vector<UnfinishedUpload> uploads{};
  std::string next_key{}, next_id{};  ///< both empty: this was the last
};
Result<UploadPage> parse_upload_page(std::string_view text);

/// What an answer says of an error; empty where it says nothing.
struct StoreError {
  std::string code{};
  std::string message{};
  std::string region{};  ///< where the bucket is, if it is elsewhere
};
StoreError parse_store_error(std::string_view text);

}  // namespace mayfly
