#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "vault/object_store.h"

namespace mayfly {

/// How an object is cut for its way.
struct Parts {
  std::uint64_t part_bytes = 0;
  int count = 0;
};
/// 16 to 64 MiB each, up to what a store takes as one upload: 10,000 parts.
Parts parts_of(std::uint64_t bytes);

/// One object, up to four parts at a time. What is not finished is aborted, as far as the store can be reached.
StoreResult<void> upload_object(const std::shared_ptr<StoreAccess>& access, const ObjectStore::Options& options,
                                const Pieces& bytes, const std::string& key);

/// An object of this size, likewise.
StoreResult<std::vector<std::byte>> download_object(const std::shared_ptr<StoreAccess>& access,
                                                    const ObjectStore::Options& options, const std::string& key,
                                                    std::uint64_t bytes);

}  // namespace mayfly
