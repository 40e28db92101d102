#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cloud/catalog.h"
#include "job/recipe.h"

// Published measurements of training, as bench/throughput compares them with what is predicted.
namespace mayfly::bench {

/// A row of a table, by the names in its first line.
using Row = std::map<std::string, std::string, std::less<>>;
/// Comma-separated; cells may stand in quotes.
Result<std::vector<Row>> load_rows(const std::filesystem::path& path);
const std::string& text(const Row& row, std::string_view column);
/// 0 where the cell holds no number.
double number(const Row& row, std::string_view column);
bool contains(std::string_view text, std::string_view part);

/// What a row calls "A100" and "SXM4 80GB"; null for what data/gpus.yaml does not have or no row that is used names.
const Gpu* gpu_of(const Row& row, const Catalog& gpus);

struct Speed {
  const Gpu* gpu = nullptr;
  double log_speed = 0;
  double log_batch = 0;  ///< 0 in the whole cell where batches cannot be compared
};
/// One network with one software in one precision class (half, or 32 bits), on one GPU of each kind.
struct Cell {
  std::string source{};
  std::string model{};
  std::string family{};
  Recipe recipe{};
  bool half = false;
  bool host_bound = false;  ///< by its family: small steps, many launches
  std::vector<Speed> speeds{};
};
/// Of one GPU with more than 10 GB. Left out: rows called suspect, or measured at the limit of the memory; where a GPU
/// has several batches, all but the largest that all GPUs have.
std::vector<Cell> cells_of(const std::vector<Row>& rows, const Catalog& gpus);

struct Weighted {
  double value = 0;
  double weight = 1;
};
/// The smallest value that a share of all weight does not exceed. Requires values.
double quantile(std::vector<Weighted> values, double share);

/// Large language models in tuned code: how far one GPU's speed is from what another's tells, as Markdown.
void print_tuned(const std::vector<Row>& rows, const Catalog& gpus);

/// Peaks and verdicts of memory.csv against predict/memory.h, as Markdown.
void print_memory(const std::vector<Row>& rows, const Catalog& gpus);

}  // namespace mayfly::bench
