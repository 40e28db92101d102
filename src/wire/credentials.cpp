#include "wire/credentials.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include <algorithm>
#include <span>

namespace mayfly {
namespace {

using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

constexpr std::size_t kSecret = 64;  ///< hex digits

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

unexpected<Error> openssl_error(std::string_view what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  return fail("{}: {}", what, text.data());
}

std::string fingerprint_of(const X509* certificate) {
  Digest digest{};
  unsigned size = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  return hex(digest);
}

/// Follows from the secret alone: each process that listens for the run, now or after a restart, shows the same
/// certificate.
Key key_of(std::string_view secret) {
  const Digest seed = proof(secret, {"certificate"});
  return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
}

/// Signed by itself, for ever: guests compare its fingerprint and nothing else.
Certificate certificate_of(EVP_PKEY* key) {
  Certificate made(X509_new());
  X509* certificate = made.get();
  if (certificate == nullptr) return nullptr;
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto* const owner = reinterpret_cast<const unsigned char*>("mayfly");
  const bool done = X509_set_version(certificate, X509_VERSION_3) == 1 &&
                    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
                    ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), "20200101000000Z") == 1 &&
                    ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "99991231235959Z") == 1 &&
                    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, owner, -1, -1, 0) == 1 &&
                    X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
                    X509_sign(certificate, key, nullptr) > 0;
  return done ? std::move(made) : nullptr;
}

Result<SslContext> context_of(const SSL_METHOD* method) {
  SslContext context(SSL_CTX_new(method));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1) return openssl_error("TLS");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);  // the fingerprint is compared instead
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return context;
}

Result<void> encrypt(Credentials::Parts& parts) {
  const Key key = key_of(parts.secret);
  const Certificate certificate = key ? certificate_of(key.get()) : nullptr;
  if (!certificate) return openssl_error("the run's certificate");
  // A token with another fingerprint than its secret's would be refused by every guest: say so here.
  if (fingerprint_of(certificate.get()) != parts.fingerprint)
    return fail("the token's fingerprint does not belong to its secret: copied wrongly?");
  auto guest = context_of(TLS_client_method());
  if (!guest) return unexpected(guest.error());
  auto host = context_of(TLS_server_method());
  if (!host) return unexpected(host.error());
  if (SSL_CTX_use_certificate(host->get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(host->get(), key.get()) != 1)
    return openssl_error("the run's certificate");
  parts.guest = *std::move(guest);
  parts.host = *std::move(host);
  return {};
}

}  // namespace

Digest proof(std::string_view secret, std::initializer_list<std::string_view> words) {
  std::string text;
  for (const auto word : words) text += word;
  Digest digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return digest;
}

std::string peer_fingerprint(const SSL& connection) {
  const Certificate shown(SSL_get1_peer_certificate(&connection));
  return shown ? fingerprint_of(shown.get()) : "";
}

Result<std::string> fresh_token(bool encrypted) {
  std::array<unsigned char, kSecret / 2> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return openssl_error("random numbers");
  std::string token = hex(bytes);
  if (!encrypted) return token;
  const Key key = key_of(token);
  const Certificate certificate = key ? certificate_of(key.get()) : nullptr;
  if (!certificate) return openssl_error("the run's certificate");
  return token + "-" + fingerprint_of(certificate.get());
}

Credentials::Credentials() {
  auto parts = std::make_shared<Parts>();
  parts->secret = fresh_token(false).value();
  parts_ = std::move(parts);
}

Result<Credentials> Credentials::from(std::string_view token) {
  const auto dash = token.find('-');
  const auto secret = token.substr(0, dash);
  const auto fingerprint = dash == token.npos ? std::string_view{} : token.substr(dash + 1);
  const bool whole = dash == token.npos || fingerprint.size() == 2 * std::tuple_size_v<Digest>;
  if (secret.size() != kSecret || !whole || !is_hex(secret) || !is_hex(fingerprint))
    return fail("no token of a run: want 64 hex digits, and '-' and 64 more where connections are encrypted");
  auto parts = std::make_shared<Parts>();
  parts->secret = secret;
  parts->fingerprint = fingerprint;
  if (!fingerprint.empty()) {
    if (auto done = encrypt(*parts); !done) return unexpected(done.error());
  }
  return Credentials(std::move(parts));
}

bool Credentials::encrypted() const { return !parts_->fingerprint.empty(); }

Credentials Credentials::unencrypted() const {
  auto parts = std::make_shared<Parts>();
  parts->secret = parts_->secret;
  return Credentials(std::move(parts));
}

}  // namespace mayfly
