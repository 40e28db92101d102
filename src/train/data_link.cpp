#include "train/data_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "train/reach.h"

namespace mayfly {

Result<sockaddr_in> socket_address(const std::string& address) {
  sockaddr_in socket{};
  socket.sin_family = AF_INET;
  const auto colon = address.rfind(':');
  const auto port = colon == address.npos ? std::nullopt : parse_integer(address.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535 ||
      ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &socket.sin_addr) != 1)
    return fail("'{}' is no address of a server, want one such as 127.0.0.1:40001", address.substr(0, 60));
  socket.sin_port = htons(static_cast<std::uint16_t>(*port));
  return socket;
}

namespace {

/// How a connection that is being made turned out: 0, or why not.
int connected(int socket, Seconds patience) {
  pollfd event{.fd = socket, .events = POLLOUT, .revents = 0};
  int ready = 0;
  do ready = ::poll(&event, 1, static_cast<int>(patience.count() * 1e3));
  while (ready < 0 && errno == EINTR);
  if (ready <= 0) return ready == 0 ? ETIMEDOUT : errno;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

std::span<const std::byte> bytes_of(const DataHeader& header) { return std::as_bytes(std::span(&header, 1)); }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<char> chars_of(std::span<std::byte> bytes) { return {reinterpret_cast<char*>(bytes.data()), bytes.size()}; }

msghdr message_of(std::span<iovec> parts) {
  return {.msg_name = nullptr,
          .msg_namelen = 0,
          .msg_iov = parts.data(),
          .msg_iovlen = parts.size(),
          .msg_control = nullptr,
          .msg_controllen = 0,
          .msg_flags = 0};
}

std::array<iovec, 2> vector_of(std::span<const std::byte> first, std::span<const std::byte> second) {
  return {iovec{const_cast<std::byte*>(first.data()), first.size()},
          iovec{const_cast<std::byte*>(second.data()), second.size()}};
}

/// What the system takes without waiting.
Result<std::size_t> send_now(int socket, std::span<const std::byte> first, std::span<const std::byte> second = {}) {
  auto parts = vector_of(first, second);
  const auto message = message_of(parts);
  const auto sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return fail("send: {}", std::strerror(errno));
}

/// What is encrypted at a time.
constexpr std::size_t kSealed = 1 << 16;

}  // namespace

DataLink::DataLink(int socket, Channel channel, std::shared_ptr<EmulatedNetwork> network)
    : socket_(socket), network_(std::move(network)), channel_(std::move(channel)) {
  const int undelayed = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &undelayed, sizeof undelayed);
  mayfly::limit_silence(socket_);
}

DataLink::~DataLink() {
  if (socket_ >= 0) ::close(socket_);
}

DataLink::DataLink(const Credentials& credentials, std::shared_ptr<EmulatedNetwork> network)
    : DataLink(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
               Channel(Channel::Side::guest, credentials), std::move(network)) {}

DataLink::DataLink(int socket, const Credentials& credentials, std::shared_ptr<EmulatedNetwork> network)
    : DataLink(socket, Channel(Channel::Side::host, credentials), std::move(network)) {}

Result<void> DataLink::connect(const std::string& address, Seconds patience) {
  const auto place = socket_address(address);
  if (!place) return unexpected(place.error());
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&*place), sizeof *place) != 0 && errno != EINPROGRESS)
    return fail("{}: {}", address, std::strerror(errno));
  // Only what has begun can be shut down: an earlier abort() is seen here.
  const int error = over_ ? ECANCELED : connected(socket_, patience);
  if (error != 0) return fail("{}: {}", address, std::strerror(error));
  ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) & ~O_NONBLOCK);
  if (auto proven = prove(patience); !proven) return fail("{}: {}", address, proven.error().message);
  return {};
}

Result<void> DataLink::prove(Seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto proven = advance_proof();
    if (!proven) return unexpected(proven.error());
    if (*proven) return {};
    const Seconds left = end - std::chrono::steady_clock::now();
    if (left <= Seconds(0)) return fail("it proves nothing");
    auto event = awaited();
    if (::poll(&event, 1, static_cast<int>(std::ceil(left.count() * 1e3))) < 0 && errno != EINTR)
      return fail("poll: {}", std::strerror(errno));
  }
}

