#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "job/store_url.h"

namespace mayfly {

/// A checkpoint in an object store: `checkpoint-STEP-RANDOM`. Nobody replaces an object of another writer, as each
/// writer chooses a name of its own.
struct StoredName {
  std::int64_t step = 0;
  std::string name{};  ///< the whole of it
  bool operator==(const StoredName&) const = default;
};
std::optional<StoredName> parse_stored_name(std::string_view name);
/// One that nobody else has.
StoredName new_stored_name(std::int64_t step);

/// One of its files.
struct CheckpointKey {
  StoredName checkpoint{};
  std::string file{};
};
/// Nothing: the key is not of a file that mayfly writes at this place.
std::optional<CheckpointKey> parse_checkpoint_key(const StoreUrl& url, std::string_view key);

}  // namespace mayfly
