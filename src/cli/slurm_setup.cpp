#include "cli/slurm_setup.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/captured.h"
#include "cli/offered.h"
#include "engine/process.h"
#include "engine/slurm_provider.h"

namespace mayfly::cli {
namespace {

constexpr Seconds kSlurmAnswer{20};
/// Of a machine, where neither job nor partition says anything.
constexpr Seconds kUsualTime{86400};
constexpr Seconds kUsualHandOver{60};
/// Slurm takes no more for --signal.
constexpr Seconds kMostHandOver{65535};

/// Slurm's programs say their name themselves: once is enough.
std::string slurm_words(const std::string& message) {
  const std::string name = message.substr(0, message.find(": ") + 2);
  const bool twice = message.substr(name.size()).starts_with(name);
  return printable(twice ? message.substr(name.size()) : message);
}

Result<std::string> asked(std::vector<std::string> words) {
  auto answer = captured(std::move(words), kSlurmAnswer);
  if (!answer) return fail("{}", slurm_words(answer.error().message));
  return answer;
}

const SlurmPartition* find_partition(const SlurmCluster& cluster, const std::string& name) {
  const auto found = std::ranges::find_if(cluster.partitions, [&](const SlurmPartition& partition) {
    return name.empty() ? partition.standard : partition.name == name;
  });
  return found == cluster.partitions.end() ? nullptr : &*found;
}

Result<SlurmPartition> partition_of(const SlurmCluster& cluster, const SlurmSpec& spec, Market market) {
  const SlurmQueue* queue = queue_of(spec, market);
  if (queue == nullptr)
    return fail(
        "--engine slurm: no partition for the {} market: want engine.slurm.{}, or resources.infra "
        "slurm/PARTITION",
        name(market), name(market));
  if (const auto* found = find_partition(cluster, queue->partition)) return *found;
  std::vector<std::string> names;
  for (const SlurmPartition& partition : cluster.partitions) names.push_back(partition.name);
  if (queue->partition.empty())
    return fail("--engine slurm: this cluster has no default partition: want one of {}", fmt::join(names, ", "));
  return fail("--engine slurm: no partition '{}'{}; want one of {}", queue->partition,
              did_you_mean(queue->partition, names), fmt::join(names, ", "));
}

/// Machines of others would look for the controller on themselves.
Result<void> check_reached(const std::string& interface, const SlurmPartition& partition) {
  if (interface != "lo") return {};
  const auto nodes = asked({"sinfo", "--noheader", "--Node", "--partition=" + partition.name, "--format=%o"});
  if (!nodes) return unexpected(nodes.error());
  for (const std::string_view line : split(*nodes, '\n')) {
    const std::string_view node = trimmed(line);
    if (node.empty() || node.starts_with("127.") || node == "localhost" || node == host_name()) continue;
    return fail(
        "--interface lo: machines of partition {} are other computers, such as {}: want the interface by which "
        "they reach this one",
        partition.name, printable(node));
  }
  return {};
}

/// As long as the partition lets it, the job says, or a promise needs.
Result<Seconds> machine_time(const SlurmSpec& spec, const RunInputs& inputs, const SlurmPartition& partition) {
  if (spec.time && partition.most_time && *spec.time > *partition.most_time)
    return fail("engine.slurm.time {}: partition {} gives at most {}", format_duration(*spec.time), partition.name,
                format_duration(*partition.most_time));
  if (spec.time) return *spec.time;
  Seconds time = kUsualTime;
  // Shorter jobs find room earlier; a run that is a little late still ends by itself.
  if (inputs.spec.deadline) time = std::min(time, *inputs.spec.deadline * 1.1 + Seconds(600));
  if (partition.most_time) time = std::min(time, *partition.most_time);
  return std::max(time, Seconds(60));
}

Result<void> check_taken(const SlurmRun& run, const MachineRole& role, const std::string& partition) {
  const auto options = slurm_options(run, role);
  if (!options) return fail("--engine slurm: {}", options.error().message);
  std::vector<std::string> words{"sbatch", "--test-only"};
  words.insert(words.end(), options->begin(), options->end());
  words.insert(words.end(), {"--output=/dev/null", "--wrap", "true"});
  if (const auto taken = captured(std::move(words), kSlurmAnswer); !taken)
    return fail("--engine slurm: Slurm would not start a {} in partition {}: {}", role.server ? "server" : role.type,
                partition, slurm_words(taken.error().message));
  return {};
}

}  // namespace

Result<SlurmCluster> slurm_cluster() {
  for (const char* program : {"sbatch", "squeue", "scancel", "scontrol"}) {
    if (found_in_path(program).empty())
      return fail("no {} on this machine: want a login node of the cluster, or any on which Slurm's programs are",
                  program);
  }
  const auto config = asked({"scontrol", "show", "config"});
  if (!config) return unexpected(config.error());
  const auto list = asked({"scontrol", "show", "partition", "--oneliner"});
  if (!list) return unexpected(list.error());
  const auto partitions = slurm_partitions(*list);
  if (!partitions) return unexpected(partitions.error());
  return SlurmCluster{.partitions = *partitions, .limits = slurm_limits(*config)};
}

Result<EngineChoice> slurm_machines(const RunFlags& flags, RunSetup& setup, std::optional<Seconds> notice) {
  const auto cluster = slurm_cluster();
  if (!cluster) return fail("--engine slurm: {}", cluster.error().message);
  auto machine = machine_program(flags, setup, setup.engine.slurm.setup, true);
  if (!machine) return unexpected(machine.error());
  SlurmRun run{.machine = *std::move(machine), .spec = setup.engine.slurm, .array_size = cluster->limits.array_size};
  std::optional<Seconds> shortest;
  for (const MachineRole& role : kinds_of(setup.inputs)) {
    const auto partition = partition_of(*cluster, run.spec, role.market);
    if (!partition) return unexpected(partition.error());
    if (!partition->state.starts_with("UP"))
      return fail("--engine slurm: partition {} is {}, want one that is UP", partition->name, partition->state);
    if (const auto reached = check_reached(flags.interface, *partition); !reached) return unexpected(reached.error());
    const auto time = machine_time(run.spec, setup.inputs, *partition);
    if (!time) return unexpected(time.error());
    shortest = std::min(shortest.value_or(*time), *time);
    // Without a grace time a job that must go hears of it as one that is ended.
    const Seconds grace = partition->grace > Seconds(0) ? partition->grace : cluster->limits.kill_wait;
    run.machine.notice[role.market] = notice.value_or(grace);
  }
  run.time = *shortest;
  run.hand_over = std::min({run.spec.hand_over.value_or(kUsualHandOver), run.time / 2, kMostHandOver});
  for (const MachineRole& role : kinds_of(setup.inputs)) {
    const auto partition = partition_of(*cluster, run.spec, role.market);
    if (!partition) return unexpected(partition.error());
    if (const auto taken = check_taken(run, role, partition->name); !taken) return unexpected(taken.error());
  }
  return SlurmProvider::choice(std::move(run));
}

}  // namespace mayfly::cli
