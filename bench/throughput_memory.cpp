#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.h"
#include "predict/gpu_ratio.h"
#include "predict/memory.h"
#include "throughput_rows.h"

namespace mayfly::bench {
namespace {

/// A published run, or one that did not fit.
struct Run {
  std::string source{};
  std::string job{};  ///< runs of the same job differ in batch and GPU only
  const Gpu* gpu = nullptr;
  Recipe recipe{};
  int gpus = 1;
  double batch = 0;
  std::optional<double> peak{};  ///< 10^9 bytes
  bool fitted = false;
  bool sized = false;  ///< parameters, sequence and how it was shared are known: no adapters, no split layers
};

Optimiser optimiser_called(std::string_view text) {
  if (contains(text, "LAMB")) return Optimiser::lamb;
  return contains(text, "Adam") ? Optimiser::adam : Optimiser::momentum;
}

Shard shard_called(std::string_view parallelism) {
  if (contains(parallelism, "FSDP") || contains(parallelism, "FULL_SHARD")) return Shard::parameters;
  if (contains(parallelism, "GRAD_OP") || contains(parallelism, "ZeRO-2")) return Shard::gradients;
  return contains(parallelism, "ZeRO-1") ? Shard::optimiser : Shard::none;
}

Recipe recipe_of(const Row& row) {
  const std::string& source = text(row, "source");
  const std::string& precision = text(row, "precision");
  const std::string& recomputed = text(row, "activation_checkpointing");
  Recipe recipe{.precision = precision == "fp32" || precision == "tf32" ? Precision::fp32 : Precision::bf16,
                .network = network_called(text(row, "model")),
                .parameters = 1e9 * number(row, "params_billion"),
                .optimiser = optimiser_called(text(row, "optimizer")),
                .shard = shard_called(text(row, "parallelism"))};
  if (contains(source, "litgpt")) recipe.weights = Weights::half;
  if (contains(source, "DeepSpeed")) recipe.weights = Weights::half_with_master;
  if (recomputed == "full" || recomputed == "True") recipe.recompute = Recompute::full;
  if (recomputed == "selective") recipe.recompute = Recompute::selective;
  if (number(row, "seq_len") > 0) {
    recipe.network = Network::transformer;
    recipe.sequence = number(row, "seq_len");
  }
  recipe.flash = contains(source, "foundry") || contains(source, "titan") || contains(source, "litgpt") ||
                 contains(source, "TinyLlama");
  return recipe;
}

std::vector<Run> runs_of(const std::vector<Row>& rows, const Catalog& gpus) {
  std::vector<Run> runs;
  for (const Row& row : rows) {
    const std::string& source = text(row, "source");
    const std::string& task = text(row, "task");
    const std::string& parallelism = text(row, "parallelism");
    const std::string& note = text(row, "note");
    const Gpu* gpu = gpu_of(row, gpus);
    const bool known = text(row, "fits") == "yes" || text(row, "fits") == "no";
    if (gpu == nullptr || !known || contains(note, "SUSPECT") || task.empty() || task == "weights only") continue;
    Run run{.source = source.substr(0, source.find('@')),
            .gpu = gpu,
            .recipe = recipe_of(row),
            .gpus = std::max(1, static_cast<int>(number(row, "gpus"))),
            .batch = std::max(1.0, number(row, "batch_per_gpu")),
            .fitted = text(row, "fits") == "yes"};
    if (run.fitted && number(row, "peak_gb") > 0) run.peak = number(row, "peak_gb");
    // Readings of another process, or of a run that never came to a step.
    const bool lambda = contains(source, "lambdal");
    if (lambda && run.peak && (*run.peak < 3 || *run.peak > 1.02 * memory_there(gpu->memory_gib))) continue;
    const bool adapters = contains(task, "lora") || contains(task, "LoRA") || contains(task, "Adapter");
    const bool split = contains(parallelism, "TP") || contains(parallelism, "CP") || contains(parallelism, "PP");
    run.sized = !adapters && !split;
    // What adapters train is not what a job's parameters are.
    if (adapters) run.recipe = {};
    run.job = text(row, "model") + (is_half(run.recipe.precision.value_or(Precision::bf16)) ? " half" : " full");
    if (!lambda) run.job += task + parallelism + text(row, "seq_len") + text(row, "activation_checkpointing") + note;
    runs.push_back(std::move(run));
  }
  return runs;
}

MemoryNeed need_from(const Run& seen, double batch) {
  const Catalog catalog{.types = {InstanceType{.name = "seen", .gpu = *seen.gpu, .gpu_count = 1}}};
  Profile profile{.recipe = seen.recipe};
  profile.types["seen"] = {.batch = seen.batch, .batches = {{.batch = seen.batch, .peak_mb = 1e3 * *seen.peak}}};
  return memory_need(profile, profile.recipe, catalog, batch, seen.gpus).value();
}

/// Which GPUs a peak is told from: of the generation (until Turing, or later) that it is told for, or any.
enum class From { generation, any };
constexpr std::array<std::pair<From, const char*>, 2> kGiven{
    {{From::generation, "a batch, GPU of the generation"}, {From::any, "a batch, any GPU"}}};
bool old(const Run& run) { return run.gpu->architecture == "volta" || run.gpu->architecture == "turing"; }

/// Of every run with a peak, for every other batch of the same job.
template <class Use>
void for_pairs(const std::vector<Run>& runs, From from, const Use& use) {
  for (const Run& seen : runs) {
    for (const Run& asked : runs) {
      const bool told = seen.peak && seen.job == asked.job && seen.batch != asked.batch;
      if (told && (from == From::any || old(seen) == old(asked))) use(asked, need_from(seen, asked.batch));
    }
  }
}

void print_peak(const std::string& label, const std::vector<Weighted>& errors) {
  if (errors.empty()) return;
  const auto inside =
      std::count_if(errors.begin(), errors.end(), [](const Weighted& error) { return error.value <= 0.15; });
  fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} |\n", label, errors.size(),
             100 * static_cast<double>(inside) / static_cast<double>(errors.size()), 100 * quantile(errors, 0.5),
             100 * quantile(errors, 0.8));
}

