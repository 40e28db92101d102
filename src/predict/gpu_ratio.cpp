#include "predict/gpu_ratio.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "predict/memory.h"

namespace mayfly {
namespace {

/// The A100 80 GB, which all figures of a GPU are taken against.
constexpr double kHalfTflops = 312;
constexpr double kFullTflops = 156;
constexpr double kMemoryRate = 2039e9;
constexpr double kL2Mb = 40;
constexpr double kVectorTflops = 19.5;
constexpr double kPowerW = 400;

/// Where the time of a step goes on that GPU: products of matrices, memory, and what no GPU does faster (launches).
struct Shares {
  double compute = 0;
  double memory = 0;
  double fixed = 0;
};
Shares shares(Network network, bool half) {
  switch (network) {
    case Network::convolutions:
      return half ? Shares{0.1474, 0.4056, 0.4470} : Shares{0.0723, 0.4802, 0.4475};
    case Network::transformer:
      return half ? Shares{0.1609, 0.4221, 0.4170} : Shares{0.2530, 0.3961, 0.3509};
    case Network::recurrent:
      return half ? Shares{0.1850, 0.4231, 0.3919} : Shares{0.2088, 0.4098, 0.3814};
    case Network::audio:
      return half ? Shares{0.1563, 0.4438, 0.3999} : Shares{0.1713, 0.4214, 0.4074};
    case Network::unknown:
    case Network::recommender:
      break;
  }
  return {0.1637, 0.4293, 0.4070};
}
constexpr Shares kTunedShares{0.74, 0.25, 0.01};

/// Exponents: what a larger cache spares of the memory's time, and the fixed part's share that faster vector units and
/// more power shorten.
constexpr double kL2Power = 0.204;
constexpr double kVectorPower = 0.125;
constexpr double kWattPower = 0.105;

bool amd(const Gpu& gpu) { return gpu.architecture.starts_with("cdna"); }

std::optional<double> class_peak(const Gpu& gpu, bool half) {
  if (!half) return gpu.tflops_tf32 ? gpu.tflops_tf32 : gpu.tflops_fp32;
  // Pascal has no units for products of half precision, and code that runs on it computes in fp32.
  if (gpu.architecture == "pascal") return gpu.tflops_fp32;
  return gpu.tflops_fp16 ? gpu.tflops_fp16 : gpu.tflops_fp32;
}

/// Time of a step, against the reference's. Figures that are not known count as the reference's.
std::optional<double> log_time(const Gpu& gpu, const Recipe& recipe, bool half) {
  const auto peak = class_peak(gpu, half);
  if (!peak || !gpu.memory_rate) return std::nullopt;
  const Shares share = shares(recipe.network, half);
  const double cache = amd(gpu) ? kL2Mb : std::clamp(gpu.l2_mb.value_or(kL2Mb), 20.0, 100.0);
  const double memory = kMemoryRate / gpu.memory_rate->value * std::pow(cache / kL2Mb, -kL2Power);
  const double vectors = std::clamp(gpu.tflops_fp32.value_or(kVectorTflops), 8.0, 90.0) / kVectorTflops;
  const double power = std::clamp(gpu.power_w.value_or(kPowerW), 150.0, 700.0) / kPowerW;
  const double compute = (half ? kHalfTflops : kFullTflops) / *peak;
  return std::log(share.compute * compute + share.memory * memory + share.fixed) - kVectorPower * std::log(vectors) -
         kWattPower * std::log(power);
}

/// How well a GPU is known: measured itself, its architecture, or neither.
enum class Known { measured, architecture, nothing };

Known known(const Gpu& gpu, bool half) {
  if (gpu.measured && (half ? gpu.measured->half : gpu.measured->full)) return Known::measured;
  constexpr std::array<std::string_view, 7> kMeasured{"pascal",       "volta", "turing", "ampere",
                                                      "ampere-ga10x", "ada",   "hopper"};
  return std::find(kMeasured.begin(), kMeasured.end(), gpu.architecture) != kMeasured.end() ? Known::architecture
                                                                                            : Known::nothing;
}

/// Logarithm of what was measured against the formula. AMD's software reached a quarter less than its figures say.
double log_factor(const Gpu& gpu, bool half) {
  if (const auto& measured = gpu.measured) {
    if (const auto& factor = half ? measured->half : measured->full) return std::log(*factor);
  }
  return amd(gpu) ? -0.25 : 0;
}

/// Half widths of bands that hold 8 of 10, in the logarithm.
constexpr double kOneGpu = 0.04;                  ///< the same GPU in another machine
constexpr double kUnmeasuredArchitecture = 0.02;  ///< beyond what left-out architectures needed: an assumption
constexpr double kHostBound = 0.37;
constexpr double kWidest = 0.69;  ///< twice or half
constexpr double kNormalTenth = 1.2815515655446004;

double eager_band(const Gpu& from, const Gpu& to, const Recipe& recipe, bool half) {
  double width = 0.12 + 0.08 * std::abs(std::log(*class_peak(from, half) / *class_peak(to, half)));
  // Across the change to TF32, software rounds some layers of 32 bits and others not.
  if (from.tflops_tf32.has_value() != to.tflops_tf32.has_value()) width += half ? 0.075 : 0.195;
  if (std::max(known(from, half), known(to, half)) == Known::nothing) width += kUnmeasuredArchitecture;
  const bool odd =
      recipe.network == Network::unknown || recipe.network == Network::audio || recipe.network == Network::recommender;
  if (odd) width += 0.12;
  if (amd(from) != amd(to)) width += 0.15;
  return std::min(width, kWidest);
}

/// Code that is tuned is bound by what its products of matrices reach, which is less than the peak by GPU.
double attained(const Gpu& gpu, bool fp8) {
  if (const auto& measured = gpu.measured) {
    if (const auto& share = fp8 ? measured->tuned_fp8 : measured->tuned) return *share;
  }
  struct Usual {
    std::string_view architecture;
    double share;
  };
  constexpr std::array<Usual, 8> kUsual{{{"ampere-ga10x", 0.62},
                                         {"ada", 0.62},
                                         {"hopper", 0.75},
                                         {"blackwell", 0.75},
                                         {"blackwell-gb20x", 0.70},
                                         {"cdna2", 0.55},
                                         {"cdna3", 0.55},
                                         {"cdna4", 0.55}}};
  const auto at =
      std::find_if(kUsual.begin(), kUsual.end(), [&](const Usual& u) { return u.architecture == gpu.architecture; });
  return at == kUsual.end() ? 0.75 : at->share;
}

/// Of a transformer's operations, those of attention: 4 sequence hidden beside 24 hidden^2 a token and layer.
std::optional<double> attention_share(const Recipe& recipe) {
  if (!recipe.sequence || (!recipe.hidden && !recipe.parameters)) return std::nullopt;
  const double hidden =
      recipe.hidden ? *recipe.hidden
                    : transformer_shape(*recipe.parameters, recipe.vocabulary.value_or(kUsualVocabulary)).hidden;
  return *recipe.sequence / (*recipe.sequence + 6 * hidden);
}
/// Where the length is not told: about 4096 tokens of 3 billion parameters.
constexpr double kUsualAttention = 0.2;

/// Products of matrices grew faster than attention with Hopper, and then both alike: an assumption.
bool slow_attention(const Gpu& gpu) { return gpu.architecture == "hopper" || gpu.architecture == "blackwell"; }

std::optional<double> tuned_log_time(const Gpu& gpu, const Recipe& recipe, bool fp8, const TunedFit& fit) {
  // What the reference attains: 271 TFLOPS in half precision; 487 of fp8 on the H100, which took its place there.
  const auto peak = fp8 ? gpu.tflops_fp8 : gpu.tflops_fp16;
  if (!peak || !gpu.memory_rate) return std::nullopt;
  double compute = (fp8 ? 487.0 : 271.0) / (*peak * attained(gpu, fp8));
  // In fp8 too attention is of half precision, but only GPUs that are slow at it were compared.
  if (!fp8 && slow_attention(gpu))
    compute *= 1 + attention_share(recipe).value_or(kUsualAttention) * (1 / fit.attention - 1);
  return std::log(kTunedShares.compute * compute + kTunedShares.memory * kMemoryRate / gpu.memory_rate->value +
                  kTunedShares.fixed);
}

double tuned_band(const Gpu& from, const Gpu& to, const Recipe& recipe, bool fp8) {
  const auto doubt = [&](const Gpu& gpu) {
    if (gpu.architecture == "blackwell") return 0.12;
    if (gpu.measured && (fp8 ? gpu.measured->tuned_fp8 : gpu.measured->tuned)) return 0.0;
    return gpu.architecture == "ampere" || gpu.architecture == "hopper" ? 0.03 : 0.10;
  };
  double width = 0.06 + std::max(doubt(from), doubt(to));
  if (from.architecture != to.architecture) width += 0.03;
  if (!fp8 && slow_attention(from) != slow_attention(to) && !attention_share(recipe)) width += 0.06;
  return width;
}

}  // namespace

std::optional<GpuRatio> gpu_ratio(const Gpu& from, const Gpu& to, const Recipe& recipe, const TunedFit& fit) {
  const Precision precision = recipe.precision.value_or(Precision::fp32);
  const bool half = is_half(precision);
  const bool fp8 = precision == Precision::fp8;
  if (from.model == to.model) return GpuRatio{.relative_sd = kOneGpu / kNormalTenth};
  const bool tuned = recipe.tuned.value_or(false) && half;
  const auto before = tuned ? tuned_log_time(from, recipe, fp8, fit) : log_time(from, recipe, half);
  const auto after = tuned ? tuned_log_time(to, recipe, fp8, fit) : log_time(to, recipe, half);
  if (!before || !after) return std::nullopt;
  const double factor = tuned ? 0 : log_factor(to, half) - log_factor(from, half);
  // Nothing was measured on chips of other kinds (TPU, Gaudi, Trainium) that code for GPUs would run on.
  const double band = tuned ? tuned_band(from, to, recipe, fp8) : eager_band(from, to, recipe, half);
  return GpuRatio{.speed = std::exp(*before - *after + factor), .relative_sd = band / kNormalTenth};
}

GpuRatio host_bound(const GpuRatio& ratio) {
  return {.speed = std::pow(ratio.speed, 0.2), .relative_sd = std::max(ratio.relative_sd, kHostBound / kNormalTenth)};
}

std::optional<double> peak_tflops(const Gpu& gpu, Precision precision) {
  const auto wider = [](const std::optional<double>& own, const std::optional<double>& next) {
    return own ? own : next;
  };
  const auto full = wider(gpu.tflops_tf32, gpu.tflops_fp32);
  const auto half = wider(gpu.tflops_fp16, full);
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return full;
    case Precision::fp16:
    case Precision::bf16:
      return half;
    case Precision::fp8:
      break;
  }
  return wider(gpu.tflops_fp8, half);
}

