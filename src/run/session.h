#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/controller.h"
#include "data/checkpoint.h"
#include "run/accounts.h"
#include "run/failures.h"
#include "run/fleet.h"
#include "run/guard.h"
#include "run/outbox.h"
#include "run/roster.h"
#include "run/run.h"
#include "run/saving.h"
#include "run/step_watch.h"
#include "status/status.h"

namespace mayfly {

/// One run, as a state machine: in comes what workers say, what becomes of connections and machines, the time, the
/// answers to what it asked for, and signals; out come acts. Opens no socket and no file, reads no clock, has no
/// thread: `Runner` drives it with real ones, a test with any. What decides is in control/, what is said to workers in
/// Crew, which machines are wanted in Fleet; here is who hears of what, and in which order it becomes durable: an event
/// is stored before anything follows from it. ARCHITECTURE.md#the-states-of-a-run
///
/// Every call but those that only look says what time it is; time that runs backwards stands still.
class Session {
 public:
  using Notes = std::map<std::string, std::string>;

  /// `inputs` must outlive the session. `expected`: what the engine says of its machines.
  Session(const RunInputs& inputs, const std::function<Expectation(const MachineRole&)>& expected);

  // The beginning.

  /// What an earlier process has stored, before anything else. Nothing of it where the run is new. Returns the run's
  /// time, which stands still while no process drives it.
  Seconds restore(const std::vector<std::string>& lines, const Notes& notes);
  /// After it, and once the engine has been asked to adopt what the fleet has kept.
  void begin(Seconds now);

  // What workers and servers do.

  /// A process of the run: what it is told, or why it is not wanted. What it writes down must succeed first.
  Result<Welcome> hello(Seconds now, const Hello& hello);
  void connected(Seconds now, WorkerId worker, const Hello& hello);
  void hear(Seconds now, WorkerId worker, const FromMember& message);
  void closed(Seconds now, WorkerId worker);

  // What others do.

  void seen(Seconds now, const Sighting& sight);
  /// All that the engine knows of, now and then: what was ordered a while ago and is not among it is gone.
  void listed(Seconds now, const std::vector<Sighting>& all);
  /// Machines of this kind cost something else.
  void priced(Seconds now, const MachineKind& kind, UsdPerHour price);
  void sought(Seconds now, const FoundCheckpoint& found);
  void published(Seconds now, const CheckpointWritten& checkpoint, const Result<void>& result);
  /// An operator's word, and the answer.
  ToOperator order(Seconds now, const FromOperator& message);
  enum class Signal { interrupt, terminate };
  /// The first asks to save and end. An interrupt more than a second after the first interrupt ends at once; others
  /// change nothing: they are echoes of one word to a whole group of processes, or the impatience of a scheduler, which
  /// would kill if it wanted no checkpoint.
  void signal(Seconds now, Signal which);
  /// Something that must not fail has failed.
  void fail_run(Seconds now, std::string why);
  /// Something for people has happened outside.
  void say(Seconds now, const std::string& text);
  /// Writing a step down takes so long.
  void stored(Seconds took) { store_time_ = took; }
  void pass(Seconds now);  ///< time has come to due()

  /// What is to be done, in order; empties it.
  std::vector<Act> acts() { return out_.take(); }
  std::optional<Seconds> due() const;

  // Looking.

  const Roster::Members& members() const { return members_.all(); }
  const Fleet& fleet() const { return fleet_; }
  bool over() const { return over_; }
  const std::optional<std::string>& failure() const { return failure_; }
  std::optional<RunEnd> ended() const { return ended_; }
  RunProgress progress() const;
  RunStatus status() const;
  /// `newest`: the checkpoint that the run leaves behind.
  RunSummary summary(const FoundCheckpoint& newest) const;
  std::string checkpoints() const;
  /// Of what this run trains, as far as it is known.
  Lineage lineage() const { return {.run = run_, .seed = train_.seed, .data = data_}; }

 private:
  enum class Phase {
    attaching,  ///< workers of an earlier controller are waited for
    training,
    saving,  ///< stopped: a last checkpoint is being written
    ending,  ///< all members are told to leave
  };
  enum class Alarm {
    pulse,
    wake,      ///< the controller's
    boundary,  ///< until then a step's end is waited for
    decision,  ///< until then no step is leased
    attach,    ///< with those of an earlier controller
    step,      ///< with the step in hand, when stopped
    save,      ///< with the last checkpoint
    budget,    ///< likewise, when the money is spent
    leave,     ///< with those who are to leave
    close,     ///< with the engine
    list,      ///< until List
  };

  // Time.
  void at(Seconds now) { now_ = std::max(now_, now); }
  void ring(Alarm alarm, Seconds after) { alarms_[alarm] = now_ + after; }
  void ring(Alarm alarm);
  /// At the end of every call from outside: letters, and what the fleet wants.
  void deliver();
  void attend_fleet();

  // Start and end.
  std::unique_ptr<Crew> make_crew(std::int64_t formation) const;
  void begin_training();
  void stop();
  void end_saving();
  /// A checkpoint is asked for so much later at the latest, though the step in hand be unfinished.
  void save_within(Seconds patience);
  void end_at_once();
  void end(RunEnd how);
  void fail(std::string why);
  void close_when_empty();
  void close();
  Seconds end_patience() const;

