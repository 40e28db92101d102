#include "vault/store_transfer.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace mayfly {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLeastPart = 16 * kMiB;
constexpr std::uint64_t kMostPart = 64 * kMiB;
constexpr std::uint64_t kMostParts = 10000;
constexpr int kAtATime = 4;
/// To take back what could not be finished: whatever is in the way of that was in the way before.
constexpr Seconds kPatienceToAbort{2};

using PartWork = std::function<StoreResult<void>(ObjectStore&, int part)>;

/// Each part once, some at a time, each thread with a connection of its own. After the first failure no other begins.
StoreResult<void> for_each_part(const std::shared_ptr<StoreAccess>& access, ObjectStore::Options options, int parts,
                                const PartWork& work) {
  std::atomic<int> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  StoreResult<void> result;
  options.enough = &failed;
  const auto take_turns = [&] {
    ObjectStore store(access, options);
    for (int part = next++; part < parts && !failed; part = next++) {
      auto done = work(store, part);
      if (done) continue;
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) result = unexpected(std::move(done.error()));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < std::min(parts, kAtATime); ++i) threads.emplace_back(take_turns);
  take_turns();
  for (std::thread& thread : threads) thread.join();
  return result;
}

/// The answer to an earlier try may have been lost: then the upload is gone and the object is there.
StoreResult<void> completed(ObjectStore& store, const UnfinishedUpload& upload, const std::vector<std::string>& tags,
                            std::uint64_t bytes) {
  auto done = store.complete(upload, tags);
  if (done || done.error().kind != StoreFailure::Kind::missing) return done;
  const auto there = store.list(upload.key);
  if (there && std::count(there->begin(), there->end(), StoredObject{upload.key, bytes}) == 1) return {};
  return done;
}

}  // namespace

Parts parts_of(std::uint64_t bytes) {
  const std::uint64_t wanted = std::clamp((bytes + 99) / 100, kLeastPart, kMostPart);
  const std::uint64_t part = std::max(wanted, (bytes + kMostParts - 1) / kMostParts);
  return {.part_bytes = part, .count = static_cast<int>((bytes + part - 1) / part)};
}

StoreResult<void> upload_object(const std::shared_ptr<StoreAccess>& access, const ObjectStore::Options& options,
                                const Pieces& bytes, const std::string& key) {
  const std::uint64_t all = bytes.size();
  const Parts parts = parts_of(all);
  ObjectStore store(access, options);
  if (parts.count <= 1) return store.put(key, bytes);
  auto id = store.begin_upload(key);
  if (!id) return unexpected(id.error());
  const UnfinishedUpload upload{.key = key, .id = *std::move(id)};
  std::vector<std::string> tags(static_cast<std::size_t>(parts.count));
  auto sent = for_each_part(access, options, parts.count, [&](ObjectStore& connection, int part) -> StoreResult<void> {
    const std::uint64_t offset = static_cast<std::uint64_t>(part) * parts.part_bytes;
    auto tag = connection.upload_part(upload, part + 1, bytes.slice(offset, parts.part_bytes));
    if (!tag) return unexpected(tag.error());
    tags[static_cast<std::size_t>(part)] = *std::move(tag);
    return {};
  });
  if (sent) sent = completed(store, upload, tags, all);
  if (!sent) static_cast<void>(ObjectStore(access, {.patience = kPatienceToAbort}).abort(upload));
  return sent;
}

StoreResult<std::vector<std::byte>> download_object(const std::shared_ptr<StoreAccess>& access,
                                                    const ObjectStore::Options& options, const std::string& key,
                                                    std::uint64_t bytes) {
  const Parts parts = parts_of(bytes);
  std::vector<std::byte> content(static_cast<std::size_t>(bytes));
  auto done = for_each_part(access, options, parts.count, [&](ObjectStore& connection, int part) {
    const std::uint64_t offset = static_cast<std::uint64_t>(part) * parts.part_bytes;
    const std::uint64_t size = std::min(parts.part_bytes, bytes - offset);
    return connection.read(key, offset, std::span(content).subspan(offset, size));
  });
  if (!done) return unexpected(done.error());
  return content;
}

}  // namespace mayfly