Result<bool> DataLink::advance_proof() {
  std::array<char, kSealed> buffer;
  if (!channel_.open()) {
    const auto size = ::recv(socket_, buffer.data(), std::min(buffer.size(), channel_.wanted()), MSG_DONTWAIT);
    if (size < 0 && errno != EAGAIN && errno != EINTR) return fail("receive: {}", std::strerror(errno));
    if (size == 0) return fail("closed by the other end: is the token of this run?");
    const auto clear = channel_.take({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))});
    if (!clear) return unexpected(clear.error());
    clear_ += *clear;
  }
  auto& outgoing = channel_.outgoing();
  if (!outgoing.empty()) {
    const auto sent = send_now(socket_, std::as_bytes(std::span(outgoing)));
    if (!sent) return unexpected(sent.error());
    outgoing.erase(0, *sent);
  }
  return channel_.open() && outgoing.empty();
}

pollfd DataLink::awaited() {
  const bool saying = !channel_.outgoing().empty();
  return {.fd = socket_, .events = static_cast<short>(saying ? POLLIN | POLLOUT : POLLIN), .revents = 0};
}

Result<void> DataLink::flush() {
  auto& outgoing = channel_.outgoing();
  if (outgoing.empty()) return {};
  auto sent = send_all(std::as_bytes(std::span(outgoing)), {});
  outgoing.clear();
  return sent;
}

Result<void> DataLink::send_all(std::span<const std::byte> first, std::span<const std::byte> second) {
  while (!first.empty() || !second.empty()) {
    auto parts = vector_of(first, second);
    const auto message = message_of(parts);
    const auto sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail("send: {}", std::strerror(errno));
    const auto of_first = std::min(first.size(), static_cast<std::size_t>(sent));
    first = first.subspan(of_first);
    second = second.subspan(static_cast<std::size_t>(sent) - of_first);
  }
  return {};
}

Result<void> DataLink::send(const DataHeader& header, std::span<const std::byte> payload) {
  if (!network_ && channel_.plain()) return send_all(bytes_of(header), payload);
  const auto give = [&](std::span<const std::byte> bytes) {
    if (channel_.plain()) return send_all(bytes, {});
    channel_.put(text_of(bytes));
    return flush();
  };
  auto sent = give(bytes_of(header));
  if (network_) network_->out.pass(sizeof header);
  while (sent && !payload.empty()) {
    const auto chunk = payload.first(std::min(payload.size(), network_ ? Lane::kChunk : kSealed));
    payload = payload.subspan(chunk.size());
    sent = give(chunk);
    if (network_) network_->out.pass(chunk.size());
  }
  return sent;
}

Result<std::size_t> DataLink::send_some(std::span<const std::byte> payload) { return send_some(payload, {}); }

Result<std::size_t> DataLink::send_some(std::span<const std::byte> first, std::span<const std::byte> second) {
  const auto shorten = [&](std::size_t most) {
    first = first.first(std::min(first.size(), most));
    second = second.first(std::min(second.size(), most - first.size()));
  };
  if (network_) shorten(Lane::kChunk);
  if (channel_.plain()) return send_now(socket_, first, second);
  auto& sealed = channel_.outgoing();
  std::size_t taken = 0;
  if (sealed.empty()) {
    shorten(kSealed);
    for (const auto part : {first, second}) channel_.put(text_of(part));
    taken = first.size() + second.size();
  }
  auto sent = send_now(socket_, std::as_bytes(std::span(sealed)));
  if (!sent) return sent;
  sealed.erase(0, *sent);
  return taken;
}

Result<void> DataLink::await_room() {
  pollfd event{.fd = socket_, .events = POLLOUT, .revents = 0};
  if (::poll(&event, 1, -1) < 0 && errno != EINTR) return fail("poll: {}", std::strerror(errno));
  return {};
}

Result<std::size_t> DataLink::unsent() {
  if (auto sent = flush(); !sent) return unexpected(sent.error());
  int bytes = 0;
  if (::ioctl(socket_, SIOCOUTQ, &bytes) != 0) return fail("unsent bytes: {}", std::strerror(errno));
  return static_cast<std::size_t>(std::max(0, bytes));
}

Result<std::size_t> DataLink::receive_sealed(std::span<std::byte> payload) {
  if (auto sent = flush(); !sent) return unexpected(sent.error());
  std::size_t received = 0;
  received += deliver(payload);
  std::array<char, kSealed> buffer;
  std::string_view sealed;
  while (received < payload.size()) {
    const auto opened = channel_.take(std::exchange(sealed, {}), chars_of(payload.subspan(received)));
    if (!opened) return unexpected(opened.error());
    received += *opened;
    if (*opened > 0) continue;
    const auto more = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return fail("receive: {}", errno == EAGAIN ? "silence" : std::strerror(errno));
    if (more == 0) break;
    if (network_) network_->in.pass(static_cast<std::size_t>(more));
    sealed = {buffer.data(), static_cast<std::size_t>(more)};
  }
  return received;
}

