#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "wire/frame.h"
#include "wire/loop_parts.h"
// loop_parts.h chooses asio without Boost for what follows.
#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

namespace mayfly {

using asio::ip::tcp;

namespace {

/// A peer that takes nothing more may hold up close() this long.
constexpr std::chrono::seconds kFarewell{5};
/// For a stranger to prove that it is none.
constexpr std::chrono::seconds kProofPatience{5};
/// Those that may do so at a time; the one that has waited longest goes when more come.
constexpr std::size_t kMostStrangers = 2048;

/// Processes started later must not hold the connection open when this one ends.
void keep_private(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

}  // namespace

struct Link::Parts : std::enable_shared_from_this<Parts> {
  Parts(tcp::socket connected, Loop& owner, Channel its_channel)
      : socket(std::move(connected)),
        patience(socket.get_executor()),
        loop(owner.parts()),
        channel(std::move(its_channel)) {
    asio::error_code ignored;
    keep_private(socket.native_handle());
    socket.set_option(tcp::no_delay(true), ignored);
    socket.non_blocking(true, ignored);
  }

  void read();
  void read_now();
  void take(std::string_view bytes);
  void deliver();
  void send(const std::string& frame);
  void write_rest();
  /// Writes what the system takes now; an error is left to the reading side to find.
  void push();
  void fail(std::string why);
  void leave();
  void shut();

