#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "train/breaker.h"
#include "train/checkpoint_writer.h"
#include "train/line.h"
#include "train/loaded_job.h"
#include "train/member.h"
#include "train/mesh.h"
#include "train/meter.h"
#include "train/peer_caches.h"
#include "train/served.h"

namespace mayfly {

/// A worker's side of docs/protocol.md: does what the controller says, in one thread. An update is applied only on the
/// controller's word that its samples are committed.
class Worker final : public Member {
 public:
  struct Options {
    Line::Options line{};
    std::string interface = "lo";
    // Of an emulated machine.
    std::optional<BytesPerSecond> network{};  ///< each way
    std::optional<double> cpu_share{};        ///< of a core
  };
  explicit Worker(Options options);
  ~Worker();

 private:
  /// A step whose gradients are summed and whose word is awaited.
  struct Pending {
    std::int64_t first = 0;
    std::int64_t samples = 0;
    std::int64_t step = 0;
    int workers = 1;
    StepDone done{};
    std::int64_t end() const { return first + samples; }
  };

  Line& line() override { return line_; }
  Result<void> obey(Message message) override;
  void drop() override;
  void save_what_it_has() override;
  void save_what_others_lack() override;
  void finish() override;

  // Each returns an error where the worker cannot go on at all.
  Result<void> load(const Welcome& welcome);
  Result<void> form(const Form& form);
  Result<void> make_state(const Form& form);
  void meet(const Peers& peers);
  Result<void> receive_state();
  Result<void> proceed(const Proceed& proceed);
  void attach(const Attach& attach);
  Result<void> take(const Lease& lease);
  void write_checkpoint();
  Result<void> measure(const Measure& measure);
  Result<void> look(const Measure& measure, Measurement& seen);
  Result<void> rehearse_data(std::int64_t samples, Measurement& seen);
  void save_if_newest();

  // Where samples come from.
  Result<PeerCaches*> open_peers();
  void meet_neighbours(const Neighbours& neighbours);
  /// Where there is something to tell; not too often, but for the last time.
  void report_feed(bool last);

  /// Applies the pending step if it ends here, and forgets it.
  void settle_pending(std::int64_t committed);
  Result<void> check(const Proceed& proceed) const;
  SampleRange own_part(const Proceed& proceed) const;
  Result<void> train(const Proceed& proceed, const Batch& batch, StepDone done);
  /// Adds up everyone's gradients and losses.
  Result<void> exchange(std::span<double> losses);
  Result<void> add_up(const Evaluation& part, StepDone& done);
  void break_formation(const std::string& what);
  void leave_formation();
  void hold(std::int64_t sample, std::int64_t step);
  TrainerState state() const;

  Options options_;
  const std::shared_ptr<EmulatedNetwork> emulated_;
  std::unique_ptr<NetworkDevice> network_{};
  Breaker breaker_{};
  Served served_;  ///< where servers hold the parameters
  Line line_;
  CheckpointWriter writer_;

  Welcome terms_{};
  std::unique_ptr<TcpPeerCaches> peers_{};  ///< where workers' caches are one
  LoadedJob job_{};
  std::chrono::steady_clock::time_point reported_{};

  std::int64_t sample_ = 0;  ///< the weights hold these; -1: they are garbage
  std::int64_t step_ = 0;
  double loss_ = 0;
  std::optional<Pending> pending_{};
  std::optional<Form> form_{};
  std::shared_ptr<Mesh> mesh_{};  ///< none while no formation stands or is being made
  bool stands_ = false;
  Meter meter_{};
};

}  // namespace mayfly
