#pragma once

#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <string>

#include "wire/channel.h"

namespace mayfly {

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* thing) const {
    kFree(thing);
  }
};
using SslContext = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;

struct Credentials::Parts {
  std::string secret{};
  std::string fingerprint{};  ///< of the run's certificate; empty: not encrypted
  SslContext guest{}, host{};
};

using Digest = std::array<unsigned char, 32>;

/// HMAC-SHA256 of these words, one behind the other.
Digest proof(std::string_view secret, std::initializer_list<std::string_view> words);

/// SHA-256 of the certificate the peer has shown, in hex.
std::string peer_fingerprint(const SSL& connection);

}  // namespace mayfly
