#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mayfly {

/// A fresh token: what the processes of a run know and no stranger does. "SECRET", or where connections are to be
/// encrypted "SECRET-FINGERPRINT", the fingerprint being that of the run's certificate. docs/protocol.md#strangers
Result<std::string> fresh_token(bool encrypted);

/// A token made ready for use, and shared by all connections of a process.
class Credentials {
 public:
  Credentials();  ///< of a run that no other process belongs to
  static Result<Credentials> from(std::string_view token);
  bool encrypted() const;
  /// The same secret for connections on a network that needs no encryption.
  Credentials unencrypted() const;

  struct Parts;
  const std::shared_ptr<const Parts>& parts() const { return parts_; }  ///< for this folder

 private:
  explicit Credentials(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

/// One end of a connection, without the connection: turns bytes of the network into bytes for the reader and back.
/// First both ends prove that they know the run's secret; nothing a stranger sends is taken for anything else.
class Channel {
 public:
  enum class Side { guest, host };  ///< who opened the connection, who listens
  Channel(Side side, const Credentials& credentials);
  ~Channel();
  Channel(Channel&&) noexcept;

  /// The peer has proven itself, and need not be asked for more.
  bool open() const;
  /// What is open and not encrypted is the connection's bytes as they are: take() and put() may be passed by.
  bool plain() const;
  /// Until it is open: no more than so many bytes may be taken at once.
  std::size_t wanted() const;

  /// What the peer sent; returns what it holds for the reader, valid until the next call. An error: a stranger, or the
  /// connection is damaged; nothing more can be taken.
  Result<std::string_view> take(std::string_view bytes);
  /// Where it is open and not plain: the same, straight to where it stays. What finds no room is kept for the next
  /// call.
  Result<std::size_t> take(std::string_view bytes, std::span<char> place);
  /// What the reader of the other end is to get, once it has proven itself.
  void put(std::string_view bytes);
  /// To be sent; the caller removes what it has sent.
  std::string& outgoing();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace mayfly
