#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/controller.h"
#include "run/accounts.h"
#include "run/crew.h"
#include "run/desk.h"
#include "run/guard.h"
#include "run/journal.h"
#include "run/machines.h"
#include "run/run.h"
#include "run/server_crew.h"
#include "run/status.h"
#include "run/store.h"

namespace mayfly {

/// One run while this process drives it: turns what machines and workers do into events, and the controller's commands
/// into messages and processes. Everything happens in the loop's thread. What decides is in control/, what is said to
/// whom in Crew; here is only who hears of what, and in which order it becomes durable: an event is stored before
/// anything follows from it.
class Runner {
 public:
  Runner(const RunInputs& inputs, const RunCalls& calls, Store store, Journal journal);

  /// Until the end of the run.
  Result<RunSummary> run();

 private:
  struct Member {
    int launch = -1;       ///< -1: came by itself
    std::int64_t pid = 0;  ///< of the process that said hello: a script's is not the machine's, which is its shell
    bool ready = false;    ///< has loaded everything
    bool joined = false;   ///< the controller knows it
    bool leaving = false;  ///< had its notice
    Seconds leaves{};      ///< when it will be taken
    bool server = false;   ///< holds parameters; the controller does not know it
    Seconds since{};       ///< when it came
    std::string cache{};   ///< where others reach its cache; empty: it has none, or keeps it to itself
  };
  enum class Phase {
    attaching,  ///< workers of an earlier controller are waited for
    training,
    saving,  ///< stopped: a last checkpoint is being written
    ending,  ///< everyone is told to leave
  };

  // Start and end.
  Result<void> open();
  std::unique_ptr<Crew> make_crew(std::int64_t formation);
  void check_file_limit();
  void not_let_in(const std::string& why);
  Result<void> restore();
  void begin_training();
  void stop(int signal);
  void end(RunEnd how);
  Seconds end_patience() const;
  void fail_run(std::string why);
  void end_when_empty();
  RunSummary summary() const;

  // What workers say.
  Result<Welcome> hello(const Hello& hello);
  void connected(WorkerId worker, const Hello& hello);
  void hear(WorkerId worker, const Message& message);
  void on_ready(WorkerId worker, const Ready& message);
  void on_server_ready(WorkerId worker, const Ready& message);
  void on_leaving(WorkerId worker, const Leaving& message);
  void on_at_risk(WorkerId worker, const AtRisk& message);
  Message order(const Message& message);
  Message drill(const Drill& message);
  void on_written(const CheckpointWritten& message);
  void on_not_written(const CheckpointFailed& message);
  void on_unable(WorkerId worker, const Unable& message);
  void tell_neighbours();
  void commit(const Crew::Step& step);
  void learn(const Crew::Step& step, Seconds commit);

  // What becomes of them.
  void link_closed(WorkerId worker);
  void machine_ended(int launch, const Ending& ending);
  void lose(WorkerId worker, const std::string& why);
  void pulse();
  void check_formation();
  void check_silence();
  void check_checkpoint();
  /// Whether there is still something to save.
  void check_saving();
  /// Servers that will be taken with what nobody else holds.
  void check_last_holders();
  /// Before this one is taken.
  bool can_save(WorkerId worker) const;
  Seconds save_time() const;

  // The controller.
  void tell(const Event& event);
  void tell_at_boundary(const Event& event, Seconds patience);
  void tell_held();
  bool remember(const TimedEvent& event);
  void obey(const std::vector<Command>& commands);
  void obey(const Assign& command);
  void obey(const Pause& command);
  void obey(const Acquire& command);
  void obey(const Release& command);
  void obey(const Drain&) {}
  void obey(const Checkpoint&);
  void obey(const Finish& command);
  void obey(const Wake& command);
  void roll_back();
  void check_state();
  void deliver();
  void dismiss(WorkerId worker, const std::string& why);
  void request_checkpoint();
  void note_crew();
  void note_accounts();

  Seconds now() const;
  std::int64_t end_sample() const;
  void say(const std::string& text);
  void remark(const std::string& text);
  /// A loss, for the journal.
  void read(Json reading);
  void keep(const Json& line);
  void note_processes();
  /// processes.json, which is for people.
  void list_processes();
  void list_processes_soon();
  std::filesystem::path checkpoints() const;
  void report();
  std::string phase_name() const;
  std::vector<MachineStatus> machine_statuses() const;
  RunStatus status() const;
  void write_status();
  /// How it ended; without a summary it failed.
  void write_last_status(const RunSummary* summary);

  const RunInputs& inputs_;
  const RunCalls& calls_;
  const TrainSpec& train_;
  Store store_;
  Journal journal_;
  StatusFile status_;
  Loop loop_{};
  std::chrono::steady_clock::time_point zero_{};  ///< of the run's time, which stands still while nobody drives it
  Seconds last_now_{};
  Controller controller_;
  ServerCrew* servers_ = nullptr;  ///< crew_, where the job has servers
  std::unique_ptr<Crew> crew_;
  Accounts accounts_{};
  std::optional<Guard> guard_{};  ///< as soon as the size of an epoch is known
  std::unique_ptr<Desk> desk_{};
  std::unique_ptr<LocalMachines> machines_{};
  std::unique_ptr<SignalWatch> signals_{};
  Timer wake_{loop_};
  Timer pulse_{loop_};
  Timer boundary_{loop_};
  Timer decision_{loop_};  ///< until then no step is leased
  Timer patience_{loop_};  ///< with the end
  Timer list_{loop_};      ///< until processes.json is written
  bool listing_ = false;
  bool told_not_let_in_ = false;
  Phase phase_ = Phase::attaching;
  std::map<WorkerId, Member> members_{};  ///< everyone welcomed and not gone
  std::map<WorkerId, Seconds> closed_{};  ///< whose connection broke, when
  std::map<WorkerId, Fed> fed_{};         ///< what each has said last, those that are gone included
  WorkerId last_worker_ = 0;
  std::vector<Event> held_{};  ///< told at the next step's end
  std::optional<Assign> assigned_{};
  std::optional<std::int64_t> target_{};
  std::int64_t epoch_ = 0;  ///< samples; 0: no worker has said so far
  bool checkpoint_asked_ = false;
  Seconds checkpoint_time_{};            ///< when the last was written or given up
  Seconds checkpoint_cost_{0.01};        ///< of the first, until it is known
  std::optional<Seconds> write_time_{};  ///< of the last checkpoint
  double state_mb_ = 0;
  bool parting_ = false;  ///< nothing new is leased: what there is goes into a checkpoint before servers go
  std::int64_t checkpoint_sample_ = 0;
  std::vector<WorkerId> to_release_{};  ///< once the checkpoint is written
  Seconds formation_time_{};
  std::int64_t formation_seen_ = 0;
  std::size_t workers_seen_ = 0;  ///< that the guard knows of
  int failed_starts_ = 0;
  int unable_in_a_row_ = 0;  ///< without a step between them
  int first_launch_ = 0;     ///< of this process; those before were started by an earlier one
  Seconds reported_{};
  Seconds next_reading_{};
  Seconds pulsed_{};
  std::optional<double> validation_loss_{};
  std::optional<double> accuracy_{};
  std::optional<RunEnd> ended_{};
  std::optional<std::string> failure_{};
  int signals_seen_ = 0;
};

}  // namespace mayfly
