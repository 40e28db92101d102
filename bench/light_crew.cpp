#include "light_crew.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/overloaded.h"
#include "base/text.h"
#include "data/order.h"
#include "train/data_link.h"

namespace mayfly::bench {
namespace {

constexpr Seconds kBeat{0.5};
constexpr std::int64_t kSamples = 1000;  ///< of the data set, as far as the controller is told

using Kind = DataHeader::Kind;

std::string bytes_of(const DataHeader& header) { return {reinterpret_cast<const char*>(&header), sizeof header}; }

}  // namespace

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) { MAYFLY_CHECK(epoll_ >= 0, "epoll"); }
Poller::~Poller() { ::close(epoll_); }

void Poller::watch(int descriptor, std::function<void()> readable) {
  calls_[descriptor] = std::move(readable);
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  MAYFLY_CHECK(::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll");
}

void Poller::forget(int descriptor) {
  calls_.erase(descriptor);
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

bool Poller::run(Seconds most, const std::function<bool()>& done) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(most);
  std::array<epoll_event, 64> events;
  while (!done()) {
    if (Clock::now() >= end) return false;
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 2);
    for (int i = 0; i < count; ++i) {
      // An earlier one of the round may have closed it.
      const auto found = calls_.find(events[static_cast<std::size_t>(i)].data.fd);
      if (found == calls_.end()) continue;
      const auto call = found->second;
      call();
    }
  }
  return true;
}

