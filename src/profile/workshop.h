#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/local_engine.h"
#include "job/job_spec.h"
#include "run/crew.h"
#include "run/desk.h"
#include "run/store.h"

namespace mayfly {

/// Where the samples of a segment come from.
enum class SampleSource { synthetic, real, cold, warm };
std::string_view name(SampleSource source);

struct SegmentResult;

/// Some steps, all done in the same way, from the first weights and the first sample on.
struct Segment {
  int steps = 10;  ///< at most; where workers do not wait for each other, of each
  int batch = 32;  ///< samples of one worker's step
  SampleSource data = SampleSource::real;
  bool layers = false;                    ///< a look at every layer of the network before the first step
  std::vector<std::int64_t> exchanges{};  ///< bytes of exchanges that are timed before the first step; not with servers
  std::int64_t rehearse = 0;  ///< samples that the first worker reads and prepares by itself before the first step
  /// Asked after each step; ends the segment.
  std::function<bool(const SegmentResult&)> enough{};
};

/// One worker's steps, in order. The lists are equally long.
struct WorkerSteps {
  WorkerId worker = 0;
  std::vector<double> step_s{};  ///< from one report to the next
  std::vector<double> wait_s{};  ///< for data
  std::vector<double> compute_s{};
  std::vector<double> exchange_s{};  ///< waiting for the others included
  Measurement used{};                ///< over all of them
};

struct SegmentResult {
  std::vector<WorkerSteps> workers{};
  std::vector<double> step_s{};      ///< of all workers together, from one commit to the next
  std::vector<double> losses{};      ///< one for each commit
  std::vector<Measurement> looks{};  ///< by worker: what was asked for before the first step
  double form_s = 0;                 ///< from the first word until all stood together
  double server_cpu_s = 0;           ///< of all servers
};

/// Real workers (and servers) of a job, started on this machine to be asked for segments. Every segment stands together
/// anew. What they train is thrown away. Ends its processes when it is destroyed. One thread.
class Workshop {
 public:
  struct Options {
    JobSpec spec{};  ///< with a `train` block
    std::string job_text{};
    std::filesystem::path job_file{};   ///< absolute
    std::filesystem::path program{};    ///< mayfly-train
    std::filesystem::path directory{};  ///< for logs and checkpoints; the owner removes it
    int workers = 1;
    int servers = 0;         ///< processes; 0: none, whatever the job says
    MachineLimits limits{};  ///< of each worker, as a machine that it plays
    Seconds patience{60};    ///< for anything that should happen
  };
  /// Returns when all of them have loaded the job.
  static Result<std::unique_ptr<Workshop>> open(Options options);
  ~Workshop();

  /// With `workers` of them, 0: all. An error after which nothing more can be measured, unless it was an interruption.
  Result<SegmentResult> measure(const Segment& segment, int workers = 0);
  /// Of the state that the last segment left.
  Result<CheckpointWritten> checkpoint();

  /// What each worker said when it was ready.
  const std::vector<Ready>& ready() const { return ready_; }
  /// From the start of its process until a worker was ready, the longest.
  Seconds start_time() const { return start_time_; }
  /// A signal came; every further call fails at once.
  bool interrupted() const { return interrupted_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Person {
    int launch = -1;
    std::int64_t pid = 0;
    bool server = false;
    bool ready = false;
    std::string address{};
    std::optional<Measurement> answer{};
    std::optional<Clock::time_point> last{};  ///< its latest report
  };

  explicit Workshop(Options options);
  Result<void> start();
  Result<Welcome> hello(const Hello& hello);
  void hear(WorkerId from, const FromMember& message);
  /// Of one step: how long it waited for data, computed and exchanged.
  void note_report(WorkerId from, double wait_s, double compute_s, double exchange_s);
  void lost(const std::string& why);
  void commit(const Crew::Step& step);
  void deliver();

  Result<void> stand_together(const Segment& segment, const std::vector<WorkerId>& members);
  std::unique_ptr<Crew> make_crew(const Segment& segment, const std::vector<WorkerId>& members);
  Result<std::vector<Measurement>> ask(const Measure& word, const std::vector<WorkerId>& members);
  Result<void> train(const Segment& segment, const std::vector<WorkerId>& members);
  /// Runs the loop until it holds; an error where that takes too long, a worker is lost or a signal came.
  Result<void> wait_until(const std::function<bool()>& holds, const std::string& what);
  double server_cpu() const;
  std::vector<WorkerId> members(int workers) const;

  Options options_;
  Loop loop_{};
  std::unique_ptr<SignalWatch> signals_{};
  std::optional<Store> store_{};
  std::unique_ptr<Desk> desk_{};
  std::unique_ptr<LocalEngine> engine_{};
  std::map<WorkerId, Person> people_{};
  std::map<int, Clock::time_point> launched_{};
  std::unique_ptr<Crew> crew_{};
  std::int64_t formation_ = 0;
  std::int64_t end_ = 0;
  const Segment* segment_ = nullptr;
  std::optional<SegmentResult> result_{};
  std::optional<Clock::time_point> last_commit_{};
  std::optional<CheckpointWritten> written_{};
  std::optional<std::string> failure_{};
  std::vector<Ready> ready_{};
  Seconds start_time_{};
  bool interrupted_ = false;
  bool leaving_ = false;           ///< a worker that goes now is not missed
  std::set<WorkerId> formed_{};    ///< stand in the crew's formation
  std::function<bool()> holds_{};  ///< what is waited for
  std::function<void()> awake_{};  ///< a worker said something: patience begins anew
};

}  // namespace mayfly
