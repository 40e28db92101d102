#include "run/desk.h"

#include "base/overloaded.h"

namespace mayfly {
namespace {

constexpr Seconds kHelloPatience{5};
/// More are turned away at once.
constexpr std::size_t kMostConnections = 4096;

}  // namespace

Result<std::unique_ptr<Desk>> Desk::open(Loop& loop, const std::string& address, std::uint16_t port,
                                         const Credentials& credentials, Calls calls) {
  std::unique_ptr<Desk> desk(new Desk(loop, std::move(calls)));
  Desk* self = desk.get();
  auto listener = Listener::open(loop, address, port, credentials,
                                 {.accepted = [self](std::unique_ptr<Link> link) { self->accept(std::move(link)); },
                                  .failed = [self](const std::string& why) { self->calls_.failed(why); },
                                  .stranger = [self](const std::string&) { ++self->strangers_; }});
  if (!listener) return unexpected(listener.error());
  desk->listener_ = *std::move(listener);
  return desk;
}

void Desk::accept(std::unique_ptr<Link> link) {
  if (connections_.size() >= kMostConnections) return;
  const int number = next_++;
  Connection& connection = connections_[number];
  connection.link = std::move(link);
  connection.patience = std::make_unique<Timer>(loop_);
  connection.patience->start(kHelloPatience, [this, number] { close(number); });
  connection.link->start<ToController>(
      {.message = [this, number](const ToController& message) { hear(number, message); },
       .closed = [this, number](const std::string&) { close(number); }});
}

void Desk::hear(int number, const ToController& message) {
  if (!connections_.contains(number)) return;
  std::visit(Overloaded{
                 [&](const Hello& hello) { greet(number, hello); },
                 [&](const FromMember& word) { hear_member(number, word); },
                 [&](const FromOperator& word) { hear_operator(number, word); },
                 [&](const FromCarrier& word) { hear_carrier(number, word); },
             },
             message);
}

void Desk::hear_member(int number, const FromMember& message) {
  Connection& connection = connections_[number];
  if (connection.role == Role::operates)
    return connection.link->send<ToOperator>(Refused{"an operator may ask for a drill"});
  if (!connection.worker) return turn_away(number, "want Hello first");
  const WorkerId worker = *connection.worker;
  if (std::holds_alternative<Alive>(message)) connection.link->send<ToMember>(Alive{});
  calls_.message(worker, message);
}

void Desk::hear_operator(int number, const FromOperator& message) {
  Connection& connection = connections_[number];
  if (connection.role == Role::operates) return connection.link->send<ToOperator>(calls_.order(message));
  // A worker that asks for a drill is not heard.
  if (connection.role != Role::member) turn_away(number, "want Hello first");
}

void Desk::hear_carrier(int number, const FromCarrier& message) {
  if (connections_[number].role != Role::carries) return turn_away(number, "want Hello first");
  calls_.carry(message, [this, number](const ToCarrier& answer) {
    if (const auto found = connections_.find(number); found != connections_.end())
      found->second.link->send<ToCarrier>(answer);
  });
}

void Desk::greet(int number, const Hello& hello) {
  if (hello.protocol != kProtocol)
    return turn_away(number, fmt::format("protocol {}, want {}", hello.protocol, kProtocol));
  if (connections_[number].role != Role::unknown) return turn_away(number, "said Hello twice");
  if (hello.role == "operator") return admit(number, Role::operates);
  if (hello.role == "carrier") return admit(number, Role::carries);
  const auto welcome = calls_.hello(hello);
  if (!welcome) return turn_away(number, welcome.error().message);
  drop(welcome->worker);  // an older connection of the same worker
  Connection& connection = connections_[number];
  connection.role = Role::member;
  connection.worker = welcome->worker;
  connection.patience.reset();
  workers_[welcome->worker] = number;
  connection.link->send<ToMember>(*welcome);
  calls_.connected(welcome->worker, hello);
}

void Desk::admit(int number, Role role) {
  connections_[number].role = role;
  connections_[number].patience.reset();
}

void Desk::turn_away(int number, const std::string& why) {
  Connection& connection = connections_[number];
  connection.link->send<ToMember>(Refused{why});
  connection.link->close();
  if (connection.worker) workers_.erase(*connection.worker);
  loop_.post([this, number] { connections_.erase(number); });
}

void Desk::close(int number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  const auto worker = found->second.worker;
  // Not in its own callback.
  loop_.post([link = std::shared_ptr<Link>(std::move(found->second.link)),
              patience = std::shared_ptr<Timer>(std::move(found->second.patience))] {});
  connections_.erase(found);
  if (!worker) return;
  const auto current = workers_.find(*worker);
  if (current == workers_.end() || current->second != number) return;
  workers_.erase(current);
  calls_.closed(*worker);
}

void Desk::send(WorkerId worker, const ToMember& message) {
  if (const auto found = workers_.find(worker); found != workers_.end())
    connections_[found->second].link->send<ToMember>(message);
}

void Desk::drop(WorkerId worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  const int number = found->second;
  workers_.erase(found);
  connections_[number].link->close();
  loop_.post([this, number] { connections_.erase(number); });
}

}  // namespace mayfly