/// Answers of fits() for runs that fitted, and for those that did not.
struct Verdicts {
  std::array<std::array<int, 3>, 2> counts{};
  void add(const Run& run, const MemoryNeed& need) {
    ++counts[run.fitted ? 0 : 1][static_cast<std::size_t>(fits(need, run.gpu->memory_gib))];
  }
  void print(const std::string& label) const {
    const auto& [yes, no] = counts;
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", label, yes[0], yes[1], yes[2], no[0], no[1], no[2]);
  }
};
static_assert(static_cast<int>(Fits::yes) == 0 && static_cast<int>(Fits::unsure) == 1 &&
              static_cast<int>(Fits::no) == 2);

std::optional<MemoryNeed> need_of(const Run& run) {
  return memory_need(Profile{.recipe = run.recipe}, run.recipe, Catalog{}, run.batch, run.gpus);
}

void print_peaks(const std::vector<Run>& runs) {
  fmt::print("\nMost memory of a run\n\n| given | runs | within 15 % (%) | median % | 80 % |\n");
  fmt::print("| --- | --- | --- | --- | --- |\n");
  for (const auto& [from, label] : kGiven) {
    std::vector<Weighted> errors, bounded;
    for_pairs(runs, from, [&](const Run& asked, const MemoryNeed& need) {
      if (!asked.peak) return;
      errors.push_back({std::abs(need.peak / *asked.peak - 1)});
      bounded.push_back({std::abs(std::min(need.peak, memory_there(asked.gpu->memory_gib)) / *asked.peak - 1)});
    });
    print_peak(label, errors);
    print_peak(fmt::format("{}, no more than the GPU has", label), bounded);
  }
  std::map<std::string, std::vector<Weighted>> unmeasured;
  for (const Run& run : runs) {
    const auto need = run.sized && run.peak ? need_of(run) : std::nullopt;
    if (need && need->basis == MemoryBasis::transformer)
      unmeasured["nothing, transformers of " + run.source].push_back({std::abs(need->peak / *run.peak - 1)});
  }
  for (const auto& [label, errors] : unmeasured) print_peak(label, errors);
}

void print_verdicts(const std::vector<Run>& runs) {
  fmt::print("\nDoes it fit: answers where it did, and where it ran out of memory\n\n");
  fmt::print("| given | did: yes | unsure | no | did not: yes | unsure | no |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- |\n");
  std::map<std::string, Verdicts> verdicts;
  for (const auto& [from, label] : kGiven)
    for_pairs(runs, from,
              [&, key = label](const Run& asked, const MemoryNeed& need) { verdicts[key].add(asked, need); });
  for (const Run& run : runs) {
    const auto need = run.sized ? need_of(run) : std::nullopt;
    if (!need) continue;
    const bool shaped = need->basis == MemoryBasis::transformer;
    verdicts[shaped ? "nothing, transformers" : "nothing, other networks"].add(run, *need);
    if (!shaped) continue;
    verdicts["nothing, transformers of " + run.source].add(run, *need);
    Run told = run;
    told.recipe.tuned = contains(run.source, "foundry") || contains(run.source, "titan");
    verdicts["nothing, transformers, told whether the code is tuned"].add(told, *need_of(told));
  }
  for (const auto& [label, counts] : verdicts) counts.print(label);
}

}  // namespace

void print_memory(const std::vector<Row>& rows, const Catalog& gpus) {
  const std::vector<Run> runs = runs_of(rows, gpus);
  print_peaks(runs);
  print_verdicts(runs);
}

}  // namespace mayfly::bench
