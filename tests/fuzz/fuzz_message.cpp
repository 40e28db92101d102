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

/// Whether it is a message of this direction.
template <class Direction>
bool understood(std::string_view text) {
  const auto message = mayfly::decoded<Direction>(text);
  if (!message) {
    require(!message.error().message.empty(), "an error has a message");
    return false;
  }
  const auto written = mayfly::encoded<Direction>(*message);
  const auto again = mayfly::decoded<Direction>(written);
  require(again.has_value(), "what was understood can be sent");
  require(mayfly::encoded<Direction>(*again) == written, "and means the same");
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  const auto whole = joined_frames(text, size + 1);
  require(whole == joined_frames(text, 1) && whole == joined_frames(text, 7), "pieces do not change the frames");
  require(joined_frames(mayfly::framed(text), 5) == mayfly::framed(text), "a frame comes back as it was");

  const bool to_controller = understood<mayfly::ToController>(text);
  const bool to_member = understood<mayfly::ToMember>(text);
  const bool to_operator = understood<mayfly::ToOperator>(text);
  const bool to_carrier = understood<mayfly::ToCarrier>(text);
  // Heartbeats go both ways, and whoever is told something may be refused.
  require(to_controller + to_member + to_operator + to_carrier <= 3, "a message has its direction");
  return 0;
}
