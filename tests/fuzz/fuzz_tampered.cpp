#include <algorithm>

#include "fuzz/fuzz.h"
#include "support/token.h"

namespace {

using mayfly::Channel;
using mayfly::fuzz::require;

constexpr std::string_view kSaid = "what one end tells the other ";
constexpr int kRounds = 12;

/// Somebody between two ends of a run, who changes a byte here and there, or holds some back.
struct Meddler {
  std::string_view script;
  bool meddled = false;

  int next() {
    if (script.empty()) return 0;
    const auto byte = static_cast<unsigned char>(script.front());
    script.remove_prefix(1);
    return byte;
  }
  /// Of each delivery: which byte is changed, how, and how much of it arrives at all (0: everything).
  std::string passed(std::string bytes) {
    const int place = next() * 256 + next(), change = next(), cut = next();
    if (bytes.empty()) return bytes;
    const auto at = static_cast<std::size_t>(place) % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ change);
    if (cut != 0) bytes.resize(bytes.size() * static_cast<std::size_t>(cut) / 256);
    meddled = meddled || change != 0 || cut != 0;
    return bytes;
  }
};

/// What arrives at `end`, in pieces that it wants; false: it will not take any more.
bool deliver(Channel& end, std::string_view bytes, std::string& heard) {
  while (!bytes.empty()) {
    const auto piece = end.open() ? bytes.size() : std::min(bytes.size(), end.wanted());
    const auto clear = end.take(bytes.substr(0, piece));
    if (!clear) {
      require(!clear.error().message.empty(), "an error has a message");
      return false;
    }
    heard += *clear;
    bytes.remove_prefix(piece);
  }
  return true;
}

void play(const mayfly::Credentials& credentials, std::string_view script) {
  Channel host(Channel::Side::host, credentials), guest(Channel::Side::guest, credentials);
  Meddler meddler{.script = script};
  std::string said, to_host, to_guest;
  bool good = true;
  for (int round = 0; good && round < kRounds; ++round) {
    for (Channel* end : {&host, &guest}) end->put(kSaid);
    said += kSaid;
    good = deliver(host, meddler.passed(std::exchange(guest.outgoing(), {})), to_host) &&
           deliver(guest, meddler.passed(std::exchange(host.outgoing(), {})), to_guest);
  }
  require(meddler.meddled || (good && host.open() && guest.open()), "ends that are left alone find each other");
  if (!credentials.encrypted()) return;
  require(said.starts_with(to_host) && said.starts_with(to_guest), "what is encrypted arrives as it was said, or not");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto plain = mayfly::support::known();
  static const auto sealed = mayfly::support::sealed();
  const auto text = mayfly::fuzz::text_of(data, size);
  play(plain, text);
  play(sealed, text);
  return 0;
}
