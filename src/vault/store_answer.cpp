#include "vault/store_answer.h"

#include <charconv>

#include "base/text.h"
#include "vault/xml.h"

namespace mayfly {
namespace {

constexpr const char* kListing = "the store's listing";

Result<XmlElement> listing_of(std::string_view text, std::string_view root_name) {
  auto root = parse_xml(text, kListing);
  if (!root) return root;
  if (root->name != root_name) return fail("{}: <{}>, want <{}>", kListing, printable(root->name), root_name);
  return root;
}

}  // namespace

Result<ObjectPage> parse_object_page(std::string_view text) {
  const auto root = listing_of(text, "ListBucketResult");
  if (!root) return unexpected(root.error());
  ObjectPage page;
  for (const XmlElement& entry : root->children) {
    if (entry.name != "Contents") continue;
    const auto size = entry.text_of("Size");
    StoredObject object{.key = std::string(entry.text_of("Key"))};
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), object.bytes);
    if (object.key.empty() || error != std::errc{} || end != size.data() + size.size())
      return fail("{}: '{}' of {} bytes, want a key and a whole number", kListing, printable(object.key),
                  printable(size));
    page.objects.push_back(std::move(object));
  }
  if (root->text_of("IsTruncated") == "true") {
    page.next = root->text_of("NextContinuationToken");
    if (page.next.empty()) return fail("{}: is cut off and does not say how to go on", kListing);
  }
  return page;
}

Result<UploadPage> parse_upload_page(std::string_view text) {
  const auto root = listing_of(text, "ListMultipartUploadsResult");
  if (!root) return unexpected(root.error());
  UploadPage page;
  for (const XmlElement& entry : root->children) {
    if (entry.name != "Upload") continue;
    UnfinishedUpload upload{.key = std::string(entry.text_of("Key")), .id = std::string(entry.text_of("UploadId"))};
    if (upload.key.empty() || upload.id.empty()) return fail("{}: an upload without key or id", kListing);
    page.uploads.push_back(std::move(upload));
  }
  if (root->text_of("IsTruncated") == "true") {
    page.next_key = root->text_of("NextKeyMarker");
    page.next_id = root->text_of("NextUploadIdMarker");
    if (page.next_key.empty()) return fail("{}: is cut off and does not say how to go on", kListing);
  }
  return page;
}

StoreError parse_store_error(std::string_view text) {
  const auto root = parse_xml(text, "error");
  if (!root || root->name != "Error") return {};
  StoreError error{.code = std::string(root->text_of("Code")),
                   .message = std::string(root->text_of("Message")),
                   .region = std::string(root->text_of("Region"))};
  return error;
}

}  // namespace mayfly