int connected_to(const std::string& address) {
  const auto colon = address.rfind(':');
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  MAYFLY_CHECK(::inet_pton(AF_INET, address.substr(0, colon).c_str(), &place.sin_addr) == 1, "an address");
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MAYFLY_CHECK(socket >= 0, "no socket: too few open files allowed?");
  MAYFLY_CHECK(::connect(socket, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0, "connect");
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

int connected_to(const std::string& address, const Credentials& credentials) {
  const int socket = connected_to(address);
  Channel channel(Channel::Side::guest, credentials);
  std::string answer(channel.wanted(), '\0');
  send_all(socket, std::exchange(channel.outgoing(), {}));
  MAYFLY_CHECK(::recv(socket, answer.data(), answer.size(), MSG_WAITALL) == static_cast<ssize_t>(answer.size()),
               "proof");
  MAYFLY_CHECK(channel.take(answer) && channel.plain(), "the other end belongs to the run");
  send_all(socket, channel.outgoing());
  return socket;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // its end is heard of by reading
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool receive_more(int socket, std::string& into) {
  std::array<char, 1 << 16> buffer;
  const auto size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size > 0) into.append(buffer.data(), static_cast<std::size_t>(size));
  return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

LightCrew::~LightCrew() {
  while (!workers_.empty()) drop(workers_.begin()->first);
}

void LightCrew::say(const Worker& worker, const ToController& message) {
  send_all(worker.socket, framed(encoded<ToController>(message)));
}

void LightCrew::join() {
  auto made = std::make_unique<Worker>();
  Worker& worker = *made;
  worker.number = next_++;
  worker.socket = connected_to(options_.address, options_.credentials);
  worker.beat = Clock::now();
  workers_[worker.number] = std::move(made);
  poller_.watch(worker.socket, [this, &worker] { heard(worker); });
  say(worker, Hello{.pid = ::getpid()});
}

void LightCrew::vanish() {
  if (!workers_.empty()) drop(workers_.begin()->first);
}

void LightCrew::drop(int number) {
  const auto found = workers_.extract(number);
  leave_servers(*found.mapped());
  poller_.forget(found.mapped()->socket);
  ::close(found.mapped()->socket);
}

void LightCrew::leave_servers(Worker& worker) {
  for (const Server& server : worker.servers) {
    poller_.forget(server.socket);
    ::close(server.socket);
  }
  worker.servers.clear();
  worker.waiting = 0;
}

void LightCrew::beat() {
  const auto now = Clock::now();
  for (auto& [number, worker] : workers_) {
    if (!worker->welcome || now - worker->beat < kBeat) continue;
    worker->beat = now;
    say(*worker, Alive{});
  }
}

void LightCrew::heard(Worker& worker) {
  const int number = worker.number;
  std::string bytes;
  if (!receive_more(worker.socket, bytes)) {
    ++refused_;
    return drop(number);
  }
  worker.frames.take(bytes);
  while (workers_.contains(number)) {
    const auto frame = worker.frames.next();
    MAYFLY_CHECK(frame, "the controller sends frames");
    if (!*frame) return;
    const auto message = decoded<ToMember>(**frame);
    MAYFLY_CHECK(message, "the controller sends messages");
    if (std::holds_alternative<Lease>(*message)) lease_bytes_ = 4 + (*frame)->size();
    hear(worker, *message);
  }
}

void LightCrew::hear(Worker& worker, const ToMember& message) {
  const auto sent_away = [&] {
    ++refused_;
    drop(worker.number);
  };
  std::visit(Overloaded{
                 [&](const Welcome&) {
                   worker.welcome = true;
                   ++welcomed_;
                   say(worker, Ready{.samples = kSamples, .parameters = 1000});
                 },
                 [&](const Attach& word) { attach(worker, word); }, [&](const Lease& lease) { ask(worker, lease); },
                 [&](const Refused&) { sent_away(); }, [&](const Leave&) { sent_away(); },
                 Ignoring<void, Alive, Halt, Neighbours, Watch, Explain, Measure>{},
                 Ignoring<void, Form, Peers, Proceed, WriteCheckpoint>{},  // it stands in no mesh
                 Ignoring<void, Serve, Commit, Forget, Save>{},            // for servers
             },
             message);
}

void LightCrew::attach(Worker& worker, const Attach& word) {
  leave_servers(worker);
  worker.formation = word.formation;
  worker.lease = {};
  if (!options_.trains) return say(worker, Formed{.formation = word.formation});
  for (const std::string& address : word.addresses) {
    if (!address.empty()) worker.servers.push_back({.socket = connected_to(address, options_.credentials)});
  }
  worker.waiting = static_cast<int>(worker.servers.size());
  for (std::size_t i = 0; i < worker.servers.size(); ++i) {
    poller_.watch(worker.servers[i].socket, [this, &worker, i] { heard_data(worker, worker.servers[i]); });
    send_all(worker.servers[i].socket, bytes_of({.kind = Kind::hello, .formation = word.formation}));
  }
}

void LightCrew::ask(Worker& worker, const Lease& lease) {
  ++leases_;
  sample_ = std::max(sample_, lease.sample);
  worker.lease = lease;
  worker.waiting = static_cast<int>(worker.servers.size());
  for (const Server& server : worker.servers)
    send_all(server.socket, bytes_of({.kind = Kind::pull, .formation = worker.formation, .number = lease.sample}));
}

void LightCrew::heard_data(Worker& worker, Server& server) {
  // A formation that has ended: the controller says what is next.
  if (!receive_more(server.socket, server.in)) return poller_.forget(server.socket);
  while (take_answer(worker, server)) {
  }
}

bool LightCrew::take_answer(Worker& worker, Server& server) {
  DataHeader header;
  if (server.in.size() < sizeof header) return false;
  std::memcpy(&header, server.in.data(), sizeof header);
  const std::size_t payload = header.kind == Kind::weights ? header.count * sizeof(float) : 0;
  if (server.in.size() < sizeof header + payload) return false;
  server.in.erase(0, sizeof header + payload);
  if (header.kind == Kind::weights) {
    const DataHeader push{.kind = Kind::push,
                          .formation = worker.formation,
                          .number = worker.lease.lease,
                          .first = server.first,
                          .count = server.count};
    send_all(server.socket, bytes_of(push) + std::string(server.count * sizeof(float), '\0'));
    return true;
  }
  if (header.kind == Kind::welcome) {
    server.first = header.first;
    server.count = header.count;
  }
  if (--worker.waiting == 0) answered(worker);
  return true;
}

/// By all servers: they are met, or the lease is staged.
void LightCrew::answered(Worker& worker) {
  if (worker.lease.formation != worker.formation) return say(worker, Formed{.formation = worker.formation});
  const std::string frame = framed(encoded<ToController>(
      Pushed{.formation = worker.formation,
             .lease = worker.lease.lease,
             .sample = worker.lease.sample,
             .read = SampleOrder(kSamples, 1).reading(worker.lease.first_sample, worker.lease.samples),
             .loss = 0.5,
             .compute_s = 1e-6,
             .pull_s = 1e-6,
             .push_s = 1e-6}));
  pushed_bytes_ = frame.size();
  send_all(worker.socket, frame);
}

}  // namespace mayfly::bench
