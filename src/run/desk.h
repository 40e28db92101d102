#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "control/event.h"
#include "wire/loop.h"

namespace mayfly {

/// The connections to the workers, to operators, who are no part of the run and ask something of it, and to carriers,
/// who fetch and bring files for machines that share none with this computer. A process
/// that does not prove that it belongs to the run is turned away unheard; then it must say a proper Hello.
class Desk {
 public:
  struct Calls {
    /// A process of the run: what it is told, or why it is not wanted. Called before the connection counts.
    std::function<Result<Welcome>(const Hello&)> hello{};
    /// The worker is connected; for what must be sent to it first.
    std::function<void(WorkerId, const Hello&)> connected{};
    std::function<void(WorkerId, const FromMember&)> message{};
    std::function<void(WorkerId)> closed{};
    /// What an operator asks, and what he is answered.
    std::function<ToOperator(const FromOperator&)> order{};
    /// What a carrier asks; it is answered later, or never.
    std::function<void(const FromCarrier&, std::function<void(const ToCarrier&)> answer)> carry{};
    /// A connection could not be let in.
    std::function<void(const std::string& why)> failed{};
  };
  static Result<std::unique_ptr<Desk>> open(Loop& loop, const std::string& address, std::uint16_t port,
                                            const Credentials& credentials, Calls calls);

  /// Nothing happens where it is not connected.
  void send(WorkerId worker, const ToMember& message);
  bool connected(WorkerId worker) const { return workers_.contains(worker); }
  void drop(WorkerId worker);
  std::uint16_t port() const { return listener_->port(); }
  /// Connections that proved nothing.
  std::int64_t strangers() const { return strangers_; }

 private:
  enum class Role { unknown, member, operates, carries };
  struct Connection {
    std::unique_ptr<Link> link{};
    std::optional<WorkerId> worker{};
    Role role = Role::unknown;          ///< by its Hello
    std::unique_ptr<Timer> patience{};  ///< until its Hello
  };
  Desk(Loop& loop, Calls calls) : loop_(loop), calls_(std::move(calls)) {}
  void accept(std::unique_ptr<Link> link);
  void hear(int number, const ToController& message);
  void hear_member(int number, const FromMember& message);
  void hear_operator(int number, const FromOperator& message);
  void hear_carrier(int number, const FromCarrier& message);
  void greet(int number, const Hello& hello);
  void admit(int number, Role role);
  void turn_away(int number, const std::string& why);
  void close(int number);

  Loop& loop_;
  Calls calls_;
  std::unique_ptr<Listener> listener_{};
  std::map<int, Connection> connections_{};
  std::map<WorkerId, int> workers_{};
  int next_ = 0;
  std::int64_t strangers_ = 0;
};

}  // namespace mayfly
