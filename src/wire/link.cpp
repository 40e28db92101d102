#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
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

/// Processes started later must not hold the connection open when this one ends.
void keep_private(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

}  // namespace

struct Link::Parts : std::enable_shared_from_this<Parts> {
  Parts(tcp::socket connected, Loop& owner)
      : socket(std::move(connected)), patience(socket.get_executor()), loop(owner.parts()) {
    asio::error_code ignored;
    keep_private(socket.native_handle());
    socket.set_option(tcp::no_delay(true), ignored);
    socket.non_blocking(true, ignored);
  }

  void read();
  void read_now();
  void take(std::string_view bytes);
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
  Calls calls{};
  FrameReader frames{};
  std::string unsent{};
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
  frames.take(bytes);
  while (heard) {
    auto frame = frames.next();
    if (!frame) return fail(frame.error().message);
    if (!*frame) return;
    auto message = decoded(**frame);
    if (!message) return fail(message.error().message);
    calls.message(std::move(*message));
  }
}

void Link::Parts::send(const std::string& frame) {
  if (leaving || !socket.is_open()) return;
  unsent += frame;
  if (!waiting) push();
}

void Link::Parts::push() {
  asio::error_code error;
  std::size_t sent = 0;
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
    if (self->leaving && self->unsent.empty()) self->leave();
  });
}

void Link::Parts::fail(std::string why) {
  shut();
  if (std::exchange(heard, false) && calls.closed) calls.closed(std::move(why));
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

void Link::start(Calls calls) {
  parts_->calls = std::move(calls);
  parts_->read();
}
void Link::send(const Message& message) { parts_->send(framed(encoded(message))); }

void Link::close() {
  parts_->heard = false;
  if (std::exchange(parts_->leaving, true) || !parts_->socket.is_open()) return;
  parts_->patience.expires_after(kFarewell);
  parts_->patience.async_wait([parts = parts_](asio::error_code error) {
    if (!error) parts->shut();
  });
  if (parts_->unsent.empty()) parts_->leave();
}

namespace {

class TcpListener : public Listener {
 public:
  struct Parts : std::enable_shared_from_this<Parts> {
    explicit Parts(Loop& owner) : loop(owner), acceptor(owner.parts().context), pause(owner.parts().context) {}
    void accept();
    Loop& loop;
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    std::function<void(std::unique_ptr<Link>)> accepted{};
    std::function<void(const std::string&)> failed{};
  };
  explicit TcpListener(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
  ~TcpListener() override {
    asio::error_code ignored;
    parts_->acceptor.close(ignored);
    parts_->pause.cancel();
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
      return self->accepted(std::make_unique<Link>(std::make_shared<Link::Parts>(std::move(socket), self->loop)));
    }
    // Out of descriptors, or the peer has gone already: not the end of listening.
    if (self->failed) self->failed(error.message());
    self->pause.expires_after(std::chrono::milliseconds(100));
    self->pause.async_wait([self](asio::error_code stopped) {
      if (!stopped && self->acceptor.is_open()) self->accept();
    });
  });
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

/// A port of the system's own range that nobody listens on may be connected to itself.
bool meets_itself(const tcp::socket& socket) {
  asio::error_code error;
  const auto local = socket.local_endpoint(error);
  return !error && local == socket.remote_endpoint(error);
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, const std::string& address, std::uint16_t port,
                                                 std::function<void(std::unique_ptr<Link>)> accepted,
                                                 std::function<void(const std::string&)> failed) {
  asio::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return mayfly::fail("listen on '{}': want an address such as 127.0.0.1", address);
  auto parts = std::make_shared<TcpListener::Parts>(loop);
  const tcp::endpoint endpoint(ip, port);
  parts->acceptor.open(endpoint.protocol(), error);
  if (!error) keep_private(parts->acceptor.native_handle());
  if (!error) parts->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) parts->acceptor.bind(endpoint, error);
  if (!error) parts->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return mayfly::fail("listen on {}:{}: {}", address, port, error.message());
  parts->accepted = std::move(accepted);
  parts->failed = std::move(failed);
  parts->accept();
  return std::make_unique<TcpListener>(std::move(parts));
}

Result<std::unique_ptr<Link>> connect(Loop& loop, const std::string& host, std::uint16_t port, Seconds patience) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
  auto& context = loop.parts().context;
  asio::error_code error;
  const auto found = tcp::resolver(context).resolve(host, std::to_string(port), error);
  if (error) return fail("{}: {}", host, error.message());
  for (const auto& entry : found) {
    tcp::socket socket(context);
    error = attempt(socket, entry.endpoint(), end);
    if (!error && meets_itself(socket)) error = asio::error::connection_refused;
    if (!error) return std::make_unique<Link>(std::make_shared<Link::Parts>(std::move(socket), loop));
  }
  return fail("{}:{}: {}", host, port, error.message());
}

}  // namespace mayfly
