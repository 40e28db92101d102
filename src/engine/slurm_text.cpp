#include "engine/slurm_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 4> kWaiting{"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"};
constexpr std::array<std::string_view, 10> kOver{"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED",
                                                 "NODE_FAIL", "PREEMPTED", "REVOKED",   "TIMEOUT",  "OUT_OF_MEMORY"};
constexpr double kMostSeconds = 1e9;

bool is_one_of(std::string_view word, const auto& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "spot" of "PartitionName=spot"; none of another key.
std::optional<std::string_view> value_of(std::string_view word, std::string_view key) {
  if (!word.starts_with(key) || word.size() == key.size() || word[key.size()] != '=') return {};
  return word.substr(key.size() + 1);
}

SlurmPartition partition_of(std::string_view line) {
  SlurmPartition partition;
  for (const std::string_view word : split(line, ' ')) {
    if (const auto name = value_of(word, "PartitionName")) partition.name = *name;
    if (const auto state = value_of(word, "State")) partition.state = *state;
    if (const auto standard = value_of(word, "Default")) partition.standard = *standard == "YES";
    if (const auto mode = value_of(word, "PreemptMode")) partition.preempted = *mode != "OFF";
    if (const auto time = value_of(word, "MaxTime")) partition.most_time = slurm_time(*time);
    if (const auto nodes = value_of(word, "Nodes")) partition.nodes = *nodes;
    // Seconds, unlike every other time here.
    if (const auto grace = value_of(word, "GraceTime"))
      partition.grace = Seconds(std::clamp<double>(static_cast<double>(parse_integer(*grace).value_or(0)), 0, 1e9));
  }
  return partition;
}

Result<SlurmElement> element_of(const std::vector<std::string_view>& fields, std::string_view line) {
  const auto array = parse_integer(fields[0]);
  const auto index = parse_integer(fields[1]);
  if (!array || !index || *array < 0 || *index < 0)
    return fail("squeue: '{}': want numbers of an array and its element", printable(std::string(line.substr(0, 200))));
  return SlurmElement{.launch = static_cast<int>(*index),
                      .id = fmt::format("{}_{}", *array, *index),
                      .state = std::string(fields[2]),
                      .node = std::string(fields[3]),
                      .partition = std::string(fields[4]),
                      .elapsed = slurm_time(fields[5]).value_or(Seconds(0))};
}

}  // namespace

std::string slurm_name(const std::string& run, int launch) {
  std::string name = machine_name(run, launch);
  for (char& c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (letter >= 0x80 || (std::isalnum(letter) == 0 && c != '.' && c != '-' && c != '_')) c = '_';
  }
  return name;
}

Result<std::vector<SlurmElement>> slurm_elements(std::string_view squeue, const std::string& run) {
  constexpr std::size_t kName = 6;
  std::string ours = slurm_name(run, 0);
  ours.pop_back();  // up to the launch
  std::vector<SlurmElement> found;
  for (const std::string_view line : split(squeue, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() <= kName + 1 || !fields[kName].starts_with(ours)) continue;
    const auto first = parse_integer(fields[kName].substr(ours.size()));
    if (!first || *first < 0) continue;  // another run's, whose name begins like this one's
    auto element = element_of(fields, line);
    if (!element) return unexpected(element.error());
    if (*first > (1 << 30) || element->launch > (1 << 20)) continue;  // no launch of ours
    element->launch += static_cast<int>(*first);
    element->reason = line.substr(static_cast<std::size_t>(fields[kName + 1].data() - line.data()));
    found.push_back(*std::move(element));
  }
  return found;
}

Listed::Phase slurm_phase(std::string_view state) {
  using Phase = Listed::Phase;
  if (is_one_of(state, kWaiting)) return Phase::waiting;
  if (state == "CONFIGURING") return Phase::starting;
  if (state == "COMPLETING") return Phase::ending;
  return is_one_of(state, kOver) ? Phase::over : Phase::running;
}

Ending slurm_ending(const SlurmElement& element) {
  using Kind = Ending::Kind;
  const std::string& state = element.state;
  Ending ending;
  if (state == "COMPLETED") ending.kind = Kind::finished;
  if (state == "FAILED" || state == "OUT_OF_MEMORY") ending.kind = Kind::failed;
  ending.how = fmt::format("{} in partition {}", state, element.partition);
  if (!element.reason.empty() && element.reason != "None") ending.how += fmt::format(" ({})", element.reason);
  ending.how = printable(ending.how);
  return ending;
}

Result<int> submitted_array(std::string_view sbatch) {
  const std::string_view line = trimmed(sbatch);
  const auto number = parse_integer(line.substr(0, line.find(';')));
  if (!number || *number < 1) return fail("sbatch: '{}': want the number of a job", printable(std::string(line)));
  return static_cast<int>(*number);
}

std::optional<Seconds> slurm_time(std::string_view text) {
  double days = 0;
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto number = parse_integer(text.substr(0, dash));
    if (!number || *number < 0) return {};
    days = static_cast<double>(*number);
    text.remove_prefix(dash + 1);
  }
  const auto parts = split(text, ':');
  if (parts.size() > 3) return {};
  double total = 0;
  for (const std::string_view part : parts) {
    const auto number = parse_integer(part);
    if (!number || *number < 0) return {};
    total = 60 * total + static_cast<double>(*number);
  }
  // With days the first number is hours; otherwise the last is seconds, unless it is the only one.
  if (dash != std::string_view::npos) {
    for (std::size_t missing = parts.size(); missing < 3; ++missing) total *= 60;
  } else if (parts.size() == 1) {
    total *= 60;
  }
  total += 86400 * days;
  return total <= kMostSeconds ? std::optional(Seconds(total)) : std::nullopt;
}

Result<std::vector<SlurmPartition>> slurm_partitions(std::string_view scontrol) {
  std::vector<SlurmPartition> partitions;
  for (const std::string_view line : split(scontrol, '\n')) {
    if (trimmed(line).empty()) continue;
    partitions.push_back(partition_of(trimmed(line)));
    if (partitions.back().name.empty())
      return fail("scontrol: '{}': want PartitionName=NAME", printable(std::string(line.substr(0, 200))));
  }
  return partitions;
}

SlurmLimits slurm_limits(std::string_view scontrol) {
  SlurmLimits limits;
  for (const std::string_view line : split(scontrol, '\n')) {
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, equals));
    const std::string_view value = trimmed(line.substr(equals + 1));
    const auto number = parse_integer(value.substr(0, value.find(' ')));
    if (!number || *number < 1 || *number > 4'000'001) continue;
    if (key == "KillWait") limits.kill_wait = Seconds(static_cast<double>(*number));
    if (key == "MaxArraySize") limits.array_size = static_cast<int>(*number);
  }
  return limits;
}

}  // namespace mayfly
