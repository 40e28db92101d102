#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "run/desk.h"
#include "run/journal.h"
#include "run/session.h"
#include "run/store.h"
#include "vault/shelves.h"
#include "vault/vault.h"

namespace mayfly {

/// Drives a Session with real sockets, files, machines and time: tells it what happens, and does what it wants done.
/// One loop, one thread, but for the vault's.
class Runner {
 public:
  Runner(const RunInputs& inputs, const RunCalls& calls, Store store, Journal journal);

  /// Until the end of the run.
  Result<RunSummary> run();

 private:
  using Clock = std::chrono::steady_clock;

  Result<void> open();
  Result<void> open_desk(const std::string& token);
  Result<std::string> kept_token();
  /// Where workers reach the controller.
  std::string join_address() const;
  /// The run's name among all runs; stored with the first launch.
  Result<std::string> kept_tag();
  void start_engine(const std::string& token, const std::string& tag);
  /// Before anything is started: the checkpoints are this run's, and can be written.
  Result<void> open_depot(const std::string& tag, bool begun);
  void check_file_limit();
  void not_let_in(const std::string& why);
  /// What others than the session want people to know.
  void tell(const std::string& text);

  /// Does all that the session wants done, then waits for what comes next.
  void perform();
  Result<void> perform(const Letter& letter);
  Result<void> perform(const Cut& act);
  Result<void> perform(const Ask& act);
  Result<void> perform(const Record& act);
  Result<void> perform(const JournalLine& act);
  Result<void> perform(const Note& act);
  Result<void> perform(const Say& act);
  Result<void> perform(const Seek& act);
  Result<void> perform(const Publish& act);
  Result<void> perform(const List& act);
  Result<void> perform(const Close& act);
  void watch_clock();

  /// For those who look from outside.
  void pulse();
  void report();
  void write_status();
  /// How it ended; without a summary it failed.
  void write_last_status(const RunSummary* summary);

  Seconds now() const { return Clock::now() - zero_; }

  const RunInputs& inputs_;
  const RunCalls& calls_;
  Store store_;
  Journal journal_;
  StatusFile status_;
  Loop loop_{};
  Clock::time_point zero_ = Clock::now();  ///< of the run's time, which stands still while no process drives it
  std::unique_ptr<Desk> desk_{};
  std::unique_ptr<Engine> engine_{};
  std::unique_ptr<Session> session_{};
  std::unique_ptr<Depot> depot_{};
  std::unique_ptr<Vault> vault_{};
  std::unique_ptr<Shelves> shelves_{};
  std::string latest_{};  ///< checkpoint that this process has seen published
  std::unique_ptr<SignalWatch> signals_{};
  Timer alarm_{loop_};
  Timer pulse_{loop_};
  std::optional<Seconds> alarm_at_{};
  std::optional<std::string> not_opened_{};  ///< why the run could not begin
  bool refused_ = false;                     ///< because of what it was told, not of what happened
  bool performing_ = false;
  bool told_not_let_in_ = false;
  Seconds reported_{};
  Seconds listed_{};  ///< what the engine has
};

}  // namespace mayfly