bool has_precision(const Gpu& gpu, Precision precision) {
  if (precision == Precision::fp8) return gpu.tflops_fp8.has_value();
  constexpr std::array<std::string_view, 5> kWithoutBf16{"kepler", "maxwell", "pascal", "volta", "turing"};
  return precision != Precision::bf16 ||
         std::find(kWithoutBf16.begin(), kWithoutBf16.end(), gpu.architecture) == kWithoutBf16.end();
}

double best_published_share(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return 0.90;
    case Precision::fp16:
    case Precision::bf16:
      return 0.75;
    case Precision::fp8:
      break;
  }
  return 0.5;
}

Network network_called(std::string_view model) {
  struct Sign {
    std::string_view part;
    Network network;
  };
  constexpr auto kCnn = Network::convolutions;
  constexpr auto kFormer = Network::transformer;
  // The first that occurs: Transformer-XL before what "xl" or "res" could be part of.
  constexpr std::array<Sign, 47> kSigns{{{"ncf", Network::recommender},
                                         {"dlrm", Network::recommender},
                                         {"recommend", Network::recommender},
                                         {"gnmt", Network::recurrent},
                                         {"lstm", Network::recurrent},
                                         {"rnn", Network::recurrent},
                                         {"waveglow", Network::audio},
                                         {"tacotron", Network::audio},
                                         {"fastpitch", Network::audio},
                                         {"hifigan", Network::audio},
                                         {"wav2vec", Network::audio},
                                         {"speech", Network::audio},
                                         {"whisper", Network::audio},
                                         {"bert", kFormer},
                                         {"bart", kFormer},
                                         {"gpt", kFormer},
                                         {"llama", kFormer},
                                         {"mistral", kFormer},
                                         {"mixtral", kFormer},
                                         {"qwen", kFormer},
                                         {"gemma", kFormer},
                                         {"falcon", kFormer},
                                         {"mpt-", kFormer},
                                         {"opt-", kFormer},
                                         {"t5-", kFormer},
                                         {"vit-", kFormer},
                                         {"vit_", kFormer},
                                         {"transformer", kFormer},
                                         {"resne", kCnn},
                                         {"shake", kCnn},
                                         {"rn50", kCnn},
                                         {"vgg", kCnn},
                                         {"inception", kCnn},
                                         {"alexnet", kCnn},
                                         {"efficient", kCnn},
                                         {"convnext", kCnn},
                                         {"mnasnet", kCnn},
                                         {"vnet", kCnn},
                                         {"densenet", kCnn},
                                         {"mobilenet", kCnn},
                                         {"squeezenet", kCnn},
                                         {"unet", kCnn},
                                         {"u-net", kCnn},
                                         {"ssd", kCnn},
                                         {"yolo", kCnn},
                                         {"retinanet", kCnn},
                                         {"cnn", kCnn}}};
  std::string lower(model);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found = std::find_if(kSigns.begin(), kSigns.end(),
                                  [&](const Sign& sign) { return lower.find(sign.part) != std::string::npos; });
  return found == kSigns.end() ? Network::unknown : found->network;
}

}  // namespace mayfly
