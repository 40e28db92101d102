#include "fuzz/fuzz.h"
#include "support/token.h"

namespace {

using mayfly::Channel;
using mayfly::fuzz::require;

/// A stranger's bytes in pieces of this size: it is never let in, and hears of nothing but the host's own proof.
void talk(const mayfly::Credentials& credentials, std::string_view stream, std::size_t piece) {
  for (const auto side : {Channel::Side::host, Channel::Side::guest}) {
    Channel channel(side, credentials);
    channel.put("a secret of the run");
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      const auto clear = channel.take(stream.substr(at, piece));
      require(!channel.open(), "who knows no secret is not let in");
      if (!clear) break;
      require(clear->empty(), "nothing of a stranger's is passed on");
    }
    require(channel.outgoing().find("a secret of the run") == std::string::npos, "nothing is said to strangers");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto plain = mayfly::support::known();
  static const auto sealed = mayfly::support::sealed();
  const auto text = mayfly::fuzz::text_of(data, size);
  talk(plain, text, size + 1);
  talk(plain, text, 7);
  talk(sealed, text, size + 1);
  return 0;
}
