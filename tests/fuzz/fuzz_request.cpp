#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "fuzz/fuzz.h"
#include "support/temp_folder.h"
#include "web/dashboard.h"

// What a stranger says to the dashboard's port.
namespace {

using mayfly::fuzz::require;

constexpr std::string_view kSecret = "lies beside the runs";
constexpr std::size_t kMostHeard = 1 << 20;

struct Site {
  Site() {
    std::filesystem::create_directories(folder.path() / "runs" / "count");
    write("secret.json", kSecret);
    write("runs/count/request.json", "{}");
    write("runs/count/journal.jsonl", "{\"format\":\"mayfly-journal/1\",\"job\":\"count\"}\n");
    write("runs/count/summary.json", R"({"end":"trained","samples":7})");
  }
  void write(const std::string& name, std::string_view text) { std::ofstream(folder.path() / name) << text; }

  const mayfly::support::TempFolder folder{};
};

int connected(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  require(::connect(socket, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0, "it listens");
  return socket;
}

std::string answer(int port, std::string_view words) {
  const int socket = connected(port);
  static_cast<void>(::send(socket, words.data(), words.size(), MSG_NOSIGNAL));
  ::shutdown(socket, SHUT_WR);
  std::string heard;
  std::array<char, 1 << 16> buffer;
  while (heard.size() < kMostHeard) {
    const auto size = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    heard.append(buffer.data(), static_cast<std::size_t>(size));
  }
  // Ports that wait for late packets would be used up within a minute.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Site site;
  static const auto dashboard = mayfly::Dashboard::start({.root = site.folder.path() / "runs"}).value();
  const auto heard = answer(dashboard.port(), mayfly::fuzz::text_of(data, size));
  require(heard.empty() || heard.starts_with("HTTP/1."), "an answer is one");
  require(heard.find(kSecret) == std::string::npos, "nothing outside of the runs is told");
  return 0;
}
