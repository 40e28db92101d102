#include <fstream>

#include "fuzz/fuzz.h"
#include "nn/described_network.h"
#include "support/temp_folder.h"

// A network that a script has described for its servers.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mayfly::support::TempFolder folder;
  const auto path = folder.path() / "network.safetensors";
  std::ofstream(path, std::ios::binary) << mayfly::fuzz::text_of(data, size);
  const auto network = mayfly::load_described_network(path);
  if (!network) {
    mayfly::fuzz::require(network.error().message.starts_with(path.string() + ":"), "a message begins with the file");
    return 0;
  }
  std::size_t held = 0;
  for (const auto& tensors : {(*network)->parameters(), (*network)->buffers()}) held += tensors.size();
  mayfly::fuzz::require(held <= size, "no more tensors than the file has bytes");
  return 0;
}
