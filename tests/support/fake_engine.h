#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "support/agenda.h"

namespace mayfly::support {

/// An engine in simulated time with the faults of real ones: orders come late, in part, or are refused; some are
/// forgotten without a word; what is seen is told late, twice, or never.
class FakeEngine final : public Engine {
 public:
  /// Chances; all of them none: a machine comes at once, and everything is told.
  struct Faults {
    double refuse = 0;
    double forget = 0;   ///< an order
    double twice = 0;    ///< a sight is told
    double untold = 0;   ///< a sight is not
    Seconds delay{0.1};  ///< mean, of machines and of sights
    Seconds unlisted{};  ///< an order is not among all sights for so long at the most
  };
  /// What machines do is not the engine's affair.
  struct Machines {
    std::function<void(int launch, const MachineRole&)> boot{};
    std::function<void(int launch)> notify{};
    std::function<void(int launch)> kill{};
  };

  FakeEngine(Agenda& agenda, Rng& rng, Machines machines)
      : agenda_(agenda), rng_(rng), machines_(std::move(machines)) {}

  /// As after a restart of the process that drives it: whoever was told before is told no more.
  void connect(Calls calls) {
    calls_ = std::move(calls);
    ++listener_;
  }
  void disconnect() { connect({}); }
  void set(Faults faults) { faults_ = faults; }

  void order(std::span<const Order> orders) override;
  void tell(int launch) override;
  void end(int launch) override;
  std::vector<Sighting> sights() const override;
  void adopt(std::span<const Order> kept) override;
  std::string tail(int) const override { return {}; }
  void sweep() override;
  void finish() override {}
  Expectation expected(const MachineRole&) const override { return {.start = Seconds(5), .notice = Seconds(5)}; }

  /// A machine ended, by itself or taken away.
  void ended(int launch, Ending ending);
  /// What cost money, or would.
  std::vector<int> held() const;
  /// Launches that were asked for more than once.
  const std::set<int>& ordered_twice() const { return twice_; }

 private:
  struct Machine {
    MachineRole role{};
    Sighting::Stage stage = Sighting::Stage::ordered;
    Seconds since{};
    Seconds listed{};
  };
  void come(int launch);
  void see(Sighting sight);
  Sighting sight_of(int launch, const Machine& machine) const;
  Seconds delay() { return Seconds(rng_.exponential(faults_.delay.count())); }

  Agenda& agenda_;
  Rng& rng_;
  Machines machines_;
  Calls calls_{};
  Faults faults_{};
  int listener_ = 0;
  std::map<int, Machine> launches_{};
  std::set<int> ever_{};
  std::set<int> twice_{};
};

}  // namespace mayfly::support
