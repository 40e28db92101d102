#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "train/gear.h"
#include "train/member.h"
#include "train/meshed.h"
#include "train/meter.h"
#include "train/peer_caches.h"
#include "train/served.h"

namespace mayfly {

/// A worker's side of docs/protocol.md: does what the controller says, in one thread. Loads the job and is measured;
/// how it trains with others is the affair of its Teamwork.
class Worker final : public Member {
 public:
  using Options = Gear::Options;
  explicit Worker(Options options);
  ~Worker();

 private:
  Line& line() override { return gear_.line; }
  Result<void> obey(const ToMember& message) override;
  void drop() override;
  void save_what_it_has() override;
  void save_what_others_lack() override;
  void finish() override;

  // Each returns an error where the worker cannot go on at all.
  Result<void> load(const Welcome& told);
  Result<void> measure(const Measure& measure);
  Result<void> look(const Measure& measure, Teamwork& way, Measurement& seen);
  Result<void> rehearse_data(std::int64_t samples, Measurement& seen);

  /// Of all ways this one alone has a formation from now on.
  template <class Kind>
  Kind& only(Kind& next);
  Result<void> halt(const Halt& halt);
  /// None: it holds nothing that others could want.
  std::optional<int> turn_to_save() const;
  void save_if_newest();

  // Where samples come from.
  Result<PeerCaches*> open_peers();
  Result<void> meet_neighbours(const Neighbours& neighbours);

  std::unique_ptr<TcpPeerCaches> peers_{};  ///< where workers' caches are one; the job's feed reads from them
  Gear gear_;
  Meshed meshed_;
  Served served_;
  const std::array<Teamwork*, 2> ways_{&meshed_, &served_};
  Meter meter_{};
};

}  // namespace mayfly