Result<std::size_t> DataLink::receive_some(std::span<std::byte> payload) {
  if (!channel_.plain()) return receive_sealed(payload);
  std::size_t received = 0;
  while (received < payload.size()) {
    auto rest = payload.subspan(received);
    if (network_) rest = rest.first(std::min(rest.size(), Lane::kChunk));
    const auto more = ::recv(socket_, rest.data(), rest.size(), MSG_WAITALL);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return fail("receive: {}", errno == EAGAIN ? "silence" : std::strerror(errno));
    if (more == 0) break;
    received += static_cast<std::size_t>(more);
    if (network_) network_->in.pass(static_cast<std::size_t>(more));
  }
  return received;
}

std::size_t DataLink::deliver(std::span<std::byte> place) {
  const auto size = std::min(clear_.size() - clear_at_, place.size());
  if (size == 0) return 0;
  std::memcpy(place.data(), clear_.data() + clear_at_, size);
  clear_at_ += size;
  return size;
}

Result<std::size_t> DataLink::receive_now(std::span<std::byte> first, std::span<std::byte> second) {
  const auto taken = [](int socket, std::span<iovec> parts) -> Result<std::size_t> {
    auto message = message_of(parts);
    const auto size = ::recvmsg(socket, &message, MSG_DONTWAIT);
    if (size > 0) return static_cast<std::size_t>(size);
    if (size == 0) return fail("the connection was closed");
    if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
    return fail("receive: {}", std::strerror(errno));
  };
  if (channel_.plain()) {
    auto parts = vector_of(first, second);
    return taken(socket_, parts);
  }
  std::array<char, kSealed> buffer;
  std::string_view sealed;
  while (true) {
    std::size_t received = 0;
    for (auto part : {first, second}) {
      const auto held = deliver(part);
      const auto opened = channel_.take(std::exchange(sealed, {}), chars_of(part.subspan(held)));
      if (!opened) return opened;
      received += held + *opened;
      if (held + *opened < part.size()) break;
    }
    if (received > 0) return received;
    // A part of what is encrypted brings nothing to read yet.
    iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
    const auto more = taken(socket_, std::span(&part, 1));
    if (!more || *more == 0) return more;
    sealed = {buffer.data(), *more};
  }
}

Result<void> DataLink::receive_into(std::span<std::byte> payload) {
  const auto received = receive_some(payload);
  if (!received) return unexpected(received.error());
  if (*received < payload.size()) return fail("the connection ended after {} of {} bytes", *received, payload.size());
  return {};
}

Result<std::optional<DataHeader>> DataLink::receive() {
  DataHeader header;
  const auto received = receive_some(std::as_writable_bytes(std::span(&header, 1)));
  if (!received) return unexpected(received.error());
  if (*received == 0) return std::nullopt;
  if (*received < sizeof header) return fail("the connection ended within a header");
  if (header.magic != DataHeader::kMagic) return fail("{:#x} is not how a header begins", header.magic);
  return header;
}

Result<DataHeader> DataLink::expect(DataHeader::Kind kind, std::int64_t formation) {
  const auto header = receive();
  if (!header) return unexpected(header.error());
  if (!*header) return fail("the connection was closed");
  if ((*header)->kind != kind || (*header)->formation != formation)
    return fail("answer {} of formation {}, want {} of formation {}", static_cast<unsigned>((*header)->kind),
                (*header)->formation, static_cast<unsigned>(kind), formation);
  return **header;
}

namespace {

void set_limit(int socket, int option, Seconds limit) {
  const double whole = std::floor(limit.count());
  const timeval time{.tv_sec = static_cast<time_t>(whole),
                     .tv_usec = static_cast<suseconds_t>((limit.count() - whole) * 1e6)};
  ::setsockopt(socket, SOL_SOCKET, option, &time, sizeof time);
}

}  // namespace

void DataLink::limit_silence(std::optional<Seconds> limit) {
  set_limit(socket_, SO_RCVTIMEO, limit.value_or(Seconds(0)));
}

void DataLink::limit_sending(Seconds limit) { set_limit(socket_, SO_SNDTIMEO, limit); }

bool DataLink::hung_up() const {
  if (over_) return true;  // what came before abort() can still be read, and would hide it
  char ignored = 0;
  const auto seen = ::recv(socket_, &ignored, 1, MSG_PEEK | MSG_DONTWAIT);
  return seen == 0 || (seen < 0 && errno != EAGAIN && errno != EINTR);
}

void DataLink::abort() {
  over_ = true;
  ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace mayfly
