#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/store_url.h"
#include "vault/aws_keychain.h"
#include "vault/http.h"
#include "vault/store_answer.h"
#include "vault/surroundings.h"

namespace mayfly {

/// One bucket: where it is, how it is reached, and who asks. Shared by all connections to it.
struct StoreAccess {
  HttpEndpoint endpoint{};
  std::string region = "us-east-1";
  std::string bucket{};
  bool in_path = false;     ///< the bucket is part of the path, not of the host's name
  std::string ca_bundle{};  ///< certificates to trust in place of the system's
  std::unique_ptr<AwsKeychain> keychain{};

  /// As the AWS tools would: docs/storage.md
  static Result<std::shared_ptr<StoreAccess>> open(const StoreUrl& url, const Surroundings& around);
};

/// Objects of a bucket, over one connection. Every call asks again, with growing pauses, as long as the store is away
/// or busy and patience lasts. One thread; several may have an ObjectStore each, over the same StoreAccess.
class ObjectStore {
 public:
  struct Options {
    Seconds patience{30};                            ///< with a store that is away
    const std::atomic<bool>* enough = nullptr;       ///< set by others: no further try
    std::function<void(const std::string&)> said{};  ///< why something is tried again, once a call
  };
  ObjectStore(std::shared_ptr<StoreAccess> access, Options options);
  ~ObjectStore();

  StoreResult<std::vector<StoredObject>> list(const std::string& prefix);
  StoreResult<std::string> text(const std::string& key);
  /// So many bytes from there on; fewer are an error.
  StoreResult<void> read(const std::string& key, std::uint64_t offset, std::span<std::byte> into);
  StoreResult<void> put(const std::string& key, const Pieces& bytes);
  /// Only where no such object is there: otherwise StoreFailure::Kind::taken.
  StoreResult<void> create(const std::string& key, std::string_view text);
  /// What is not there counts as removed.
  StoreResult<void> remove(const std::string& key);

  // An object in parts. Until it is completed there is none.

  StoreResult<std::string> begin_upload(const std::string& key);
  /// The part's tag. `number` counts from 1.
  StoreResult<std::string> upload_part(const UnfinishedUpload& upload, int number, const Pieces& bytes);
  StoreResult<void> complete(const UnfinishedUpload& upload, const std::vector<std::string>& tags);
  StoreResult<void> abort(const UnfinishedUpload& upload);
  StoreResult<std::vector<UnfinishedUpload>> unfinished(const std::string& prefix);

 private:
  struct Question;
  StoreResult<HttpAnswer> ask(const Question& question);
  StoreResult<HttpAnswer> ask_once(const Question& question);
  bool wait(Seconds pause) const;
  StoreFailure failure(const Question& question, const HttpAnswer& answer, const AwsKeys& keys);
  StoreResult<void> put_object(const std::string& key, const Pieces& bytes, bool create_only);
  std::string place(const Question& question) const;

  std::shared_ptr<StoreAccess> access_;
  Options options_;
  std::unique_ptr<HttpConnection> connection_;
};

}  // namespace mayfly
