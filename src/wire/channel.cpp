#include "wire/channel.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "wire/credentials.h"

namespace mayfly {
namespace {

constexpr std::string_view kGreeting = "MAYFLY3\n";
constexpr std::size_t kRandom = 32;
constexpr std::size_t kProof = std::tuple_size_v<Digest>;

using Tls = std::unique_ptr<SSL, Freed<SSL_free>>;

std::string random_bytes() {
  std::string bytes(kRandom, '\0');
  MAYFLY_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), kRandom) == 1, "no random numbers");
  return bytes;
}

}  // namespace

/// Two layers: TLS where connections are encrypted, and within it the proof.
struct Channel::Parts {
  Parts(Side its_side, const Credentials& its_credentials) : side(its_side), credentials(its_credentials.parts()) {}

  void start_tls();
  void greet();
  void give(std::string_view bytes);
  void collect();
  Result<void> unwrap(std::string_view bytes);
  Result<std::size_t> unwrap(std::string_view bytes, std::span<char> place);
  /// After SSL_read_ex(): nothing more for now is no error.
  Result<void> verdict(int done) const;
  Result<std::string_view> prove(std::string_view bytes);
  Result<void> hear_guest();
  Result<void> hear_host();
  std::string proof_of(std::string_view who) const;
  std::size_t expected() const;

  const Side side;
  const std::shared_ptr<const Credentials::Parts> credentials;
  Tls tls{};
  bool known = false;  ///< the host's certificate was compared
  bool open = false;
  bool failed = false;
  std::string mine = random_bytes(), theirs{};
  std::string heard{};  ///< of a proof that is not whole
  std::string held{};   ///< to be sent once open
  std::string clear{};  ///< decrypted
  std::string outgoing{};
};

Channel::Channel(Side side, const Credentials& credentials) : parts_(std::make_unique<Parts>(side, credentials)) {
  credentials.encrypted() ? parts_->start_tls() : parts_->greet();
}
Channel::~Channel() = default;
Channel::Channel(Channel&&) noexcept = default;

bool Channel::open() const { return parts_->open; }
bool Channel::plain() const { return parts_->open && !parts_->tls; }
std::string& Channel::outgoing() { return parts_->outgoing; }

std::size_t Channel::wanted() const {
  if (parts_->tls) return 1 << 14;
  return parts_->expected() - parts_->heard.size();
}

void Channel::put(std::string_view bytes) {
  if (parts_->open) {
    parts_->give(bytes);
  } else {
    parts_->held += bytes;
  }
}

Result<std::string_view> Channel::take(std::string_view bytes) {
  if (parts_->failed) return fail("the connection has ended");
  if (parts_->tls) {
    parts_->clear.clear();
    if (auto done = parts_->unwrap(bytes); !done) {
      parts_->failed = true;
      return unexpected(done.error());
    }
    bytes = parts_->clear;
  }
  if (parts_->open) return bytes;
  auto rest = parts_->prove(bytes);
  parts_->failed = !rest;
  return rest;
}

Result<std::size_t> Channel::take(std::string_view bytes, std::span<char> place) {
  MAYFLY_CHECK(parts_->open && parts_->tls, "what is plain needs no channel");
  if (parts_->failed) return fail("the connection has ended");
  auto taken = parts_->unwrap(bytes, place);
  parts_->failed = !taken;
  return taken;
}

