#include "data/safetensors.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mayfly::fuzz::require;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = mayfly::parse_safetensors({bytes.begin(), bytes.end()}, mayfly::fuzz::kFile);
  if (!file) {
    mayfly::fuzz::check_message(file.error());
    return 0;
  }
  // Each byte behind the header belongs to one tensor, in order.
  std::size_t sum = 0;
  for (const auto& tensor : file->tensors) sum += tensor.bytes.size();
  require(sum <= size, "the tensors are in the file");
  const std::byte* at = file->bytes.data() + size - sum;
  for (const auto& tensor : file->tensors) {
    require(tensor.bytes.data() == at, "the tensors follow one another to the end");
    require(file->find(tensor.name) == &tensor, "a name stands once");
    at += tensor.bytes.size();
  }
  // What was read can be written and reads the same.
  std::string again = mayfly::safetensors_header(file->tensors, file->notes);
  std::vector<std::byte> copy(std::as_bytes(std::span(again)).begin(), std::as_bytes(std::span(again)).end());
  require(copy.size() % 8 == 0, "the header is padded");
  copy.resize(copy.size() + sum);
  const auto twice = mayfly::parse_safetensors(std::move(copy), mayfly::fuzz::kFile);
  require(twice.has_value(), "what is written can be read");
  require(twice->notes == file->notes && twice->tensors.size() == file->tensors.size(), "nothing is lost");
  return 0;
}
