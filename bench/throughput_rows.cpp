#include "throughput_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/text.h"
#include "predict/gpu_ratio.h"

namespace mayfly::bench {
namespace {

std::vector<std::string> cells_in(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return made;
}

/// lambdal/deeplearning-benchmark@a5681044 file -> deeplearning-benchmark
std::string collection(std::string_view source) {
  const std::string_view repository = source.substr(0, source.find('@'));
  return std::string(repository.substr(repository.rfind('/') + 1));
}

/// Collections that measured several GPUs with the same software, one at a time.
bool compares_gpus(std::string_view source, std::string_view model) {
  if (source == "artifacts") return model != "sia-ncf";
  if (source == "transformers-benchmarks") return contains(model, "layer");
  return source == "deeplearning-benchmark" || source == "lambda-tensorflow-benchmark" ||
         source == "DeepLearningExamples";
}

std::string family_of(std::string_view model) {
  // The first that occurs.
  constexpr std::array<std::string_view, 14> kFamilies{"bert", "resnext", "resnet",   "rn50",         "xl",
                                                       "gnmt", "ssd",     "waveglow", "efficientnet", "efficientdet",
                                                       "tft",  "bart",    "unet",     "vnet"};
  const std::string name = lower(model);
  for (const std::string_view part : kFamilies) {
    if (contains(name, part)) return part == "rn50" ? "resnet" : std::string(part);
  }
  return name;
}

bool is_host_bound(std::string_view model, std::string_view software) {
  constexpr std::array<std::string_view, 11> kFamilies{
      "maskrcnn", "tacotron", "ncf", "a3c", "recommend", "wideanddeep", "dcn", "sim-", "se3", "cyclegan", "moflow"};
  const std::string name = lower(model);
  return (model == "GNMT" && software == "TensorFlow1") ||
         std::any_of(kFamilies.begin(), kFamilies.end(), [&](std::string_view part) { return contains(name, part); });
}

/// "12k" is 12000 and "256 tokens" 256; nothing where there is no digit.
std::optional<double> batch_of(const Row& row) {
  std::string digits;
  for (const char c : text(row, "batch_per_gpu")) {
    if (c >= '0' && c <= '9') digits += c;
    if (c == 'k') digits += "000";
  }
  return parse_number(digits);
}

/// Speeds by GPU and batch; 0 for a batch that is not told.
using Seen = std::map<const Gpu*, std::map<double, std::vector<double>>>;

double chosen_batch(const Seen& seen, const std::map<double, std::vector<double>>& own, bool any) {
  for (auto batch = own.rbegin(); !any && batch != own.rend(); ++batch) {
    const bool all =
        std::all_of(seen.begin(), seen.end(), [&](const auto& gpu) { return gpu.second.contains(batch->first); });
    if (all) return batch->first;
  }
  return own.rbegin()->first;
}

std::vector<Speed> speeds_of(const Seen& seen, std::string_view source) {
  std::vector<Speed> speeds;
  std::set<double> batches;
  for (const auto& [gpu, own] : seen) {
    const double batch = chosen_batch(seen, own, source == "artifacts");
    std::vector<double> values = own.at(batch);
    std::sort(values.begin(), values.end());
    // NVIDIA names some configurations twice; elsewhere these are several hosts.
    const double value = source == "DeepLearningExamples" ? values.back() : values[values.size() / 2];
    batches.insert(batch);
    speeds.push_back({.gpu = gpu, .log_speed = std::log(value), .log_batch = batch > 0 ? std::log(batch) : 0});
  }
  // Labels further apart are of batches that were accumulated.
  constexpr double kComparable = 16;
  if (*batches.begin() == 0 || *batches.rbegin() > kComparable * *batches.begin()) {
    for (Speed& speed : speeds) speed.log_batch = 0;
  }
  return speeds;
}

}  // namespace

Result<std::vector<Row>> load_rows(const std::filesystem::path& path) {
  const auto file = load_text(path);
  if (!file) return unexpected(file.error());
  std::vector<std::string> names;
  std::vector<Row> rows;
  for (const auto line : split(*file, '\n')) {
    if (trimmed(line).empty()) continue;
    const auto cells = cells_in(line);
    if (names.empty()) {
      names = cells;
      continue;
    }
    if (cells.size() != names.size())
      return fail("{}: '{}': {} cells, want {}", path.string(), line, cells.size(), names.size());
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

const std::string& text(const Row& row, std::string_view column) {
  static const std::string none;
  const auto found = row.find(column);
  return found == row.end() ? none : found->second;
}
double number(const Row& row, std::string_view column) { return parse_number(text(row, column)).value_or(0); }
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

const Gpu* gpu_of(const Row& row, const Catalog& gpus) {
  constexpr std::string_view kModels =
      "A10 PCIe 24GB=A10-24GB;A10G PCIe 24GB (AWS g5)=A10G-24GB;A100 PCIe 40GB=A100-PCIE-40GB;"
      "A100 PCIe 80GB=A100-PCIE-80GB;A100 SXM4 40GB=A100-40GB;A100 SXM4 80GB=A100-80GB;A40 PCIe 48GB=A40-48GB;"
      "B200 SXM 180GB=B200-180GB;GB200 per GPU 186GB=GB200-186GB;GTX 1080 Ti 11GB=GTX1080Ti-11GB;"
      "H100 PCIe 80GB=H100-PCIE-80GB;"
      "H100 SXM5 80GB=H100-80GB;H100 SXM5 96GB HBM2e 2.4TB/s (custom)=H100-SXM-96GB;Quadro RTX 5000 16GB=RTX5000-16GB;"
      "Quadro RTX 6000 24GB=RTX6000-24GB;Quadro RTX 8000 48GB=RTX8000-48GB;RTX 2080 Ti 11GB=RTX2080Ti-11GB;"
      "RTX 3070 8GB=RTX3070-8GB;RTX 3080 10GB=RTX3080-10GB;RTX 3090 Ti 24GB=RTX3090Ti-24GB;RTX 3090 24GB=RTX3090-24GB;"
      "RTX 4090 24GB=RTX4090-24GB;RTX A4000 16GB=A4000-16GB;RTX A5500 24GB=A5500-24GB;RTX A6000 48GB=A6000-48GB;"
      "T4 PCIe 16GB=T4-16GB;TITAN RTX 24GB=TitanRTX-24GB;V100 SXM2 16GB=V100-16GB;V100 SXM2 32GB=V100-32GB;"
      "V100 SXM3 32GB (DGX-2)=V100-SXM3-32GB;V100 SXM3 32GB 450W (DGX-2H)=V100-SXM3-32GB-450W";
  const std::string wanted = text(row, "gpu") + " " + text(row, "gpu_variant");
  for (const auto entry : split(kModels, ';')) {
    const auto both = split(entry, '=');
    if (both[0] == wanted) return gpus.find_gpu(both[1]);
  }
  return nullptr;
}

std::vector<Cell> cells_of(const std::vector<Row>& rows, const Catalog& gpus) {
  constexpr double kLeastMemory = 10;
  std::map<std::tuple<std::string, std::string, std::string, bool>, std::pair<Row, Seen>> found;
  for (const Row& row : rows) {
    const bool one = number(row, "gpus_per_node") == 1 && (text(row, "nodes").empty() || number(row, "nodes") == 1);
    const std::string& note = text(row, "note");
    const std::string source = collection(text(row, "source"));
    const Gpu* gpu = gpu_of(row, gpus);
    const auto batch = batch_of(row);
    if (!one || contains(note, "SUSPECT") || contains(note, "near memory limit") || batch == 0 || gpu == nullptr ||
        gpu->memory_gib <= kLeastMemory || !compares_gpus(source, text(row, "model")))
      continue;
    std::string software = text(row, "framework");
    // One GPU of Lambda's was measured with 1.10 alone.
    if (source == "deeplearning-benchmark" && (software == "PyTorch 1.9" || software == "PyTorch 1.10"))
      software = "PyTorch 1.9-1.10";
    const bool half = text(row, "precision") == "fp16" || text(row, "precision") == "bf16";
    auto& [first, seen] = found[{source, software, text(row, "model"), half}];
    if (seen.empty()) first = row;
    seen[gpu][batch.value_or(0)].push_back(number(row, "throughput"));
  }
  std::vector<Cell> cells;
  for (const auto& [key, of] : found) {
    const auto& [source, software, model, half] = key;
    if (of.second.size() < 2) continue;
    cells.push_back({.source = source,
                     .model = model,
                     .family = family_of(model),
                     .recipe = {.precision = half ? Precision::fp16 : Precision::fp32,
                                .network = network_called(model + " " + text(of.first, "task"))},
                     .half = half,
                     .host_bound = is_host_bound(model, software),
                     .speeds = speeds_of(of.second, source)});
  }
  return cells;
}

double quantile(std::vector<Weighted> values, double share) {
  std::sort(values.begin(), values.end(), [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double all = 0;
  for (const Weighted& one : values) all += one.weight;
  double sum = 0;
  for (const Weighted& one : values) {
    sum += one.weight;
    if (sum >= share * all * (1 - 1e-12)) return one.value;
  }
  return values.back().value;
}

}  // namespace mayfly::bench
