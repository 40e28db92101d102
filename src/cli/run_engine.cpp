#include "cli/run_engine.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cli/slurm_setup.h"
#include "engine/local_engine.h"

namespace mayfly::cli {
namespace {

/// Of a SIGTERM whose sender is not known: Kubernetes gives as much.
constexpr Seconds kUsualNotice{30};
/// With a trace, which would not wait as long.
constexpr Seconds kTraceNotice{2};

/// "60x" or "60".
Result<double> parse_speed(const std::string& text) {
  const std::string_view digits =
      !text.empty() && text.back() == 'x' ? std::string_view(text).substr(0, text.size() - 1) : std::string_view(text);
  const auto speed = parse_number(digits);
  if (!speed || *speed <= 0) return fail("--speed '{}': want how many times faster, for example 60x", text);
  return *speed;
}

/// --notice, if it was given.
Result<std::optional<Seconds>> notice_of(const RunFlags& flags) {
  if (flags.notice.empty()) return std::nullopt;
  const auto notice = parse_duration(flags.notice);
  if (!notice) return fail("--notice: {}", notice.error().message);
  return *notice;
}

EngineChoice local_machines(const RunFlags& flags, const RunSetup& setup, Seconds notice) {
  LocalEngine::Options options{.program = setup.program,
                               .arguments = {"--interface", flags.interface, "--notices", setup.notices},
                               .script = setup.inputs.script,
                               .notice = notice,
                               .capacity = setup.inputs.workers,
                               .weather = setup.weather,
                               .speed = setup.speed,
                               .seed = flags.seed};
  if (flags.trust) options.arguments.emplace_back("--trust");
  return LocalEngine::choice(std::move(options));
}

}  // namespace

Result<void> set_weather(const RunFlags& flags, RunSetup& setup) {
  const auto speed = parse_speed(flags.speed);
  if (!speed) return unexpected(speed.error());
  setup.speed = *speed;
  if (flags.trace.empty()) return {};
  auto trace = flags.trace_flags.load(flags.trace);
  if (!trace) return unexpected(trace.error());
  std::erase_if(trace->series, [](const Series& series) { return series.changes.empty(); });
  if (trace->series.empty()) return fail("{}: prices only, want a trace of machines", flags.trace);
  setup.weather = capped(trace->series.size() == 1 ? trace->series[0] : merged(*trace), setup.inputs.workers);
  for (MachineRole& role : setup.inputs.roles) role.market = Market::spot;
  return {};
}

Result<void> choose_engine(const RunFlags& flags, RunSetup& setup) {
  if (setup.inputs.spec.engine) setup.engine = *setup.inputs.spec.engine;
  const std::string job_kind = setup.engine.kind;
  if (!flags.engine_file.empty()) {
    const auto text = load_text(flags.engine_file);
    if (!text) return unexpected(text.error());
    auto engine = parse_engine(*text, flags.engine_file);
    if (!engine) return unexpected(engine.error());
    setup.engine = *std::move(engine);
    setup.engine_text = *text;
    if (setup.engine.kind.empty()) setup.engine.kind = job_kind;
  }
  std::string& kind = setup.engine.kind;
  if (!flags.engine.empty()) kind = flags.engine;
  if (kind.empty()) kind = "local";
  if (kind != "local" && kind != "none" && kind != "slurm")
    return fail("--engine '{}': want local, none or slurm", kind);
  if (kind != "slurm") return {};
  // The cluster's default partition, where the user has none in mind.
  SlurmSpec& slurm = setup.engine.slurm;
  if (!slurm.spot && !slurm.on_demand) slurm.spot = slurm.on_demand = SlurmQueue{};
  return check_slurm_flags(flags, setup.inputs.spec);
}

Result<void> set_engine(const RunFlags& flags, RunSetup& setup) {
  const auto notice = notice_of(flags);
  if (!notice) return unexpected(notice.error());
  const bool local = setup.engine.kind == "local";
  setup.inputs.starts_machines = setup.engine.kind != "none";
  setup.waits = !local || setup.weather.has_value();
  if (setup.engine.kind == "slurm") {
    auto machines = slurm_machines(flags, setup, *notice);
    if (!machines) return unexpected(machines.error());
    setup.inputs.engine = *std::move(machines);
    return {};
  }
  setup.inputs.engine = local_machines(flags, setup, notice->value_or(setup.weather ? kTraceNotice : kUsualNotice));
  return {};
}

}  // namespace mayfly::cli
