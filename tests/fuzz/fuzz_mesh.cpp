#include <sys/socket.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "fuzz/fuzz.h"
#include "support/token.h"
#include "train/data_link.h"
#include "train/mesh.h"

// What a member of a formation that has gone mad says to another: at the door, or in place of its part of three
// exchanges, a sum along the tree, one in two hops and a state.
namespace {

using mayfly::DataHeader;
using mayfly::fuzz::require;
using Values = std::vector<float>;

constexpr DataHeader kHello{.kind = DataHeader::Kind::hello, .formation = 1, .number = 1, .first = 0, .count = 2};

/// Says it all, and hears the answers out.
void say(const std::string& address, std::string_view bytes, bool hello) {
  mayfly::DataLink link(mayfly::support::known(), nullptr);
  require(link.connect(address, mayfly::kLinkPatience).has_value(), "who belongs to the run is let in");
  if (hello) {
    require(link.send(kHello).has_value(), "it may speak");
    require(link.expect(DataHeader::Kind::welcome, 1).has_value(), "who is awaited is welcome");
  }
  const int socket = link.awaited().fd;
  static_cast<void>(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  ::shutdown(socket, SHUT_WR);
  std::array<char, 4096> heard;
  while (::recv(socket, heard.data(), heard.size(), 0) > 0) {
  }
}

/// The other's values lie behind its header, and at the beginning of what is left.
bool sums(mayfly::Mesh& mesh, std::string_view& left, std::size_t count, std::size_t shared) {
  const Values own(count, 1.0f);
  Values values = own, theirs(shared);
  const auto summed = mesh.sum(std::span(values));
  require(summed || !summed.error().message.empty(), "an error has a message");
  if (!summed) return false;
  require(left.size() >= sizeof(DataHeader) + shared * sizeof(float), "nothing is added that did not come");
  std::memcpy(theirs.data(), left.data() + sizeof(DataHeader), shared * sizeof(float));
  for (std::size_t i = 0; i < shared; ++i) {
    const float sum = own[i] + theirs[i];
    require(std::memcmp(&values[i], &sum, sizeof sum) == 0, "a sum is the sum of what came");
  }
  left.remove_prefix(sizeof(DataHeader) + shared * sizeof(float));
  return true;
}

void exchange(mayfly::Mesh& mesh, std::string_view left) {
  if (!sums(mesh, left, 6, 6)) return;
  // Of 600 values 300 are added up here, and 300 come summed, behind a header of their own.
  if (!sums(mesh, left, 600, 300)) return;
  std::array<std::byte, 24> state{};
  const std::array<std::span<std::byte>, 1> parts = {std::span(state)};
  const std::array receivers = {0};
  static_cast<void>(mesh.hand_over(1, receivers, parts));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  if (text.empty()) return 0;
  const bool hello = text[0] != 'd';  // at the door
  const auto said = text.substr(1);
  const auto network = mayfly::NetworkDevice::open("lo", mayfly::support::known()).value();
  const auto mesh = mayfly::Mesh::open(*network, {.formation = 1, .rank = 0, .size = 2}).value();
  std::thread other([&] {
    say(mesh->word(), said, hello);
    mesh->abort();
  });
  // Where it never becomes a member, its end ends this. At the door a right hello came first.
  if (mesh->connect(std::vector<std::string>{mesh->word(), "127.0.0.1:1"}))
    exchange(*mesh, said.substr(hello ? 0 : sizeof(DataHeader)));
  mesh->abort();
  other.join();
  return 0;
}
