#include "fuzz/fuzz.h"
#include "job/store_url.h"
#include "vault/aws_files.h"
#include "vault/checkpoint_key.h"
#include "vault/http.h"

// What people write to say where a store is and who they are, and the names of what lies there.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mayfly::fuzz::require;
  const auto text = mayfly::fuzz::text_of(data, size);
  const auto file = mayfly::parse_aws_file(text, mayfly::fuzz::kFile);
  if (!file) mayfly::fuzz::check_message(file.error());
  if (const auto words = mayfly::command_words(text)) {
    std::size_t letters = 0;
    for (const auto& word : *words) letters += word.size();
    require(letters <= size, "words have no letters of their own");
  }
  if (const auto url = mayfly::parse_store_url(text)) {
    require(mayfly::is_store_url(text), "an address is known for one");
    require(mayfly::parse_store_url(url->text()) == *url, "an address in order stays as it is");
  }
  if (const auto endpoint = mayfly::HttpEndpoint::parse(std::string(text)))
    require(mayfly::HttpEndpoint::parse(endpoint->text())->authority() == endpoint->authority(),
            "an endpoint in order stays as it is");
  if (const auto key = mayfly::parse_checkpoint_key({"bucket", ""}, text))
    require(key->checkpoint.name + "/" + key->file == text, "a key is its name and its file");
  return 0;
}
