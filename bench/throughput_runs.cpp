// What rows of published runs say beyond their cells: parameters, accumulated steps, units.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>

#include "base/least_squares.h"
#include "base/text.h"
#include "throughput_links.h"

namespace mayfly::bench {
namespace {

struct Named {
  std::string_view model{};
  double value = 0;
};
/// Millions of parameters: as published, or from the networks' configurations.
constexpr std::array<Named, 57> kParameters{{{"resnet50", 25.6},
                                             {"ssd", 22.9},
                                             {"bert_base_squad", 108.9},
                                             {"bert_large_squad", 334.1},
                                             {"maskrcnn", 44.2},
                                             {"gnmt", 160.7},
                                             {"ncf", 31.8},
                                             {"tacotron2", 28.2},
                                             {"waveglow", 268},
                                             {"transformerxlbase", 192},
                                             {"transformerxllarge", 247},
                                             {"tf_alexnet", 61.1},
                                             {"tf_vgg16", 138.4},
                                             {"tf_inception3", 23.8},
                                             {"tf_resnet152", 60.2},
                                             {"tf_resnet50", 25.6},
                                             {"RN50v1.5", 25.6},
                                             {"resnet50v1.5", 25.6},
                                             {"resnext101-32x4d", 44.2},
                                             {"se-resnext101-32x4d", 49.0},
                                             {"efficientnet-b0", 5.3},
                                             {"efficientnet-b4", 19.3},
                                             {"efficientnet-widese-b0", 7.1},
                                             {"efficientnet-widese-b4", 34},
                                             {"efficientnet_v2", 21.5},
                                             {"Efficientdet", 3.9},
                                             {"SSD", 22.9},
                                             {"SE3Transformer", 1.5},
                                             {"MoFlow", 3},
                                             {"TFT-Electricity", 1.2},
                                             {"TFT-Traffic", 1.2},
                                             {"BERT-seq128", 336},
                                             {"BERT-seq512", 336},
                                             {"BERT-ft", 334},
                                             {"BERT", 334},
                                             {"BERT/biobert-seq128", 110},
                                             {"BERT/biobert-seq512", 110},
                                             {"BERT/biobert-ft", 110},
                                             {"Transformer-XL-base", 192},
                                             {"Transformer-XL-large", 247},
                                             {"Transformer-XL", 192},
                                             {"MaskRCNN", 44.2},
                                             {"nnUNet-3D", 31},
                                             {"QuartzNet", 18.9},
                                             {"wav2vec2", 95},
                                             {"FastPitch", 45},
                                             {"HiFiGAN", 84},
                                             {"Tacotron2", 28.2},
                                             {"WaveGlow", 268},
                                             {"GNMT", 160.7},
                                             {"UNet_Industrial", 2},
                                             {"VNet", 11},
                                             {"BART-seq128", 406},
                                             {"BART-seq512", 406},
                                             {"BART-ft", 406},
                                             {"llama2_70b_lora", 45},
                                             {"stable_diffusion", 865}}};
/// Of MLPerf, where the same name means another size; recommenders are their dense part, as tables are exchanged
/// otherwise.
constexpr std::array<Named, 7> kContest{{{"bert", 336},
                                         {"resnet", 25.6},
                                         {"ssd", 36},
                                         {"maskrcnn", 44.2},
                                         {"dlrm", 3},
                                         {"dlrm_dcnv2", 5},
                                         {"retinanet", 37}}};
/// Words, frames or audio samples in what is counted as one of the batch.
constexpr std::array<Named, 15> kUnits{{{"gnmt", 54},
                                        {"GNMT", 54},
                                        {"transformerxlbase", 192},
                                        {"Transformer-XL-base", 192},
                                        {"Transformer-XL", 192},
                                        {"transformerxllarge", 384},
                                        {"Transformer-XL-large", 384},
                                        {"tacotron2", 560},
                                        {"Tacotron2", 560},
                                        {"waveglow", 8000},
                                        {"WaveGlow", 8000},
                                        {"FastPitch", 560},
                                        {"HiFiGAN", 560},
                                        {"wav2vec2", 200000},
                                        {"SE3Transformer", 1e-3}}};

template <std::size_t N>
double of_model(const std::array<Named, N>& all, std::string_view model, double otherwise) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.model == model; });
  return found == all.end() ? otherwise : found->value;
}

double first_number(const std::string& text, const char* pattern, double otherwise) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? parse_number(match[1].str()).value_or(otherwise)
                                                             : otherwise;
}

