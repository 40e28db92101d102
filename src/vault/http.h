#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "vault/pieces.h"

namespace mayfly {

/// One question to a server.
struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  ///< path and query, encoded
  std::map<std::string, std::string> headers{};
  Pieces body{};
  std::span<std::byte> into{};  ///< of a GET: where the body of a good answer goes; empty: into the answer
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers{};  ///< names in small letters
  std::string body{};
  std::size_t received = 0;  ///< bytes that went to `into`
};

/// Why there was no answer.
struct HttpFailure {
  std::string message{};
  bool lasting = false;  ///< asking again changes nothing: the server is not whom it should be
};

/// One server: `http://HOST[:PORT]` or `https://...`, whose certificate is checked.
struct HttpEndpoint {
  std::string scheme = "https";
  std::string host{};  ///< an IPv6 address in brackets
  int port = 0;        ///< 0: the scheme's
  bool operator==(const HttpEndpoint&) const = default;

  /// Path and all: nothing may follow host and port but a slash.
  static Result<HttpEndpoint> parse(const std::string& url);
  bool secure() const { return scheme == "https"; }
  /// As a Host header says it: without the scheme's own port.
  std::string authority() const;
  std::string text() const { return scheme + "://" + authority(); }
};

/// Asks one server, one question after another over a connection that is kept. Follows nobody elsewhere. One thread.
class HttpConnection {
 public:
  struct Options {
    Seconds connect{10};
    Seconds silence{60};      ///< of the server, reading or writing
    std::string ca_bundle{};  ///< certificates to trust in place of the system's
  };
  HttpConnection(HttpEndpoint endpoint, const Options& options);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;

  tl::expected<HttpAnswer, HttpFailure> ask(const HttpRequest& request);
  const HttpEndpoint& endpoint() const { return endpoint_; }

 private:
  struct Parts;
  HttpEndpoint endpoint_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace mayfly