void Channel::Parts::start_tls() {
  const bool guest = side == Side::guest;
  tls.reset(SSL_new((guest ? credentials->guest : credentials->host).get()));
  MAYFLY_CHECK(tls, "no memory for TLS");
  SSL_set_bio(tls.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  guest ? SSL_set_connect_state(tls.get()) : SSL_set_accept_state(tls.get());
  ERR_clear_error();
  if (guest) SSL_do_handshake(tls.get());
  collect();
}

void Channel::Parts::greet() {
  if (side == Side::guest) give(std::string(kGreeting) + mine);
}

void Channel::Parts::give(std::string_view bytes) {
  if (!tls) {
    outgoing += bytes;
    return;
  }
  ERR_clear_error();
  while (!bytes.empty()) {
    std::size_t written = 0;
    if (SSL_write_ex(tls.get(), bytes.data(), bytes.size(), &written) != 1) break;
    bytes.remove_prefix(written);
  }
  collect();
}

void Channel::Parts::collect() {
  BIO* sent = SSL_get_wbio(tls.get());
  const auto size = BIO_ctrl_pending(sent);
  const auto before = outgoing.size();
  outgoing.resize(before + size);
  std::size_t read = 0;
  if (size > 0) BIO_read_ex(sent, outgoing.data() + before, size, &read);
  outgoing.resize(before + read);
}

Result<void> Channel::Parts::unwrap(std::string_view bytes) {
  ERR_clear_error();
  std::size_t written = 0;
  if (!bytes.empty()) BIO_write_ex(SSL_get_rbio(tls.get()), bytes.data(), bytes.size(), &written);
  if (SSL_is_init_finished(tls.get()) == 0) SSL_do_handshake(tls.get());
  if (side == Side::guest && !known && SSL_is_init_finished(tls.get()) != 0) {
    if (peer_fingerprint(*tls) != credentials->fingerprint) return fail("a stranger: its certificate is not the run's");
    known = true;
    greet();
  }
  std::string buffer(1 << 14, '\0');
  std::size_t size = 0;
  int done = 1;
  while ((done = SSL_read_ex(tls.get(), buffer.data(), buffer.size(), &size)) == 1) clear.append(buffer, 0, size);
  collect();
  return verdict(done);
}

Result<std::size_t> Channel::Parts::unwrap(std::string_view bytes, std::span<char> place) {
  ERR_clear_error();
  std::size_t size = 0, taken = 0;
  if (!bytes.empty()) BIO_write_ex(SSL_get_rbio(tls.get()), bytes.data(), bytes.size(), &size);
  int done = 1;
  while (taken < place.size() &&
         (done = SSL_read_ex(tls.get(), place.data() + taken, place.size() - taken, &size)) == 1)
    taken += size;
  collect();
  // An end behind what was taken is found by the next call.
  if (taken > 0 || done == 1) return taken;
  if (auto fine = verdict(done); !fine) return unexpected(fine.error());
  return std::size_t{0};
}

Result<void> Channel::Parts::verdict(int done) const {
  const int error = SSL_get_error(tls.get(), done);
  if (error == SSL_ERROR_ZERO_RETURN) return fail("closed by the peer");
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return {};
  return fail("a stranger: no TLS 1.3 of this run");
}

std::size_t Channel::Parts::expected() const {
  if (side == Side::guest) return kRandom + kProof;
  return theirs.empty() ? kGreeting.size() + kRandom : kProof;
}

std::string Channel::Parts::proof_of(std::string_view who) const {
  const bool guest = side == Side::guest;
  const Digest digest = proof(credentials->secret, {who, guest ? mine : theirs, guest ? theirs : mine});
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// What is left over belongs to the reader.
Result<std::string_view> Channel::Parts::prove(std::string_view bytes) {
  while (!open) {
    const auto more = bytes.substr(0, expected() - heard.size());
    heard += more;
    bytes.remove_prefix(more.size());
    if (heard.size() < expected()) return std::string_view{};
    if (auto done = side == Side::guest ? hear_host() : hear_guest(); !done) return unexpected(done.error());
    heard.clear();
  }
  return bytes;
}

Result<void> Channel::Parts::hear_guest() {
  if (theirs.empty()) {
    if (!heard.starts_with(kGreeting)) return fail("a stranger: it does not begin as the run's processes do");
    theirs = heard.substr(kGreeting.size());
    give(mine + proof_of("host"));
    return {};
  }
  if (CRYPTO_memcmp(heard.data(), proof_of("guest").data(), kProof) != 0)
    return fail("a stranger: it does not know the run's secret");
  open = true;
  give(std::exchange(held, {}));
  return {};
}

Result<void> Channel::Parts::hear_host() {
  theirs = heard.substr(0, kRandom);
  if (CRYPTO_memcmp(heard.data() + kRandom, proof_of("host").data(), kProof) != 0)
    return fail("it does not know the run's secret: is the token of this run?");
  give(proof_of("guest"));
  open = true;
  give(std::exchange(held, {}));
  return {};
}

}  // namespace mayfly