/// "MPT-13b" is 13000.
double size_in_name(const std::string& model) {
  std::smatch match;
  if (!std::regex_search(model, match, std::regex("(\\d+\\.?\\d*)([bBmM])$"))) return 0;
  const bool billions = match[2] == "b" || match[2] == "B";
  return parse_number(match[1].str()).value_or(0) * (billions ? 1000 : 1);
}

double parameters_of(const Row& row) {
  const std::string& model = text(row, "model");
  if (!text(row, "submitter").empty())
    if (const double contest = of_model(kContest, model, 0); contest > 0) return contest;
  const double known = of_model(kParameters, model, 0);
  return known > 0 ? known : size_in_name(model);
}

}  // namespace

PublishedRun run_of(const Row& row) {
  const std::string& precision = text(row, "precision");
  const std::string& model = text(row, "model");
  const std::string& note = text(row, "note");
  PublishedRun run{
      .row = &row,
      .params = parameters_of(row),
      .gpus = static_cast<int>(number(row, "gpus_per_node")),
      .machines = std::max(1, static_cast<int>(number(row, "nodes"))),
      .batch = number(row, "batch_per_gpu"),
      .speed = number(row, "throughput"),
      .accumulated = first_number(note, "accum (\\d+)", 1),
      .sequence = first_number(note, "seq (\\d+)", 0),
      .half = precision == "fp16" || precision == "bf16" || precision == "fp8" || precision == "vendor mixed"};
  const std::string source = text(row, "source").substr(0, text(row, "source").find('@'));
  run.collection = source.substr(source.rfind('/') + 1);
  for (const std::string_view name : {"tacotron2", "Tacotron2", "maskrcnn", "MaskRCNN", "FastPitch", "wav2vec2"})
    run.uneven = run.uneven || model == name;
  return run;
}

double units_of_sample(const PublishedRun& run) { return of_model(kUnits, text(*run.row, "model"), 1); }

std::string key_of(const PublishedRun& run, std::initializer_list<const char*> columns) {
  std::string key;
  for (const char* column : columns) {
    std::string cell = text(*run.row, column);
    if (std::string_view(column) == "source") cell = std::regex_replace(cell, std::regex("@[0-9a-f]+"), "");
    key += cell + ";";
  }
  return key;
}

std::vector<double> fitted_ratios(const RatioFit& problem) {
  const std::size_t count = problem.weights.size();
  double all = 0;
  for (const double weight : problem.weights) all += weight;
  // A factor of e away from the start counts as much as an error of half a percent everywhere.
  const double pull = 0.005 * std::sqrt(all);
  constexpr double kScale = 0.02;
  FitProblem fit{.start = std::vector<double>(problem.start.size(), 0), .residuals = count + problem.start.size()};
  std::vector<double> values(problem.start.size()), errors(count);
  const auto set = [&](std::span<const double> x) {
    for (std::size_t i = 0; i < x.size(); ++i) values[i] = problem.start[i] * std::exp(x[i]);
  };
  fit.evaluate = [&](std::span<const double> x, std::span<double> out) {
    set(x);
    problem.told(values, errors);
    for (std::size_t i = 0; i < count; ++i) {
      // Far from the others a row counts less: soft L1.
      const double ratio = errors[i] / kScale;
      out[i] = std::sqrt(problem.weights[i]) *
               std::copysign(kScale * std::sqrt(2 * (std::sqrt(1 + ratio * ratio) - 1)), ratio);
    }
    for (std::size_t i = 0; i < x.size(); ++i) out[count + i] = pull * x[i];
  };
  const auto solved = nonlinear_least_squares(fit);
  if (!solved) {
    fmt::print(stderr, "{}\n", solved.error().message);
    set(fit.start);
  } else {
    set(solved->x);
  }
  return values;
}

void print_scaled_heading(const std::string& title) {
  fmt::print("\n{}\n\n| rows | n | median % | 80 % | within 10 % | in the band % |\n", title);
  fmt::print("| --- | --- | --- | --- | --- | --- |\n");
}

void print_scaled(const std::string& label, const std::vector<Scaled>& scaled) {
  if (scaled.empty()) return;
  std::vector<Weighted> errors;
  double close = 0, inside = 0;
  for (const Scaled& one : scaled) {
    errors.push_back({std::abs(std::exp(one.error) - 1)});
    close += errors.back().value <= 0.1 ? 1 : 0;
    inside += std::abs(one.error) <= one.band ? 1 : 0;
  }
  const auto count = static_cast<double>(scaled.size());
  fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.0f} | {:.0f} |\n", label, scaled.size(), 100 * quantile(errors, 0.5),
             100 * quantile(errors, 0.8), 100 * close / count, 100 * inside / count);
}

}  // namespace mayfly::bench
