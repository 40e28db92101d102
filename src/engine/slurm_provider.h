#pragma once

#include <string>
#include <vector>

#include "engine/asked_engine.h"
#include "engine/slurm_script.h"

namespace mayfly {

/// Slurm: machines are elements of job arrays. An array is named after the first of its launches, so the queue itself
/// says which machines there are.
class SlurmProvider final : public Provider {
 public:
  explicit SlurmProvider(SlurmRun run) : run_(std::move(run)) {}
  static EngineChoice choice(SlurmRun run);

  std::string name() const override { return "Slurm"; }
  Seconds patience() const override { return Seconds(20); }  // it waits for a controller that is being started again
  Seconds interval() const override { return Seconds(5); }
  Expectation expected(const MachineRole& role) const override;
  std::vector<Order> together(std::span<const Order> waiting) const override;
  Result<ProgramCall> order(std::span<const Order> orders) override;
  std::vector<Granted> placed(std::span<const Order> orders, const ProgramEnd& end) override;
  ProgramCall list() override;
  Result<std::vector<Listed>> listed(const ProgramEnd& end) override;
  ProgramCall end(std::span<const Ordered> machines) override;
  ProgramCall tell(std::span<const Ordered> machines) override;

 private:
  SlurmRun run_;
};

}  // namespace mayfly
