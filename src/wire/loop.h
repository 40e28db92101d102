#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "base/units.h"
#include "wire/channel.h"
#include "wire/message.h"

namespace mayfly {

/// Calls back when something happens: a message, a timer, a signal, the end of a process. All callbacks run in the one
/// thread that is in run(), one after another; only post() and stop() may be called from others.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;

  /// Until stop(); what is still in hand is dropped.
  void run();
  void stop();
  void post(std::function<void()> work);

  struct Parts;
  Parts& parts() { return *parts_; }  ///< for this folder

 private:
  std::unique_ptr<Parts> parts_;
};

/// Calls once, after a while; starting it again forgets the earlier call, as does its destruction.
class Timer {
 public:
  explicit Timer(Loop& loop);
  ~Timer();
  Timer(Timer&&) noexcept;
  void start(Seconds after, std::function<void()> call);
  void cancel();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// One end of a connection that carries messages, once both ends have proven that they belong to the run. Destroying it
/// closes the connection. The directions, Heard and Said, are those of wire/message.h.
class Link {
 public:
  template <class Heard>
  struct Calls {
    std::function<void(Heard)> message{};
    /// Once, with the reason: the peer closed, is a stranger, the connection broke, or it sent something that is no
    /// message, or none of this direction. Not after close().
    std::function<void(std::string)> closed{};
  };
  struct Parts;
  explicit Link(std::shared_ptr<Parts> parts);
  ~Link();

  /// Callbacks come from the loop's thread; they may destroy the link.
  template <class Heard>
  void start(Calls<Heard> calls) {
    start_reading({.text = [message = std::move(calls.message)](std::string_view text) -> Result<void> {
                     auto heard = decoded<Heard>(text);
                     if (!heard) return unexpected(heard.error());
                     message(*std::move(heard));
                     return {};
                   },
                   .closed = std::move(calls.closed)});
  }
  /// Never blocks: what the peer does not take is kept. In the loop's thread.
  template <class Said>
  void send(const std::type_identity_t<Said>& message) {
    send_text(encoded<Said>(message));
  }
  /// Sends what is kept, then closes.
  void close();

 private:
  struct TextCalls {
    std::function<Result<void>(std::string_view)> text{};  ///< an error: it is no message
    std::function<void(std::string)> closed{};
  };
  void start_reading(TextCalls calls);
  void send_text(const std::string& text);

  std::shared_ptr<Parts> parts_;
};

/// Accepts connections on an address of this machine.
class Listener {
 public:
  struct Calls {
    /// A peer that has proven to belong to the run.
    std::function<void(std::unique_ptr<Link>)> accepted{};
    /// Why a peer could not be let in, usually that there are too many open files; it is tried again.
    std::function<void(const std::string& why)> failed{};
    /// A peer proved nothing, in time or at all, and was sent away unheard.
    std::function<void(const std::string& why)> stranger{};
  };
  /// Port 0: any that is free.
  static Result<std::unique_ptr<Listener>> open(Loop& loop, const std::string& address, std::uint16_t port,
                                                const Credentials& credentials, Calls calls);
  virtual ~Listener() = default;
  virtual std::uint16_t port() const = 0;
};

/// Blocks until connected, at most `patience`; whether the other end belongs to the run shows later.
Result<std::unique_ptr<Link>> connect(Loop& loop, const std::string& host, std::uint16_t port,
                                      const Credentials& credentials, Seconds patience);

/// Calls for each of these signals until destroyed. Where they are blocked they are let through for that time, to the
/// thread that makes and destroys it: one that came before is not lost, and one that comes after does not kill.
class SignalWatch {
 public:
  SignalWatch(Loop& loop, std::initializer_list<int> signals, std::function<void(int)> call);
  ~SignalWatch();

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

/// Calls once when a file descriptor becomes readable (a pidfd: when the process has ended). Owns the descriptor.
class DescriptorWatch {
 public:
  DescriptorWatch(Loop& loop, int descriptor, std::function<void()> call);
  ~DescriptorWatch();

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace mayfly