  // What workers say.
  void on_ready(WorkerId worker, const Ready& message);
  void join(WorkerId worker, Roster::Member& member);
  void on_server_ready(WorkerId worker, const Ready& message);
  void on_leaving(WorkerId worker, const Leaving& message);
  void on_at_risk(WorkerId worker, const AtRisk& message);
  void on_not_written(const CheckpointFailed& message);
  void on_unable(WorkerId worker, const Unable& message);
  Result<void> check_data(const Ready& message) const;
  void learn_epoch(const Ready& message);
  void tell_neighbours();
  void commit(const Crew::Step& step);
  Result<void> check_step(const Crew::Step& step);
  void go_on_after(bool told, bool evaluate);
  void learn(const Crew::Step& step, Seconds commit);
  ToOperator drill(const Drill& message);

  // What becomes of them.
  void machine_gone(int launch, const Ending& ending);
  void charge(const Fleet::Launch& launch);
  void lose(WorkerId worker, const std::string& why);
  /// It has failed, rather than gone: the run ends where that happens again and again.
  void lose_failed(WorkerId worker, const std::string& why);
  void dismiss(WorkerId worker, const std::string& why);
  void pulse();
  void check_formation();
  /// Members that cannot reach each other: the fewest of them are left out. True where there are some.
  bool part_unreachable();
  void set_aside(WorkerId worker);
  void bring_back();
  void check_silence();
  void check_steps();
  void watch(const Letter& letter);
  void check_checkpoint();
  void check_saving();
  /// Servers that will be taken with what no server that stays holds.
  void check_last_holders();
  void let_leavers_go();
  bool can_save(WorkerId worker) const;  ///< before this one is taken

  // The controller.
  void tell(const Event& event);
  void tell_at_boundary(const Event& event, Seconds patience);
  void tell_held();
  void obey(const std::vector<Command>& commands);
  void obey(const Assign& command);
  void obey(const Pause& command);
  void obey(const Acquire& command);
  void obey(const Release& command);
  void release();
  void obey(const Drain&) {}
  void obey(const Checkpoint&);
  void obey(const Finish& command);
  void obey(const Warn& command);
  void obey(const Wake& command);
  /// No member holds the state: a checkpoint is looked for, and roll_back() follows.
  void seek_state();
  void roll_back(const FoundCheckpoint& found);
  void stand_again();
  void check_state();
  void request_checkpoint();
  /// Whether the loss has been no number for so long that the run ends.
  bool diverged(const Crew::Step& step);
  /// The run ends as failed once what is being saved is saved.
  void give_up(std::string why);
  void fail_as_judged();
  void note_crew();
  void note_accounts();
  void note_fleet() { out_.note("fleet", fleet_.record()); }

  std::int64_t end_sample() const;
  void say(const std::string& text) { out_.say(now_, text); }
  std::string phase_name() const;
  std::vector<MachineStatus> machine_statuses() const;
  std::optional<double> training_loss() const;

  const RunInputs& inputs_;
  const TrainSpec& train_;
  Seconds now_{};
  std::map<Alarm, Seconds> alarms_{};
  Outbox out_{};
  Controller controller_;
  std::unique_ptr<Crew> crew_;
  Fleet fleet_;
  Saving saving_;
  Accounts accounts_{};
  std::optional<Guard> guard_{};  ///< as soon as the size of an epoch is known
  Phase phase_ = Phase::attaching;
  Roster members_{};
  std::vector<Event> held_{};  ///< told at the next step's end
  std::optional<Assign> assigned_{};
  std::optional<std::int64_t> target_{};
  std::string run_{};            ///< its name among all runs
  std::int64_t epoch_ = 0;       ///< samples; 0: no worker has said so far
  std::string data_{};           ///< what they are; empty: not known
  bool drift_told_ = false;      ///< that they do not hold the same
  bool stateless_ = false;       ///< no member holds the state: a checkpoint is being looked for
  bool seeking_ = false;         ///< the vault has been asked
  std::int64_t publishes_ = 0;   ///< asked for
  std::int64_t seek_after_ = 0;  ///< publishes that the vault knew of when it was asked
  std::string crew_record_{};    ///< as it is stored
  bool parting_ = false;         ///< nothing new is leased: what there is goes into a checkpoint before servers go
  std::vector<WorkerId> to_release_{};    ///< as soon as they are not needed any more
  bool evaluate_ = false;                 ///< with the step that the decision is waited for
  std::optional<Seconds> apart_since_{};  ///< some say that they cannot reach others
  std::int64_t formation_seen_ = 0;
  std::size_t workers_seen_ = 0;  ///< that the guard knows of
  int failed_starts_ = 0;
  Failures failures_{};
  StepWatch watch_;
  int nan_steps_ = 0;                     ///< the last ones, whose loss was no number
  std::int64_t last_good_ = 0;            ///< sample before the first of them
  std::optional<std::string> verdict_{};  ///< why the run ends as soon as it is saved
  Seconds next_reading_{}, pulsed_{}, store_time_{}, formation_time_{};
  std::optional<RunEnd> ended_{};
  std::optional<std::string> failure_{};
  bool told_to_stop_ = false, over_ = false;
  std::optional<Seconds> interrupted_{};  ///< for the first time
};

}  // namespace mayfly
