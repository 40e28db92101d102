#include "simulate/bamboo.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "simulate/bamboo_rules.h"

namespace mayfly {
namespace {

using bamboo::in_ms;
using bamboo::Ms;
using bamboo::Setup;
using bamboo::Simulation;

Result<Setup> make_setup(const Profile& profile) {
  if (!profile.pipeline || !profile.pipeline->redundancy)
    return fail("profile {}: no pipeline.redundancy, wanted by the simulation of Bamboo", profile.name);
  const PipelineProfile& pipeline = *profile.pipeline;
  const RedundancyProfile& redundancy = *pipeline.redundancy;
  if (!redundancy.stages && pipeline.min_stages != pipeline.max_stages)
    return fail("profile {}: pipeline.redundancy.stages: missing, wanted one depth of {} to {}", profile.name,
                pipeline.min_stages, pipeline.max_stages);
  Setup setup{.batch = pipeline.global_batch,
              .stages = redundancy.stages.value_or(pipeline.min_stages),
              .start = in_ms(redundancy.start),
              .global_rendezvous = in_ms(redundancy.global_rendezvous),
              .local_rendezvous = in_ms(redundancy.local_rendezvous),
              .slowdown = redundancy.slowdown,
              .capacity = redundancy.capacity};
  for (const ShapeSpeed& shape : pipeline.speeds) {
    if (shape.stages == setup.stages) setup.steps[shape.data_parallel] = in_ms(shape.iteration);
  }
  if (setup.stages < 1 || setup.steps.empty())
    return fail("profile {}: pipeline.speeds: none for {} stages", profile.name, setup.stages);
  return setup;
}

Result<BambooRun> finished_run(const Profile& profile, const Simulation& simulation, const BambooOptions& options) {
  if (const auto width = simulation.unknown_width())
    return fail("profile {}: pipeline.speeds: none for data_parallel {}, which the machines allow", profile.name,
                *width);
  BambooRun run = simulation.result(options.spot);
  const RedundancyProfile& redundancy = *profile.pipeline->redundancy;
  run.on_demand_speed = Samples{profile.pipeline->global_batch} / redundancy.on_demand_step;
  run.on_demand_cost = redundancy.on_demand_gpus * options.on_demand;
  return run;
}

}  // namespace

Result<BambooRun> bamboo_replay(const Profile& profile, const Series& series, const BambooOptions& options) {
  auto setup = make_setup(profile);
  if (!setup) return unexpected(setup.error());
  if (series.stays.empty())
    return fail("the trace names no machines; Bamboo's rules depend on which machine goes, wanted a trace that does");
  struct Row {
    Ms time{};
    bool lost = false;
    int order = 0;
    int machine = 0;
  };
  std::vector<Row> rows;
  int machine = 0;
  for (const Stay& stay : series.stays) {
    rows.push_back({.time = in_ms(stay.begin), .machine = machine});
    if (stay.preempted) rows.push_back({.time = in_ms(stay.end), .lost = true, .order = stay.loss, .machine = machine});
    ++machine;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tuple(a.time, a.lost, a.order) < std::tuple(b.time, b.lost, b.order);
  });
  Simulation simulation(std::move(*setup));
  for (const Row& row : rows) {
    if (row.lost)
      simulation.remove_at(row.time, row.machine);
    else
      simulation.add_at(row.time, row.machine);
  }
  simulation.run(in_ms(options.horizon), std::nullopt);
  return finished_run(profile, simulation, options);
}

Result<BambooRun> bamboo_random(const Profile& profile, const BambooWeather& weather, const BambooOptions& options) {
  auto setup = make_setup(profile);
  if (!setup) return unexpected(setup.error());
  const auto steps = profile.pipeline->redundancy->full_run_steps;
  if (!steps)
    return fail("profile {}: pipeline.redundancy.full_run_steps: missing, wanted to know when training ends",
                profile.name);
  Simulation simulation(std::move(*setup));
  simulation.draw_weather(weather);
  simulation.run(in_ms(weather.longest), static_cast<std::int64_t>(*steps));
  return finished_run(profile, simulation, options);
}

}  // namespace mayfly
