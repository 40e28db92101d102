#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/order.h"
#include "run/session.h"
#include "storm/account.h"
#include "storm/inventory.h"
#include "support/agenda.h"
#include "support/fake_engine.h"

namespace mayfly::storm {

class Puppet;

/// How bad the weather is; all of it nothing in a calm.
struct Weather {
  Seconds delay{0.002};    ///< mean, of a message
  double late = 0;         ///< chance that a message takes a thousand times as long
  double twice = 0;        ///< chance that a worker's message comes twice
  double swapped = 0;      ///< chance that a worker's message overtakes the one before
  Seconds between_cuts{};  ///< mean time between two broken connections; none: never
  Seconds between_deaths{};
  Seconds between_notices{};
  Seconds between_freezes{};
  Seconds between_crashes{};   ///< of the controller
  double crash_in_act = 0;     ///< chance that the controller dies while it does what it wants done, at each call
  double no_checkpoint = 0;    ///< chance that writing one fails
  double mute = 0;             ///< chance that a machine comes and never says a word
  double hang = 0;             ///< chance that a worker's step never ends, while its heart beats
  Seconds between_partings{};  ///< of two members that do not reach each other for a while, or for good
};

/// A written checkpoint.
struct Saved {
  std::string path{};
  Weights weights{};
  std::vector<SampleRange> ledger{};
};

/// What came of one schedule.
struct StormRun {
  std::string broken{};             ///< the promise that was not kept; empty: all were
  std::vector<std::string> told{};  ///< the story, where it is asked for
  int commits = 0;
  int rollbacks = 0;
  int crashes = 0;
  int machines = 0;
  bool trained = false;
  bool stopped = false;
};

/// A session with fake workers, a fake engine, a store and a vault in memory, in simulated time, through a storm drawn
/// from a seed and the calm after it. ARCHITECTURE.md#fault-test
class World {
 public:
  World(std::uint64_t seed, bool record);
  ~World();
  StormRun run();

  // For puppets.

  Rng& rng() { return rng_; }
  support::Agenda& agenda() { return agenda_; }
  Account& account() { return account_; }
  const Weather& weather() const { return weather_; }
  const RunInputs& inputs() const { return inputs_; }
  Expectation expected() const { return engine_.expected({}); }
  /// Of one epoch, as every worker says.
  std::int64_t epoch() const { return epoch_; }
  SampleOrder order() const { return {epoch_, inputs_.spec.train->seed}; }
  /// Everything is written down.
  bool trained() const { return account_.end() == target_; }
  /// A worker's share of a step takes so long.
  Seconds work();
  /// Begins a connection: the number, or none where nobody listens.
  std::optional<int> connect(Puppet& puppet);
  void say(int connection, const ToController& message);
  Seconds delay();
  Puppet* at_address(const std::string& address);
  /// Of these addresses, those that do not answer this one.
  std::vector<std::string> unreached(const Puppet& from, const std::vector<std::string>& addresses);
  /// Of a formation's mesh: everyone who has been told to stand in it.
  struct Mesh {
    std::map<int, Puppet*> ranks{};
    std::set<int> here{};                                ///< connected
    std::map<std::int64_t, std::set<int>> exchanging{};  ///< by first sample
    bool broken = false;
  };
  Mesh& mesh(std::int64_t formation) { return meshes_[formation]; }
  /// Writes a checkpoint; false: it could not be written.
  bool save(const std::string& path, const Weights& weights, const std::vector<SampleRange>& ledger);
  const Saved* checkpoint(const std::string& path) const;
  const Saved* newest() const;
  void exited(Puppet& puppet, const char* how);

 private:
  struct Connection {
    Puppet* puppet = nullptr;
    std::optional<WorkerId> worker{};
    bool open = true;
    Seconds since{};
    Seconds last_in{};   ///< when the last message to the controller arrives
    Seconds last_out{};  ///< likewise, from it
    Seconds drains{};    ///< of one that is closed: what was sent by then still comes to the puppet
  };

  // world.cpp: the weather, and the end.
  void draw_job();
  void draw_weather();
  void draw_promise();
  void schedule_storm(Seconds end);
  void repeat(Seconds mean, Seconds end, void (World::*what)());
  void cut_one();
  void kill_one();
  void part_two();
  void notify_one();
  void freeze_one();
  void kill_amid_stop();
  void shut_down();
  Puppet* some_puppet();
  void check_end();
  void check_complete();
  void check_held();
  void check_ends(const std::vector<int>& launches);
  void check_rollback(std::int64_t to);
  bool parted_for_good(int launch) const;

  // world_controller.cpp: the controller's process.
  void start_session();
  void crash();
  /// `what`: its line in the story, asked for only where one is written.
  template <class What, class Call>
  void tell(What what, Call call);
  void perform();
  void perform(const Letter& letter);
  void perform(const Cut& act);
  void perform(const Ask& act);
  void perform(const Record& act);
  void perform(const JournalLine& act);
  void perform(const Note& act);
  void perform(const Say&) {}
  void perform(const Seek&);
  void perform(const Publish& act);
  void perform(const List&) {}
  void perform(const Close&);
  void watch_clock();

  // world_lines.cpp: connections.
  void hear(int connection, const ToController& message);
  void greet(int connection, const Hello& hello);
  /// `drain`: what is on its way to the puppet still comes for so long.
  void close(int connection, Seconds drain = {});
  Seconds session_time() const { return agenda_.now() - stood_still_; }

  bool record_;
  Rng rng_;
  support::Agenda agenda_{};
  Account account_{};
  Inventory inventory_;
  Weather weather_{};
  Weather storm_{};
  support::FakeEngine::Faults engine_storm_{};
  Job job_;
  std::optional<Job> narrow_{};  ///< with no more machines than the run may use
  Profile profile_{};            ///< measured, as far as the session is concerned
  RunInputs inputs_{};
  std::int64_t epoch_ = 64;
  std::int64_t target_ = 0;
  std::optional<Seconds> signal_{};
  std::optional<Seconds> work_{};  ///< of a step that takes its time
  support::FakeEngine engine_;
  std::unique_ptr<Session> session_{};
  int incarnation_ = 0;
  Seconds stood_still_{};  ///< the run's time, while nobody drove it
  bool performing_ = false;
  bool over_ = false;
  bool dead_ = false;  ///< the controller has died in the middle of an act
  std::vector<std::string> lines_{};
  Session::Notes notes_{};
  std::deque<Saved> vault_{};
  std::map<int, Connection> connections_{};
  std::map<WorkerId, int> current_{};  ///< connection of each worker
  int last_connection_ = 0;
  std::map<std::int64_t, Mesh> meshes_{};
  std::vector<std::unique_ptr<Puppet>> puppets_{};
  std::map<std::pair<int, int>, Seconds> parted_{};  ///< launches that do not reach each other until then
  std::vector<std::string> told_{};
  int crashes_ = 0;
  int alarm_ = 0;
};

template <class What, class Call>
void World::tell(What what, Call call) {
  if (!session_ || over_ || !account_.broken().empty()) return;
  if (record_) told_.push_back(fmt::format("{} {}", session_time().count(), what()));
  call(*session_, session_time());
  perform();
}

}  // namespace mayfly::storm
