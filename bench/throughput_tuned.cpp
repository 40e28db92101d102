// Large language models in tuned code, one GPU from another: docs/models.md#gpus.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/normal.h"
#include "base/text.h"
#include "predict/gpu_ratio.h"
#include "throughput_links.h"

namespace mayfly::bench {
namespace {

const double kTenth = normal_quantile(0.9);  // of the standard normal

/// One network with one software, precision and length of sequence: the best speed of each kind of GPU.
struct Tuned {
  std::string model{};
  Recipe recipe{};
  bool limited = false;  ///< GPUs were held below the power that they are made for
  std::map<std::string, std::pair<const Gpu*, double>> speeds{};  ///< by model of GPU: tokens/s of one
};

std::string collection_of(const std::string& source) {
  for (const char* name : {"llm-foundry", "Megatron-Bridge", "NeMo", "torchtitan"})
    if (contains(source, name)) return name;
  return "";
}

std::string word_after(const std::string& note, const char* key) {
  std::smatch found;
  return std::regex_search(note, found, std::regex(std::string(key) + R"( (\w+))")) ? found[1].str() : "";
}

using Cells = std::map<std::string, std::map<std::string, Tuned>>;

/// One speed told from another.
struct Guess {
  std::string label{};
  double error = 0;  ///< ln of true against told
  double band = 0;
};

/// By collection and what tells runs apart. What is called suspect is left out.
Cells tuned_cells(const std::vector<Row>& rows, const Catalog& gpus) {
  Cells cells;
  for (const Row& row : rows) {
    const std::string collection = collection_of(text(row, "source"));
    const std::string& precision = text(row, "precision");
    const std::string& note = text(row, "note");
    const bool fp8 = precision == "fp8";
    if (collection.empty() || !contains(text(row, "task"), "LLM") || contains(note, "SUSPECT")) continue;
    if (!fp8 && precision != "bf16" && precision != "fp16") continue;
    const Gpu* gpu = gpu_of(row, gpus);
    const double count = number(row, "gpus_per_node") * number(row, "nodes");
    if (gpu == nullptr || count <= 0 || number(row, "throughput") <= 0) continue;
    const std::string length = word_after(note, "seq");
    const std::string key = fmt::format("{} {} {} {} {} {} {}", text(row, "framework"), text(row, "model"),
                                        collection == "Megatron-Bridge" ? text(row, "task") : "", text(row, "unit"),
                                        precision, length, word_after(note, "ckpt"));
    Tuned& cell = cells[collection][key];
    cell.model = text(row, "model");
    cell.limited = cell.limited || contains(note, "power-limited");
    cell.recipe = {.precision = fp8 ? Precision::fp8 : Precision::bf16, .network = Network::transformer, .tuned = true};
    cell.recipe.sequence = parse_number(length);
    if (const double millions = run_of(row).params; millions > 0) cell.recipe.parameters = 1e6 * millions;
    auto& best = cell.speeds[gpu->model];
    best = {gpu, std::max(best.second, number(row, "throughput") / count)};
  }
  return cells;
}

struct Errors {
  std::vector<Weighted> all{};
  double inside = 0;
  double width = 0;

  void print(const std::string& label) const {
    if (all.empty()) return;
    const auto pairs = static_cast<double>(all.size());
    fmt::print("| {} | {} | {:.1f} | {:.3f} | {:.2f} | {:.1f} | {:.3f} |\n", label, all.size(),
               100 * (std::exp(quantile(all, 0.5)) - 1), std::exp(quantile(all, 0.8)), std::exp(quantile(all, 1)),
               100 * inside / pairs, std::exp(width / pairs));
  }
};

void add(Errors& errors, const Guess& guess) {
  errors.all.push_back({std::abs(guess.error)});
  errors.inside += std::abs(guess.error) <= guess.band ? 1 : 0;
  errors.width += guess.band;
}

/// Between any two GPUs of a cell, both ways.
std::vector<Guess> guesses_of(const std::string& collection, const Tuned& cell, const TunedFit& fit) {
  std::vector<Guess> guesses;
  for (const auto& [a, from] : cell.speeds) {
    for (const auto& [b, to] : cell.speeds) {
      const auto ratio = a == b ? std::nullopt : gpu_ratio(*from.first, *to.first, cell.recipe, fit);
      if (!ratio) continue;
      const char* fp8 = cell.recipe.precision == Precision::fp8 ? ", fp8" : "";
      const char* limited = cell.limited ? ", limited power (not counted)" : "";
      guesses.push_back(
          {.label = fmt::format("{}, {} and {}{}{}", collection, std::min(a, b), std::max(a, b), fp8, limited),
           .error = std::log(to.second / from.second / ratio->speed),
           .band = kTenth * ratio->relative_sd});
    }
  }
  return guesses;
}

/// Far from the others an error counts less.
double misfit(const Cells& cells, const std::string& without, const TunedFit& fit) {
  constexpr double kScale = 0.05;
  double sum = 0;
  for (const auto& [collection, of] : cells) {
    for (const auto& [key, cell] : of) {
      if (cell.model == without || cell.limited) continue;
      for (const Guess& guess : guesses_of(collection, cell, fit)) sum += std::hypot(1, guess.error / kScale) - 1;
    }
  }
  return sum;
}

TunedFit fitted_without(const Cells& cells, const std::string& model) {
  TunedFit best;
  double least = misfit(cells, model, best);
  for (double attention = 0.3; attention < 1.2; attention += 0.01) {
    const double here = misfit(cells, model, {.attention = attention});
    if (here < least) best.attention = attention;
    least = std::min(least, here);
  }
  return best;
}

void print_left_out(const Cells& cells) {
  std::map<std::string, TunedFit> fits;
  Errors all;
  for (const auto& [collection, of] : cells) {
    for (const auto& [key, cell] : of) {
      const auto fit = fits.find(cell.model);
      const TunedFit without = fit != fits.end() ? fit->second : fitted_without(cells, cell.model);
      fits[cell.model] = without;
      for (const Guess& guess : cell.limited ? std::vector<Guess>{} : guesses_of(collection, cell, without))
        add(all, guess);
    }
  }
  all.print("all, attention fitted without the network");
}

}  // namespace

void print_tuned(const std::vector<Row>& rows, const Catalog& gpus) {
  fmt::print(
      "\nLarge language models in tuned code: the best speed of a GPU from another's, same software, precision and "
      "length\n\n| collection, GPUs | pairs | median % | 80 % | worst | in the band % | p90 / p50 |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  const Cells cells = tuned_cells(rows, gpus);
  Errors all, half, untold;
  std::map<std::string, Errors> by_pair;
  for (const auto& [collection, of] : cells) {
    for (const auto& [key, cell] : of) {
      Tuned short_of = cell;
      short_of.recipe.sequence.reset();
      for (const Guess& guess : guesses_of(collection, cell, {})) {
        add(by_pair[guess.label], guess);
        if (!cell.limited) add(all, guess);
        if (!cell.limited && cell.recipe.precision != Precision::fp8) add(half, guess);
      }
      for (const Guess& guess : cell.limited ? std::vector<Guess>{} : guesses_of(collection, short_of, {}))
        add(untold, guess);
    }
  }
  for (const auto& [label, errors] : by_pair) errors.print(label);
  all.print("all");
  half.print("all in half precision");
  untold.print("all, length of the sequence not told");
  print_left_out(cells);
}

}  // namespace mayfly::bench