  tcp::socket socket;
  asio::steady_timer patience;
  Loop::Parts& loop;
  Channel channel;
  TextCalls calls{};
  std::function<void()> proven{};  ///< of a listener's: the peer is no stranger
  FrameReader frames{};
  bool started = false;                ///< its owner listens to messages
  std::optional<std::string> ended{};  ///< before its owner did
  bool reading = false;
  bool waiting = false;  ///< for room to send
  bool heard = true;     ///< callbacks are wanted
  bool leaving = false;
};

void Link::Parts::read() {
  reading = true;
  socket.async_wait(tcp::socket::wait_read, [self = shared_from_this()](asio::error_code error) {
    if (error) return self->fail("connection broken: " + error.message());
    self->read_now();
    if (self->socket.is_open()) self->read();
  });
}

void Link::Parts::read_now() {
  asio::error_code error;
  const std::size_t size = socket.read_some(asio::buffer(loop.incoming), error);
  if (error == asio::error::would_block) return;
  if (error == asio::error::eof) return fail("closed by the peer");
  if (error) return fail("connection broken: " + error.message());
  if (heard) take({loop.incoming.data(), size});
}

void Link::Parts::take(std::string_view bytes) {
  const auto clear = channel.take(bytes);
  if (!waiting && !channel.outgoing().empty()) push();
  if (!clear) return fail(clear.error().message);
  frames.take(*clear);
  if (proven && channel.open()) std::exchange(proven, {})();
  if (started) deliver();
}

void Link::Parts::deliver() {
  while (heard) {
    auto frame = frames.next();
    if (!frame) return fail(frame.error().message);
    if (!*frame) return;
    if (const auto taken = calls.text(**frame); !taken) return fail(taken.error().message);
  }
}

void Link::Parts::send(const std::string& frame) {
  if (leaving || !socket.is_open()) return;
  channel.put(frame);
  if (!waiting) push();
}

void Link::Parts::push() {
  asio::error_code error;
  std::size_t sent = 0;
  std::string& unsent = channel.outgoing();
  while (sent < unsent.size() && !error)
    sent += socket.write_some(asio::buffer(unsent.data() + sent, unsent.size() - sent), error);
  unsent.erase(0, sent);
  if (error && error != asio::error::would_block) unsent.clear();
  if (!unsent.empty()) write_rest();
}

void Link::Parts::write_rest() {
  waiting = true;
  socket.async_wait(tcp::socket::wait_write, [self = shared_from_this()](asio::error_code error) {
    self->waiting = false;
    if (error || !self->socket.is_open()) return;
    self->push();
    if (self->leaving && self->channel.outgoing().empty()) self->leave();
  });
}

void Link::Parts::fail(std::string why) {
  shut();
  if (!calls.closed) {
    ended = std::move(why);
  } else if (std::exchange(heard, false)) {
    calls.closed(std::move(why));
  }
}

/// Closing with unread input would reset the connection, and the peer might lose what it was sent: says that nothing
/// more comes, and reads on until the peer has gone.
void Link::Parts::leave() {
  asio::error_code ignored;
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  if (!reading) read();
}

void Link::Parts::shut() {
  asio::error_code ignored;
  socket.close(ignored);
  patience.cancel();
}

Link::Link(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
Link::~Link() {
  parts_->heard = false;
  if (!parts_->leaving) parts_->shut();
}

void Link::start_reading(TextCalls calls) {
  parts_->calls = std::move(calls);
  parts_->started = true;
  if (!parts_->reading) parts_->read();
  asio::post(parts_->socket.get_executor(), [parts = parts_] {
    parts->deliver();
    if (parts->ended) parts->fail(*parts->ended);
  });
}
void Link::send_text(const std::string& text) { parts_->send(framed(text)); }

void Link::close() {
  parts_->heard = false;
  if (std::exchange(parts_->leaving, true) || !parts_->socket.is_open()) return;
  parts_->patience.expires_after(kFarewell);
  parts_->patience.async_wait([parts = parts_](asio::error_code error) {
    if (!error) parts->shut();
  });
  if (parts_->channel.outgoing().empty()) parts_->leave();
}

namespace {

class TcpListener : public Listener {
 public:
  struct Parts : std::enable_shared_from_this<Parts> {
    Parts(Loop& owner, Credentials known, Calls its_calls)
        : loop(owner),
          credentials(std::move(known)),
          calls(std::move(its_calls)),
          acceptor(owner.parts().context),
          pause(owner.parts().context) {}
    void accept();
    void examine(tcp::socket socket);
    void send_away(int number, const std::string& why);
    Loop& loop;
    const Credentials credentials;
    const Calls calls;
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    std::map<int, std::shared_ptr<Link::Parts>> strangers{};  ///< the oldest first
    int next = 0;
  };
  explicit TcpListener(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
  ~TcpListener() override {
    asio::error_code ignored;
    parts_->acceptor.close(ignored);
    parts_->pause.cancel();
    for (auto& [number, stranger] : parts_->strangers) {
      stranger->heard = false;
      stranger->shut();
    }
    parts_->strangers.clear();
  }
  std::uint16_t port() const override {
    asio::error_code ignored;
    return parts_->acceptor.local_endpoint(ignored).port();
  }

 private:
  std::shared_ptr<Parts> parts_;
};

void TcpListener::Parts::accept() {
  acceptor.async_accept([self = shared_from_this()](asio::error_code error, tcp::socket socket) {
    if (!self->acceptor.is_open()) return;
    if (!error) {
      self->accept();
      return self->examine(std::move(socket));
    }
    // Out of descriptors, or the peer has gone already: not the end of listening.
    if (self->calls.failed) self->calls.failed(error.message());
    self->pause.expires_after(std::chrono::milliseconds(100));
    self->pause.async_wait([self](asio::error_code stopped) {
      if (!stopped && self->acceptor.is_open()) self->accept();
    });
  });
}

void TcpListener::Parts::examine(tcp::socket socket) {
  if (strangers.size() >= kMostStrangers) send_away(strangers.begin()->first, "too many wait to prove who they are");
  const int number = next++;
  auto link = std::make_shared<Link::Parts>(std::move(socket), loop, Channel(Channel::Side::host, credentials));
  strangers[number] = link;
  const std::weak_ptr<Parts> self = weak_from_this();
  link->calls.closed = [self, number](const std::string& why) {
    if (const auto parts = self.lock()) parts->send_away(number, why);
  };
  link->proven = [self, number] {
    const auto parts = self.lock();
    if (!parts) return;
    const auto proven = parts->strangers.extract(number).mapped();
    proven->patience.cancel();
    proven->calls = {};
    parts->calls.accepted(std::make_unique<Link>(proven));
  };
  link->patience.expires_after(kProofPatience);
  link->patience.async_wait([self, number](asio::error_code stopped) {
    if (const auto parts = self.lock(); parts && !stopped) parts->send_away(number, "it proves nothing");
  });
  link->read();
}

void TcpListener::Parts::send_away(int number, const std::string& why) {
  const auto found = strangers.extract(number);
  if (found.empty()) return;
  found.mapped()->heard = false;
  found.mapped()->shut();
  if (calls.stranger) calls.stranger(why);
}

using Clock = std::chrono::steady_clock;

/// Waits until the connection stands; the system's error otherwise.
asio::error_code attempt(tcp::socket& socket, const tcp::endpoint& endpoint, Clock::time_point end) {
  asio::error_code error;
  socket.close(error);
  socket.open(endpoint.protocol(), error);
  if (error) return error;
  keep_private(socket.native_handle());
  socket.non_blocking(true, error);
  if (::connect(socket.native_handle(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0) return {};
  if (errno != EINPROGRESS) return {errno, asio::system_category()};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waiting{.fd = socket.native_handle(), .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready == 0) return asio::error::timed_out;
    if (ready > 0) break;
    if (errno != EINTR) return {errno, asio::system_category()};
  }
  int code = 0;
  socklen_t size = sizeof code;
  ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &code, &size);
  return {code, asio::system_category()};
}

/// A port of the system's own range that no process listens on may be connected to itself.
bool meets_itself(const tcp::socket& socket) {
  asio::error_code error;
  const auto local = socket.local_endpoint(error);
  return !error && local == socket.remote_endpoint(error);
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, const std::string& address, std::uint16_t port,
                                                 const Credentials& credentials, Calls calls) {
  asio::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return mayfly::fail("listen on '{}': want an address such as 127.0.0.1", address);
  auto parts = std::make_shared<TcpListener::Parts>(loop, credentials, std::move(calls));
  const tcp::endpoint endpoint(ip, port);
  parts->acceptor.open(endpoint.protocol(), error);
  if (!error) keep_private(parts->acceptor.native_handle());
  if (!error) parts->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) parts->acceptor.bind(endpoint, error);
  if (!error) parts->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return mayfly::fail("listen on {}:{}: {}", address, port, error.message());
  parts->accept();
  return std::make_unique<TcpListener>(std::move(parts));
}

Result<std::unique_ptr<Link>> connect(Loop& loop, const std::string& host, std::uint16_t port,
                                      const Credentials& credentials, Seconds patience) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
  auto& context = loop.parts().context;
  asio::error_code error;
  const auto found = tcp::resolver(context).resolve(host, std::to_string(port), error);
  if (error) return fail("{}: {}", host, error.message());
  for (const auto& entry : found) {
    tcp::socket socket(context);
    error = attempt(socket, entry.endpoint(), end);
    if (!error && meets_itself(socket)) error = asio::error::connection_refused;
    if (error) continue;
    auto link = std::make_shared<Link::Parts>(std::move(socket), loop, Channel(Channel::Side::guest, credentials));
    link->push();
    link->read();
    return std::make_unique<Link>(std::move(link));
  }
  return fail("{}:{}: {}", host, port, error.message());
}

}  // namespace mayfly
