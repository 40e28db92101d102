#include "engine/slurm_provider.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "engine/slurm_text.h"

namespace mayfly {
namespace {

/// Until a machine says its first word once it runs: a prologue, a file system that is asked for the first time.
constexpr Seconds kSlurmStart{60};
constexpr Seconds kSlurmScriptStart{300};

ProgramCall cancelled(std::vector<std::string> words, std::span<const Ordered> machines) {
  for (const Ordered& machine : machines) words.push_back(machine.id);
  return {.words = std::move(words)};
}

Listed listed_of(const SlurmElement& element) {
  Listed one{.launch = element.launch,
             .id = element.id,
             .phase = slurm_phase(element.state),
             .age = element.elapsed,
             .ending = slurm_ending(element)};
  const bool waits = one.phase == Listed::Phase::waiting;
  one.where = waits ? fmt::format("job {} waits in {}: {}", element.id, element.partition, element.reason)
                    : fmt::format("{}, job {}", element.node, element.id);
  if (waits && element.reason != "None")
    one.waits = fmt::format("in partition {}: {}", element.partition, element.reason);
  return one;
}

}  // namespace

EngineChoice SlurmProvider::choice(SlurmRun run) {
  EngineChoice chosen;
  chosen.expected = [run](const MachineRole& role) { return SlurmProvider(run).expected(role); };
  chosen.start = [run = std::move(run)](Loop& loop, const RunTerms& terms, Engine::Calls calls) {
    SlurmRun own = run;
    own.machine.terms = terms;
    return std::make_unique<AskedEngine>(loop, std::make_unique<SlurmProvider>(std::move(own)), terms,
                                         std::move(calls));
  };
  return chosen;
}

Expectation SlurmProvider::expected(const MachineRole& role) const {
  const auto notice = run_.machine.notice.find(role.market);
  return {.start = run_.machine.runs_script(role) ? kSlurmScriptStart : kSlurmStart,
          .notice = notice == run_.machine.notice.end() ? Seconds(0) : notice->second};
}

/// Those that are alike, as one array.
std::vector<Order> SlurmProvider::together(std::span<const Order> waiting) const {
  std::vector<Order> alike;
  for (const Order& order : waiting) {
    const bool fits = order.launch - waiting.front().launch < run_.array_size;
    if (fits && order.role == waiting.front().role) alike.push_back(order);
  }
  return alike;
}

Result<ProgramCall> SlurmProvider::order(std::span<const Order> orders) {
  SlurmArray array{.role = orders.front().role};
  for (const Order& order : orders) array.launches.push_back(order.launch);
  auto words = sbatch_words(run_, array);
  if (!words) return unexpected(words.error());
  return ProgramCall{.words = *std::move(words), .input = batch_script(run_, array)};
}

std::vector<Granted> SlurmProvider::placed(std::span<const Order> orders, const ProgramEnd& end) {
  const auto array = end.well() ? submitted_array(end.output) : Result<int>(unexpected(Error{end.why()}));
  std::vector<Granted> all;
  for (const Order& order : orders) {
    Granted& one = all.emplace_back();
    if (array) one.id = fmt::format("{}_{}", *array, order.launch - orders.front().launch);
    if (!array && end.late) one.doubt = "sbatch: " + array.error().message;
    if (!array && !end.late) one.refused = array.error().message;
  }
  return all;
}

ProgramCall SlurmProvider::list() {
  return {.words = {"squeue", "--noheader", "--array", "--states=all", fmt::format("--user={}", ::getuid()),
                    fmt::format("--format={}", kSlurmFormat)}};
}

Result<std::vector<Listed>> SlurmProvider::listed(const ProgramEnd& end) {
  if (!end.well()) return unexpected(Error{end.why()});
  const auto elements = slurm_elements(end.output, run_.machine.terms.run);
  if (!elements) return unexpected(elements.error());
  std::vector<Listed> all;
  for (const SlurmElement& element : *elements) all.push_back(listed_of(element));
  return all;
}

ProgramCall SlurmProvider::end(std::span<const Ordered> machines) { return cancelled({"scancel"}, machines); }

ProgramCall SlurmProvider::tell(std::span<const Ordered> machines) {
  return cancelled({"scancel", "--signal=TERM"}, machines);
}

}  // namespace mayfly
