// shards [MEGABYTES] [ROUNDS]: push and pull of a whole model through parameter servers, each a process of its own on
// loopback, beside a plain TCP connection to a process that takes and gives back the same bytes. The two alternate in
// one run, so that a busy machine slows both alike; medians over the rounds, and the fastest of each.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "base/check.h"
#include "nn/shard.h"
#include "train/shard_client.h"
#include "train/shard_server.h"

namespace {

using namespace mayfly;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return Seconds(Clock::now() - start).count(); }

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void write_all(int to, const void* bytes, std::size_t size) {
  for (const auto* at = static_cast<const char*>(bytes); size > 0;) {
    const auto sent = ::write(to, at, size);
    MAYFLY_CHECK(sent > 0, "write");
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

/// False at the end.
bool read_all(int from, void* bytes, std::size_t size) {
  for (auto* at = static_cast<char*>(bytes); size > 0;) {
    const auto more = ::read(from, at, size);
    if (more <= 0) return false;
    at += more;
    size -= static_cast<std::size_t>(more);
  }
  return true;
}

/// Another process, with a socket to talk to it; it goes when this one does.
struct Child {
  int control = -1;
  pid_t pid = 0;

  explicit Child(const std::function<void(int)>& live) {
    int ends[2];
    MAYFLY_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      live(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    control = ends[0];
  }
  ~Child() {
    ::close(control);
    ::kill(pid, SIGKILL);  // its siblings hold this end of its socket too: it would not hear that it was closed
    ::waitpid(pid, nullptr, 0);
  }
  Child(const Child&) = delete;
};

struct Order {
  bool counts = false;
  std::int64_t lease = 0;
};

/// A server that commits or forgets leases as it is told.
void live_as_server(int control, const Credentials& run, std::size_t floats, int shard, int shards) {
  use_threads(1);
  const auto server = std::move(ShardServer::open({.credentials = run}).value());
  server->begin(1, Shard::make(TrainSpec{}, {.parameters = floats}, shard, shards), 0);
  std::string address = server->address();
  address.resize(64);
  write_all(control, address.data(), address.size());
  for (Order order; read_all(control, &order, sizeof order);) {
    const auto sample = server->sample();
    const bool done =
        order.counts ? server->commit({.formation = 1, .from = sample, .sample = sample + 1, .leases = {order.lease}})
                           .has_value()
                     : (server->forget({.formation = 1, .leases = {order.lease}}), true);
    write_all(control, &done, sizeof done);
  }
}

void send_at_once(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Takes so many bytes, says so, and gives as many back when asked.
void live_as_plain_peer(int control, std::size_t bytes) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  MAYFLY_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&place), size) == 0 && ::listen(listener, 1) == 0 &&
                   ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size) == 0,
               "listen");
  write_all(control, &place, sizeof place);
  const int socket = ::accept(listener, nullptr, nullptr);
  send_at_once(socket);
  std::vector<char> memory(bytes);
  char word = 0;
  while (::recv(socket, memory.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes)) {
    write_all(socket, &word, 1);
    if (!read_all(socket, &word, 1)) return;
    write_all(socket, memory.data(), bytes);
  }
}

int connected_to(const Child& peer) {
  sockaddr_in place{};
  MAYFLY_CHECK(read_all(peer.control, &place, sizeof place), "no place of the plain peer");
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  MAYFLY_CHECK(::connect(socket, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0, "connect");
  send_at_once(socket);
  return socket;
}

double plain_round(int socket, std::vector<float>& out, std::vector<float>& in) {
  const auto start = Clock::now();
  char word = 0;
  write_all(socket, out.data(), out.size() * sizeof(float));
  MAYFLY_CHECK(read_all(socket, &word, 1), "no answer");
  write_all(socket, &word, 1);
  const auto size = in.size() * sizeof(float);
  MAYFLY_CHECK(::recv(socket, in.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size), "receive");
  return since(start);
}

struct Times {
  std::vector<double> shards{}, plain{}, ratio{}, commit{};
};

void tell(const std::vector<std::unique_ptr<Child>>& servers, const Order& order) {
  for (const auto& server : servers) write_all(server->control, &order, sizeof order);
  for (const auto& server : servers) {
    bool done = false;
    MAYFLY_CHECK(read_all(server->control, &done, sizeof done) && done, "a server did not obey");
  }
}

void measure(const Credentials& run, std::size_t floats, int shards, int rounds) {
  std::vector<std::unique_ptr<Child>> servers;
  for (int shard = 0; shard < shards; ++shard)
    servers.push_back(
        std::make_unique<Child>([&, shard](int control) { live_as_server(control, run, floats, shard, shards); }));
  const Child peer([&](int control) { live_as_plain_peer(control, floats * sizeof(float)); });
  ShardClient::Options options{.formation = 1, .shards = shards, .credentials = run, .size = floats};
  for (const auto& server : servers) {
    std::string address(64, 0);
    MAYFLY_CHECK(read_all(server->control, address.data(), address.size()), "no address of a server");
    options.addresses.emplace_back(address.c_str());
  }
  const auto client = ShardClient::make(options);
  MAYFLY_CHECK(client->connect(), "connect");
  const int socket = connected_to(peer);
  std::vector<float> gradient(floats, 1e-3F), weights(floats);
  Times times;
  for (int round = -2; round < rounds; ++round) {
    const double plain = plain_round(socket, gradient, weights);
    const auto start = Clock::now();
    client->begin_push(round, gradient);
    MAYFLY_CHECK(client->finish_push(), "push");
    const double pushed = since(start);
    const auto middle = Clock::now();
    tell(servers, {.counts = true, .lease = round});
    const double commit = since(middle);
    const auto after = Clock::now();
    MAYFLY_CHECK(client->pull(0, weights), "pull");
    const double both = pushed + since(after);
    if (round < 0) continue;  // memory is touched for the first time
    times.shards.push_back(both);
    times.plain.push_back(plain);
    times.ratio.push_back(plain / both);
    times.commit.push_back(commit);
  }
  ::close(socket);
  const double bytes = 2.0 * static_cast<double>(floats) * sizeof(float);
  fmt::print("{} servers{}: push and pull {:.1f} ms, {:.2f} GB/s, {:.2f} of plain TCP's speed; ", shards,
             run.encrypted() ? ", encrypted" : "", 1e3 * median(times.shards), bytes / median(times.shards) / 1e9,
             median(times.ratio));
  fmt::print("fastest rounds {:.1f} and {:.1f} ms, {:.2f}; update {:.1f} ms\n", 1e3 * least(times.shards),
             1e3 * least(times.plain), least(times.plain) / least(times.shards), 1e3 * median(times.commit));
}

}  // namespace

int main(int argc, char** argv) {
  const double megabytes = argc > 1 ? std::atof(argv[1]) : 100;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  const auto floats = static_cast<std::size_t>(megabytes * 1e6 / sizeof(float));
  fmt::print("{} MB, {} rounds, medians; plain TCP in turns with it\n", megabytes, rounds);
  const Credentials plain = Credentials::from(fresh_token(false).value()).value();
  const Credentials encrypted = Credentials::from(fresh_token(true).value()).value();
  for (const int shards : {1, 2, 4}) {
    for (const auto& run : {plain, encrypted}) {
      std::fflush(stdout);
      measure(run, floats, shards, rounds);
    }
  }
}
