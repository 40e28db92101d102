#include "fuzz/fuzz.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace {

using mayfly::fuzz::require;

/// The frames of a stream that arrives in pieces of this size; nothing from the first error on.
std::string joined_frames(std::string_view stream, std::size_t piece) {
  mayfly::FrameReader reader;
  std::string all;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    reader.take(stream.substr(at, piece));
    while (true) {
      const auto frame = reader.next();
      if (!frame) return all + "!";
      if (!*frame) break;
      all += mayfly::framed(**frame);
    }
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  const auto whole = joined_frames(text, size + 1);
  require(whole == joined_frames(text, 1) && whole == joined_frames(text, 7), "pieces do not change the frames");
  require(joined_frames(mayfly::framed(text), 5) == mayfly::framed(text), "a frame comes back as it was");

  const auto message = mayfly::decoded(text);
  if (!message) {
    require(!message.error().message.empty(), "an error has a message");
    return 0;
  }
  const auto written = mayfly::encoded(*message);
  const auto again = mayfly::decoded(written);
  require(again.has_value(), "what was understood can be sent");
  require(mayfly::encoded(*again) == written, "and means the same");
  return 0;
}
