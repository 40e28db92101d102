#include "vault/object_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "base/text.h"
#include "vault/unix_time.h"
#include "vault/xml.h"

namespace mayfly {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Seconds kFirstPause{0.2};
constexpr Seconds kLongestPause{5};
/// In between others are heard.
constexpr Seconds kNap{0.1};

bool is_busy(int status, std::string_view code) {
  // 409 of a create-only PUT: another one is under way.
  return status >= 500 || status == 429 || code == "SlowDown" || code == "RequestTimeout" ||
         code == "ConditionalRequestConflict" || code == "OperationAborted";
}

bool is_old_token(std::string_view code) {
  return code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired";
}

std::string header_of(const HttpAnswer& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

}  // namespace

/// What a call asks, but for its time and signature.
struct ObjectStore::Question {
  std::string_view doing{};   ///< for messages: "write"
  std::string_view needed{};  ///< the permission
  std::string method = "GET";
  std::string key{};
  std::map<std::string, std::string> query{};
  std::map<std::string, std::string> headers{};  ///< not signed
  Pieces body{};
  std::span<std::byte> into{};
};

ObjectStore::ObjectStore(std::shared_ptr<StoreAccess> access, Options options)
    : access_(std::move(access)),
      options_(std::move(options)),
      connection_(std::make_unique<HttpConnection>(access_->endpoint,
                                                   HttpConnection::Options{.ca_bundle = access_->ca_bundle})) {}

ObjectStore::~ObjectStore() = default;

std::string ObjectStore::place(const Question& question) const {
  const auto prefix = question.query.find("prefix");
  const std::string key = prefix == question.query.end() ? question.key : prefix->second;
  return fmt::format("{} s3://{}/{}", question.doing, access_->bucket, printable(key));
}

StoreFailure ObjectStore::failure(const Question& question, const HttpAnswer& answer, const AwsKeys& keys) {
  const auto error = parse_store_error(answer.body);
  const std::string region = error.region.empty() ? header_of(answer, "x-amz-bucket-region") : error.region;
  const bool elsewhere = answer.status == 301 || answer.status == 307 || error.code == "AuthorizationHeaderMalformed";
  StoreFailure failure;
  std::string why;
  if (answer.status == 412) {
    failure.kind = StoreFailure::Kind::taken;
    why = "it is there already";
  } else if (is_busy(answer.status, error.code)) {
    failure.kind = StoreFailure::Kind::away;
    why = fmt::format("status {}", answer.status);
  } else if (is_old_token(error.code)) {
    failure.kind = StoreFailure::Kind::stale;
    why = fmt::format("the key {} has ended", keys.id);
  } else if (error.code == "NoSuchBucket") {
    why = fmt::format("{} has no bucket '{}': create it first", access_->endpoint.text(), access_->bucket);
  } else if (answer.status == 404) {
    failure.kind = StoreFailure::Kind::missing;
    why = "there is none";
  } else if (elsewhere && !region.empty() && region != access_->region) {
    why = fmt::format("the bucket is in {}: set AWS_REGION={}", printable(region), printable(region));
  } else if (error.code == "SignatureDoesNotMatch") {
    why = fmt::format("the secret of the key {} is not the one that {} knows", keys.id, access_->endpoint.text());
  } else if (error.code == "InvalidAccessKeyId") {
    why = fmt::format("{} knows no key {}", access_->endpoint.text(), keys.id);
  } else if (error.code == "RequestTimeTooSkewed") {
    why = "this machine's clock and the store's differ: set it";
  } else if (answer.status == 403 && (error.code.empty() || error.code == "AccessDenied")) {
    why =
        fmt::format("access denied: the key {} needs {} on the bucket '{}'", keys.id, question.needed, access_->bucket);
  } else {
    why = fmt::format("status {}", answer.status);
  }
  if (!error.code.empty()) why += fmt::format(" ({})", printable(error.code));
  if (why.starts_with("status") && !error.message.empty()) why += ": " + printable(error.message.substr(0, 200));
  failure.message = fmt::format("cannot {}: {}", place(question), why);
  return failure;
}

StoreResult<HttpAnswer> ObjectStore::ask_once(const Question& question) {
  const auto keys = access_->keychain->keys();
  if (!keys)
    return unexpected(StoreFailure{.message = fmt::format("cannot {}: {}", place(question), keys.error().message)});
  SigningTerms terms{.method = question.method,
                     .path = "/" + uri_encoded(question.key, true),
                     .query = question.query,
                     .time = signing_time(unix_time()),
                     .region = access_->region};
  if (access_->in_path) terms.path = "/" + access_->bucket + (question.key.empty() ? "" : terms.path);
  // Over TLS nobody can change the body under way, and hashing it once more would cost.
  const bool unsigned_body = access_->endpoint.secure() && !question.body.empty();
  terms.payload_hash = unsigned_body ? std::string(kUnsignedPayload) : sha256_hex(question.body);
  terms.headers = {{"host", access_->endpoint.authority()},
                   {"x-amz-content-sha256", terms.payload_hash},
                   {"x-amz-date", terms.time}};
  if (!keys->token.empty()) terms.headers["x-amz-security-token"] = keys->token;
  HttpRequest request{.method = question.method, .target = terms.path, .headers = question.headers};
  if (!question.query.empty()) request.target += "?" + query_text(question.query);
  for (const auto& [name, value] : terms.headers) request.headers[name == "host" ? "Host" : name] = value;
  request.headers["Authorization"] = authorization(terms, *keys);
  if (!question.body.empty()) request.headers["Content-Type"] = "application/octet-stream";
  request.body = question.body;
  request.into = question.into;
  const auto answer = connection_->ask(request);
  if (!answer)
    return unexpected(
        StoreFailure{.kind = answer.error().lasting ? StoreFailure::Kind::refused : StoreFailure::Kind::away,
                     .message = fmt::format("cannot {}: {}", place(question), answer.error().message)});
  // An upload may be completed well by its status and not by what follows.
  const bool good = answer->status >= 200 && answer->status < 300;
  if (good && (question.method != "POST" || parse_store_error(answer->body).code.empty())) return *answer;
  auto failed = failure(question, *answer, *keys);
  if (failed.kind == StoreFailure::Kind::stale) access_->keychain->discard(*keys);
  // InternalError, in a body that came with status 200.
  if (good) failed.kind = StoreFailure::Kind::away;
  return unexpected(std::move(failed));
}

/// False: others have said that it is enough.
bool ObjectStore::wait(Seconds pause) const {
  const auto end = SteadyClock::now() + pause;
  while (SteadyClock::now() < end) {
    if (options_.enough != nullptr && *options_.enough) return false;
    std::this_thread::sleep_for(std::min(kNap, pause));
  }
  return options_.enough == nullptr || !*options_.enough;
}

StoreResult<HttpAnswer> ObjectStore::ask(const Question& question) {
  auto answer = ask_once(question);
  // Keys may have ended between two renewals: the next ones are asked for at once.
  if (!answer && answer.error().kind == StoreFailure::Kind::stale) answer = ask_once(question);
  const auto start = SteadyClock::now();
  bool said = false;
  for (Seconds pause = kFirstPause; !answer && answer.error().kind == StoreFailure::Kind::away;
       pause = std::min(kLongestPause, 2 * pause)) {
    if (SteadyClock::now() - start >= options_.patience) break;
    if (options_.said && !std::exchange(said, true)) options_.said(answer.error().message + "; tried again");
    if (!wait(pause)) break;
    answer = ask_once(question);
  }
  return answer;
}

StoreResult<std::vector<StoredObject>> ObjectStore::list(const std::string& prefix) {
  std::vector<StoredObject> objects;
  Question question{.doing = "list", .needed = "s3:ListBucket"};
  question.query = {{"list-type", "2"}, {"prefix", prefix}};
  while (true) {
    const auto answer = ask(question);
    if (!answer) return unexpected(answer.error());
    auto page = parse_object_page(answer->body);
    if (!page)
      return unexpected(StoreFailure{.message = fmt::format("cannot {}: {}", place(question), page.error().message)});
    objects.insert(objects.end(), page->objects.begin(), page->objects.end());
    if (page->next.empty()) return objects;
    question.query["continuation-token"] = page->next;
  }
}

StoreResult<std::string> ObjectStore::text(const std::string& key) {
  auto answer = ask({.doing = "read", .needed = "s3:GetObject", .key = key});
  if (!answer) return unexpected(answer.error());
  return std::move(answer->body);
}

StoreResult<void> ObjectStore::read(const std::string& key, std::uint64_t offset, std::span<std::byte> into) {
  if (into.empty()) return {};
  const Question question{.doing = "read",
                          .needed = "s3:GetObject",
                          .key = key,
                          .headers = {{"Range", fmt::format("bytes={}-{}", offset, offset + into.size() - 1)}},
                          .into = into};
  const auto answer = ask(question);
  if (!answer) return unexpected(answer.error());
  if (answer->received == into.size() && (answer->status == 206 || offset == 0)) return {};
  return unexpected(
      StoreFailure{.message = fmt::format("cannot {}: {} bytes from {} on (status {}), want {}", place(question),
                                          answer->received, offset, answer->status, into.size())});
}

StoreResult<void> ObjectStore::put_object(const std::string& key, const Pieces& bytes, bool create_only) {
  Question question{.doing = "write", .needed = "s3:PutObject", .method = "PUT", .key = key};
  if (create_only) question.headers["If-None-Match"] = "*";
  question.body = bytes;
  const auto answer = ask(question);
  if (!answer) return unexpected(answer.error());
  return {};
}

StoreResult<void> ObjectStore::put(const std::string& key, const Pieces& bytes) {
  return put_object(key, bytes, false);
}

StoreResult<void> ObjectStore::create(const std::string& key, std::string_view text) {
  auto created = put_object(key, Pieces(text), true);
  if (created || created.error().kind != StoreFailure::Kind::taken) return created;
  // The answer to an earlier try may have been lost.
  const auto there = this->text(key);
  if (there && *there == text) return {};
  return created;
}

StoreResult<void> ObjectStore::remove(const std::string& key) {
  const auto answer = ask({.doing = "delete", .needed = "s3:DeleteObject", .method = "DELETE", .key = key});
  if (answer || answer.error().kind == StoreFailure::Kind::missing) return {};
  return unexpected(answer.error());
}

StoreResult<std::string> ObjectStore::begin_upload(const std::string& key) {
  const Question question{
      .doing = "write", .needed = "s3:PutObject", .method = "POST", .key = key, .query = {{"uploads", ""}}};
  const auto answer = ask(question);
  if (!answer) return unexpected(answer.error());
  const auto root = parse_xml(answer->body, "answer");
  std::string id = root ? std::string(root->text_of("UploadId")) : "";
  if (!id.empty()) return id;
  return unexpected(StoreFailure{.message = fmt::format("cannot {}: no upload id in the answer", place(question))});
}

StoreResult<std::string> ObjectStore::upload_part(const UnfinishedUpload& upload, int number, const Pieces& bytes) {
  const Question question{.doing = "write",
                          .needed = "s3:PutObject",
                          .method = "PUT",
                          .key = upload.key,
                          .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload.id}},
                          .body = bytes};
  const auto answer = ask(question);
  if (!answer) return unexpected(answer.error());
  std::string tag = header_of(*answer, "etag");
  if (!tag.empty()) return tag;
  return unexpected(StoreFailure{.message = fmt::format("cannot {}: no tag in the answer", place(question))});
}

