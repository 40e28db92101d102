#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "train/breaker.h"
#include "train/checkpoint_writer.h"
#include "train/line.h"
#include "train/loaded_job.h"
#include "train/member.h"
#include "train/own_files.h"
#include "train/shard_server.h"
#include "train/state_fetch.h"
#include "vault/depot.h"

namespace mayfly {

/// A server's side of docs/protocol.md: holds a shard of the parameters for the workers, and moves it on the
/// controller's word that samples are committed.
class Server final : public Member {
 public:
  struct Options {
    Line::Options line{};
    std::string interface = "lo";
    std::optional<BytesPerSecond> network{};  ///< of an emulated machine, each way
    bool trust = false;                       ///< TorchScript of other users
    Surroundings around{};
    std::optional<OwnFiles> own{};  ///< none: it sees the controller's files under the same paths
  };
  explicit Server(Options options);

 private:
  Line& line() override { return line_; }
  Result<void> obey(const ToMember& message) override;
  void drop() override;
  void save_what_it_has() override;
  void finish() override { writer_.finish(); }

  Result<void> load(const Welcome& told);
  void await_network(const Welcome& welcome);
  Result<void> serve(const Serve& serve);
  /// The state that is asked for, in this shard. None: not to be had now.
  Result<bool> make_state(const Serve& serve, Shard& shard);
  // Of another formation than the one it stands in: nothing happens.
  Result<void> commit(const Commit& commit);
  Result<void> forget(const Forget& forget);
  Result<void> save(const Save& save);
  FromMember gathered(const Save& save, const Serve& held, StateFetch& fetch, Seconds stall);
  bool stands(std::int64_t formation) const { return stands_ && serve_->formation == formation; }
  void break_formation(const std::string& what);
  void hold(std::int64_t sample);

  const Options options_;
  const std::shared_ptr<EmulatedNetwork> network_;
  Breaker breaker_{}, saving_{};  ///< ends the wait for another server's state: here, in the writer
  LoadedJob job_{};
  Welcome terms_{};
  std::unique_ptr<ShardServer> shards_{};
  std::optional<Serve> serve_{};  ///< the last one that was obeyed
  bool stands_ = false;           ///< the shard is at the formation's state, and handed out
  std::int64_t sample_ = -1;      ///< of the shard in hand; -1: none, or garbage
  Line line_;
  std::unique_ptr<Depot> depot_{};  ///< as the terms name it; the writer uses it to its end
  CheckpointWriter writer_;
  std::jthread waiting_{};  ///< for a script's network
};

}  // namespace mayfly
