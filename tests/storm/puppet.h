#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storm/world.h"

namespace mayfly::storm {

/// A worker or server process as the session sees it: speaks the protocol as train/ does, trains nothing, and counts in
/// its weights which samples it would have applied.
class Puppet {
 public:
  Puppet(World& world, int launch, bool server, std::string address)
      : world_(world), launch_(launch), server_(server), address_(std::move(address)) {}

  void boot();
  void hear(ToMember message);
  /// Its connection broke, as it sees it.
  void lost_line();
  void notice(Seconds left);
  void freeze(Seconds length);
  void die();
  void exit(const char* how);
  void leave();

  bool alive() const { return alive_; }
  bool server() const { return server_; }
  int launch() const { return launch_; }
  const std::string& address() const { return address_; }
  std::optional<int> connection() const { return connection_; }
  std::string name() const;
  /// Has a connection, and was welcomed over it.
  bool attached() const { return attached_; }
  /// Has hung in a step.
  bool hung() const { return hung_; }
  /// Had its notice.
  bool leaving() const { return leaves_.has_value(); }
  /// Could be asked for this state; a step counts that it has in its hands.
  bool holds(std::int64_t sample) const;
  /// A worker holds all there is.
  int shard() const { return serve_ ? serve_->shard : 0; }

 private:
  struct Pending {
    std::int64_t first = 0;
    std::int64_t samples = 0;
    std::int64_t step = 0;
    StepDone done{};
    std::int64_t end() const { return first + samples; }
  };

  // The line.
  void attempt();
  void say(FromMember message, bool answer = true);
  void heartbeat();
  void welcome(const Welcome& welcome);
  void refused();
  /// Runs it later, unless this process is gone by then; while it is frozen it waits.
  void later(Seconds time, std::function<void()> what);
  void obey(const ToMember& message);
  /// Whether the step that it begins never ends.
  bool hangs();
  void halt(const Halt& halt);
  void orphaned();

  // In a mesh: puppet_meshed.cpp.
  void form(const Form& form);
  void meet(const Peers& peers);
  void hand_over();
  void formed();
  void settle(std::int64_t committed);
  void proceed(const Proceed& lease);
  void exchange(std::int64_t first);
  void exchanged(const Proceed& lease);
  void break_formation(const std::string& why, const std::vector<std::string>& unreached = {});
  void leave_formation();
  void write_checkpoint();

  // With servers: puppet_served.cpp.
  void attach(const Attach& attach);
  void take(const Lease& lease);
  void push(const Lease& lease, std::size_t next);
  bool lacks_servers(const std::vector<std::string>& addresses);
  void break_served(std::int64_t formation, const std::string& why, const std::vector<std::string>& unreached = {});

  // As a server: puppet_server.cpp.
  void serve(const Serve& serve);
  void take_state(const Serve& serve, int tries);
  void stand(const Serve& serve);
  void commit(const Commit& commit);
  void forget(const Forget& forget);
  void save(const Save& save);
  void gather(const Save& save, int tries);
  void break_serving(const std::string& why);

  /// Between two looks at whether a server has got somewhere.
  static constexpr Seconds kLook{0.1};
  /// Until it is known that another does not answer.
  static constexpr Seconds kUnreached{4};

  World& world_;
  int launch_;
  bool server_;
  std::string address_;
  bool alive_ = true;
  Seconds frozen_until_{};
  std::deque<ToMember> inbox_{};  ///< heard, and not obeyed yet
  std::optional<int> connection_{};
  bool attached_ = false;
  bool beating_ = false;
  std::optional<WorkerId> id_{};
  std::optional<FromMember> unanswered_{};
  std::optional<FromMember> checkpoint_{};
  bool loaded_ = false;
  bool hung_ = false;
  const char* doing_ = nullptr;  ///< where in a step it is
  std::optional<Seconds> alone_since_{};
  std::optional<Seconds> leaves_{};

  std::optional<Weights> weights_{};  ///< none: garbage
  std::int64_t applied_in_ = -1;      ///< the formation of the last step that it has applied
  std::optional<Pending> pending_{};
  std::optional<Form> form_{};
  bool stands_ = false;
  std::optional<Proceed> in_hand_{};

  std::optional<Attach> attached_to_{};
  std::optional<Pushed> done_{};

  std::optional<Serve> serve_{};
  bool serving_ = false;
  std::map<std::int64_t, SampleRange> staged_{};
  std::set<std::int64_t> unwanted_{};
  std::optional<Weights> copy_{};
};

}  // namespace mayfly::storm