StoreResult<void> ObjectStore::complete(const UnfinishedUpload& upload, const std::vector<std::string>& tags) {
  std::string parts;
  for (std::size_t i = 0; i < tags.size(); ++i)
    parts += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, tags[i]);
  const std::string body = fmt::format("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts);
  const auto answer = ask({.doing = "write",
                           .needed = "s3:PutObject",
                           .method = "POST",
                           .key = upload.key,
                           .query = {{"uploadId", upload.id}},
                           .body = Pieces(body)});
  if (!answer) return unexpected(answer.error());
  return {};
}

StoreResult<void> ObjectStore::abort(const UnfinishedUpload& upload) {
  const auto answer = ask({.doing = "abort the upload of",
                           .needed = "s3:AbortMultipartUpload",
                           .method = "DELETE",
                           .key = upload.key,
                           .query = {{"uploadId", upload.id}}});
  if (answer || answer.error().kind == StoreFailure::Kind::missing) return {};
  return unexpected(answer.error());
}

StoreResult<std::vector<UnfinishedUpload>> ObjectStore::unfinished(const std::string& prefix) {
  std::vector<UnfinishedUpload> uploads;
  Question question{.doing = "list the uploads of", .needed = "s3:ListBucketMultipartUploads"};
  question.query = {{"uploads", ""}, {"prefix", prefix}};
  while (true) {
    const auto answer = ask(question);
    if (!answer) return unexpected(answer.error());
    auto page = parse_upload_page(answer->body);
    if (!page)
      return unexpected(StoreFailure{.message = fmt::format("cannot {}: {}", place(question), page.error().message)});
    uploads.insert(uploads.end(), page->uploads.begin(), page->uploads.end());
    if (page->next_key.empty()) return uploads;
    question.query["key-marker"] = page->next_key;
    question.query["upload-id-marker"] = page->next_id;
  }
}

}  // namespace mayfly
