#include "fuzz/fuzz.h"
#include "vault/aws_keychain.h"
#include "vault/store_answer.h"
#include "vault/xml.h"

// What an object store, or who gives out keys for one, may answer.
namespace {

using mayfly::fuzz::require;

void check(const mayfly::Result<mayfly::TimedKeys>& found) {
  if (!found) return require(!found.error().message.empty(), "an error has a message");
  require(!found->keys.id.empty() && !found->keys.secret.empty(), "keys are whole");
  for (const auto* part : {&found->keys.id, &found->keys.secret, &found->keys.token})
    require(part->find_first_of("\r\n") == part->npos, "a key does not end a header");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  if (const auto page = mayfly::parse_object_page(text)) {
    for (const auto& object : page->objects) require(!object.key.empty(), "an object has a key");
  } else {
    require(!page.error().message.empty(), "an error has a message");
  }
  if (const auto page = mayfly::parse_upload_page(text)) {
    for (const auto& upload : page->uploads) require(!upload.key.empty() && !upload.id.empty(), "an upload has both");
    require(page->next_id.empty() || !page->next_key.empty(), "a next page begins at a key");
  }
  static_cast<void>(mayfly::parse_store_error(text));
  check(mayfly::parse_key_document(text, "a program"));
  check(mayfly::parse_assumed_role(text, "a service"));
  return 0;
}
