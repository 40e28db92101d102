#include "cli/run_engine.h"

#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cli/captured.h"
#include "cli/offered.h"
#include "cli/slurm_setup.h"
#include "data/new_file.h"
#include "engine/exec_provider.h"
#include "engine/local_engine.h"
#include "engine/slurm_provider.h"
#include "engine/ssh_provider.h"

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

/// A path of the command line is the caller's; one of a file lies beside the job file.
std::string absolute_program(const std::string& program) {
  std::error_code error;
  return program.find('/') == std::string::npos ? program : std::filesystem::absolute(program, error).string();
}

/// "local", "none", "slurm", "ssh", "exec" or "exec:PROGRAM"; empty: as the job says, else local.
Result<void> adopt_named(const std::string& named, EngineSpec& engine) {
  if (named.empty()) {
    if (engine.kind.empty()) engine.kind = "local";
    return {};
  }
  constexpr std::string_view kExec = "exec:";
  engine.kind = named.starts_with(kExec) ? "exec" : named;
  if (named.starts_with(kExec)) engine.exec.program = {absolute_program(named.substr(kExec.size()))};
  if (named == kExec) return fail("--engine exec: which program? want --engine exec:PROGRAM");
  if (is_engine_kind(engine.kind)) return {};
  return fail("--engine '{}': want local, none, slurm, ssh or exec:PROGRAM", named);
}

/// With the path of its program, which a job file names from its own folder on.
Result<ExecSpec> program_spec(const RunSetup& setup) {
  ExecSpec spec = setup.engine.exec;
  std::string& program = spec.program.front();
  std::error_code error;
  const bool path = program.find('/') != std::string::npos;
  const std::string file = path ? (setup.inputs.job_file.parent_path() / program).string() : found_in_path(program);
  if (file.empty() || ::access(file.c_str(), X_OK) != 0 || std::filesystem::is_directory(file, error))
    return fail("--engine exec: {}: no program{}", path ? file : program, path ? "" : " of that name");
  program = file;
  return spec;
}

/// Whoever cannot even say what machines there are gets no run.
Result<void> check_answers(Provider& provider, const std::string& who) {
  const auto listed = provider.listed(answer_to(provider.list(), provider.patience()));
  return listed ? Result<void>{} : fail("{}: {}", who, listed.error().message);
}

Result<EngineChoice> program_machines(const RunFlags& flags, RunSetup& setup, std::optional<Seconds> notice) {
  auto spec = program_spec(setup);
  if (!spec) return unexpected(spec.error());
  setup.engine.exec.program = spec->program;
  if (notice) spec->notice = *notice;
  auto machine = machine_program(flags, setup, spec->setup, spec->shared_files);
  if (!machine) return unexpected(machine.error());
  ExecProvider provider(*spec, {.terms = {.run = "check"}});
  if (const auto answers = check_answers(provider, fmt::format("--engine exec: {}: list", spec->program.front()));
      !answers)
    return unexpected(answers.error());
  return ExecProvider::choice(*std::move(spec), *std::move(machine));
}

Result<EngineChoice> ssh_machines(const RunFlags& flags, RunSetup& setup, std::optional<Seconds> notice) {
  if (found_in_path("ssh").empty()) return fail("--engine ssh: no ssh on this machine (package openssh-client)");
  SshSpec spec = setup.engine.ssh;
  for (const MachineRole& role : kinds_of(setup.inputs)) {
    const bool some = std::ranges::any_of(spec.hosts, [&](const SshHost& host) { return suits(host, role); });
    if (!some)
      return fail("--engine ssh: engine.ssh.hosts has none for {}, {}: want one with market: {}",
                  role.server ? "servers" : role.type, name(role.market), name(role.market));
  }
  if (notice) spec.notice = *notice;
  auto machine = machine_program(flags, setup, spec.setup, spec.shared_files);
  if (!machine) return unexpected(machine.error());
  if (!spec.shared_files) {
    const auto seal = seal_of(setup.program);
    if (!seal) return unexpected(seal.error());
    machine->copy = fmt::format("{:016x}", seal->xxh3);
  }
  SshProvider provider(spec, {.terms = {.run = "check"}});
  if (const auto answers = check_answers(provider, "--engine ssh"); !answers) return unexpected(answers.error());
  if (const std::string silent = provider.unheard(); !silent.empty())
    setup.notes.push_back(fmt::format("of the hosts, these do not answer: {}", silent));
  return SshProvider::choice(std::move(spec), *std::move(machine));
}

Result<EngineChoice> chosen_machines(const RunFlags& flags, RunSetup& setup, std::optional<Seconds> notice) {
  const std::string& kind = setup.engine.kind;
  if (kind == "slurm") return slurm_machines(flags, setup, notice);
  if (kind == "exec") return program_machines(flags, setup, notice);
  if (kind == "ssh") return ssh_machines(flags, setup, notice);
  return local_machines(flags, setup, notice.value_or(setup.weather ? kTraceNotice : kUsualNotice));
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
  if (const auto named = adopt_named(flags.engine, setup.engine); !named) return named;
  const std::string& kind = setup.engine.kind;
  if (kind == "slurm") {
    // The cluster's default partition, where the user has none in mind.
    SlurmSpec& slurm = setup.engine.slurm;
    if (!slurm.spot && !slurm.on_demand) slurm.spot = slurm.on_demand = SlurmQueue{};
  }
  if (kind == "exec" && setup.engine.exec.program.empty())
    return fail("--engine exec: which program? want --engine exec:PROGRAM, or engine.exec.program");
  if (kind == "ssh" && setup.engine.ssh.hosts.empty())
    return fail("--engine ssh: which hosts? want engine.ssh.hosts in the job file, or --engine-file");
  return offered_by(setup.engine) ? check_machine_flags(flags, setup.inputs.spec, setup.engine) : Result<void>{};
}

Result<std::unique_ptr<Provider>> provider_of(const RunSetup& setup, const std::string& tag) {
  const MachineProgram machine{.terms = {.run = tag}};
  if (setup.engine.kind == "slurm") return std::make_unique<SlurmProvider>(SlurmRun{.machine = machine});
  if (setup.engine.kind == "ssh") return std::make_unique<SshProvider>(setup.engine.ssh, machine);
  if (setup.engine.kind != "exec") return nullptr;
  auto spec = program_spec(setup);
  if (!spec) return unexpected(spec.error());
  return std::make_unique<ExecProvider>(*std::move(spec), machine);
}

Result<void> set_engine(const RunFlags& flags, RunSetup& setup) {
  const auto notice = notice_of(flags);
  if (!notice) return unexpected(notice.error());
  const bool local = setup.engine.kind == "local";
  setup.inputs.starts_machines = setup.engine.kind != "none";
  setup.waits = !local || setup.weather.has_value();
  auto machines = chosen_machines(flags, setup, *notice);
  if (!machines) return unexpected(machines.error());
  setup.inputs.engine = *std::move(machines);
  return {};
}

}  // namespace mayfly::cli
