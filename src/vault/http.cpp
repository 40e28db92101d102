#include "vault/http.h"

#include <httplib.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/text.h"

namespace mayfly {
namespace {

/// Of an answer that is kept as text: a listing of a thousand long names is below that.
constexpr std::size_t kMostAnswer = std::size_t{16} << 20;

/// The library writes to sockets in a way that raises SIGPIPE where the other side is gone. The signal is of this
/// thread: it is held back, and taken away if it came.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec at_once{};
    while (!was_pending_ && ::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

std::string reason(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "no connection";
    case httplib::Error::Read:
      return "no answer";
    case httplib::Error::Write:
      return "the connection broke while sending";
    case httplib::Error::Canceled:
      return "the answer is longer than what was asked for";
    case httplib::Error::SSLConnection:
      return "no TLS connection";
    case httplib::Error::SSLLoadingCerts:
      return "the certificates to trust cannot be read (AWS_CA_BUNDLE)";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not trusted (AWS_CA_BUNDLE names those that are)";
    default:
      return httplib::to_string(error);
  }
}

std::string small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

struct HttpConnection::Parts {
  explicit Parts(const HttpEndpoint& endpoint) : http(endpoint.text()) {}
  httplib::Client http;
};

HttpConnection::HttpConnection(HttpEndpoint endpoint, const Options& options)
    : endpoint_(std::move(endpoint)), parts_(std::make_unique<Parts>(endpoint_)) {
  auto& http = parts_->http;
  const auto in_ms = [](Seconds time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time); };
  http.set_connection_timeout(in_ms(options.connect));
  http.set_read_timeout(in_ms(options.silence));
  http.set_write_timeout(in_ms(options.silence));
  http.set_keep_alive(true);
  http.set_tcp_nodelay(true);
  http.set_follow_location(false);
  http.set_url_encode(false);  // what is signed is said exactly so
  http.set_decompress(false);
  if (!options.ca_bundle.empty()) http.set_ca_cert_path(options.ca_bundle);
}

HttpConnection::~HttpConnection() = default;

tl::expected<HttpAnswer, HttpFailure> HttpConnection::ask(const HttpRequest& request) {
  HttpAnswer answer;
  httplib::Request http;
  http.method = request.method;
  http.path = request.target;
  for (const auto& [name, value] : request.headers) http.set_header(name, value);
  if (!request.body.empty()) {
    http.content_length_ = request.body.size();
    http.content_provider_ = [&](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
      const Pieces left = request.body.slice(offset, length);
      for (const auto span : left.spans()) {
        if (!sink.write(reinterpret_cast<const char*>(span.data()), span.size())) return false;
      }
      return true;
    };
  }
  http.response_handler = [&](const httplib::Response& response) {
    answer.status = response.status;
    return true;
  };
  http.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    const bool good = answer.status == 200 || answer.status == 206;
    if (request.into.empty() || !good) {
      answer.body.append(data, size);
      return answer.body.size() <= kMostAnswer;
    }
    if (size > request.into.size() - answer.received) return false;
    std::memcpy(request.into.data() + answer.received, data, size);
    answer.received += size;
    return true;
  };
  const NoPipeSignal quiet;
  const auto response = parts_->http.send(http);
  if (!response) {
    const bool stranger = response.error() == httplib::Error::SSLServerVerification ||
                          response.error() == httplib::Error::SSLLoadingCerts;
    return unexpected(HttpFailure{fmt::format("{}: {}", endpoint_.text(), reason(response.error())), stranger});
  }
  answer.status = response->status;
  for (const auto& [name, value] : response->headers) answer.headers[small_letters(name)] = value;
  return answer;
}

Result<HttpEndpoint> HttpEndpoint::parse(const std::string& url) {
  HttpEndpoint endpoint;
  const auto wrong = [&] { return fail("'{}': want http://HOST[:PORT] or https://HOST[:PORT]", printable(url)); };
  const auto colon = url.find("://");
  if (colon == std::string::npos) return wrong();
  endpoint.scheme = small_letters(url.substr(0, colon));
  if (endpoint.scheme != "http" && endpoint.scheme != "https") return wrong();
  std::string_view rest = std::string_view(url).substr(colon + 3);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const auto bracket = rest.rfind(']');
  const auto mark = rest.rfind(':');
  const bool has_port = mark != rest.npos && (bracket == rest.npos || mark > bracket);
  if (has_port) {
    const auto port = parse_integer(rest.substr(mark + 1));
    if (!port || *port < 1 || *port > 65535) return wrong();
    endpoint.port = *port;
    rest = rest.substr(0, mark);
  }
  endpoint.host = small_letters(std::string(rest));
  const bool six = rest.starts_with('[') && rest.ends_with(']') && rest.size() > 2;
  const bool sound = std::all_of(rest.begin(), rest.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' ||
           (six && (c == ':' || c == '[' || c == ']' || c == '%'));
  });
  if (rest.empty() || !sound) return wrong();
  return endpoint;
}

std::string HttpEndpoint::authority() const {
  const int own = secure() ? 443 : 80;
  return port == 0 || port == own ? host : fmt::format("{}:{}", host, port);
}

}  // namespace mayfly
