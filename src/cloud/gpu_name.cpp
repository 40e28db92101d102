#include "cloud/gpu_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/text.h"

namespace mayfly {
namespace {

/// "H100-80GB SXM5" to H100, 80GB and SXM5.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::optional<std::string> as_form(const std::string& word) {
  if (word == "PCIE" || word == "PCI") return "PCIE";
  if (word == "NVL") return word;
  if (!word.starts_with("SXM") || word.size() > 8) return {};
  const bool numbered = word.size() > 3 && std::isdigit(static_cast<unsigned char>(word[3])) != 0;
  return word.substr(0, numbered ? 4 : 3);
}

/// 80 of "80GB" and "80G".
std::optional<double> as_size(std::string_view word) {
  const auto digits = word.find_first_not_of("0123456789");
  if (digits == 0 || digits > 4) return {};
  const auto unit = word.substr(digits);
  if (unit != "GB" && unit != "G" && unit != "GIB") return {};
  return parse_number(word.substr(0, digits));
}

bool says_nothing(const std::string& word) {
  constexpr std::array<std::string_view, 13> kIdle = {"NVIDIA",    "AMD",      "INTEL", "TESLA",  "GEFORCE",
                                                      "QUADRO",    "INSTINCT", "GPU",   "NVLINK", "MEGA",
                                                      "BAREMETAL", "OAM",      "SECURE"};
  return word.starts_with("HBM") || std::find(kIdle.begin(), kIdle.end(), word) != kIdle.end();
}

/// Other spellings of one chip.
std::string usual(std::string family) {
  if (family.starts_with("RTXA") && family.size() == 8) return family.substr(3);  // RTXA6000
  if (family.starts_with("QRTX")) return family.substr(1);
  // server and workstation cards; the one with "Max-Q" has half the power
  for (const auto* edition :
       {"RTXPRO6000S", "RTXPRO6000SE", "RTXPRO6000SERVER", "RTXPRO6000WK", "RTXPRO6000WS", "RTXPRO6000BLACKWELL"}) {
    if (family == edition) return "RTXPRO6000";
  }
  if (family == "TRAINIUM" || family == "TRAINIUM1") return "TRN1";
  return family == "TRAINIUM2" ? "TRN2" : family;
}

/// A model with its name taken apart.
struct Candidate {
  const Gpu* gpu = nullptr;
  std::string form{};
};

std::vector<Candidate> family_of(const std::vector<Gpu>& gpus, const GpuName& name) {
  std::vector<Candidate> all;
  for (const Gpu& gpu : gpus) {
    auto model = gpu_name(gpu.model);
    if (model.family == name.family) all.push_back({&gpu, std::move(model.form)});
  }
  return all;
}

bool fits(const Gpu& gpu, const GpuName& name, std::optional<double> gib) {
  return (!gib || same_memory(gpu.memory_gib, *gib)) && (name.gib <= 0 || same_memory(gpu.memory_gib, name.gib));
}

/// Whether a model of form `has`, in a family with the forms `all`, may be what a name of form `wanted` means: 2 for
/// the same, 1 for one of the same kind.
int form_match(const Candidate& has, std::string_view wanted, const std::vector<Candidate>& all) {
  const auto any = [&](std::string_view form) {
    return std::any_of(all.begin(), all.end(), [&](const Candidate& c) { return c.form == form; });
  };
  if (has.form == wanted) return 2;
  if (wanted.starts_with("SXM")) {
    if (has.form.empty()) return has.gpu->nvlink && !any(wanted) ? 1 : 0;
    return wanted == "SXM" && has.form.starts_with("SXM") && !any("") ? 1 : 0;
  }
  return wanted == "PCIE" && has.form.empty() && !any("PCIE") ? 1 : 0;
}

}  // namespace

GpuName gpu_name(std::string_view text) {
  GpuName name;
  for (auto& word : words_of(text)) {
    if (says_nothing(word)) continue;
    if (auto form = as_form(word)) {
      if (name.form.empty()) name.form = std::move(*form);
    } else if (const auto gib = as_size(word)) {
      name.gib = *gib;
    } else {
      name.family += word;
    }
  }
  name.family = usual(std::move(name.family));
  return name;
}

std::string form_in(std::string_view text) {
  for (const auto& word : words_of(text)) {
    if (auto form = as_form(word)) return *form;
  }
  return {};
}

bool same_memory(double a_gib, double b_gib) { return std::abs(a_gib - b_gib) <= 0.1 * std::max(a_gib, b_gib); }

const Gpu* gpu_named(const std::vector<Gpu>& gpus, const GpuName& name, std::optional<double> gib) {
  const auto family = family_of(gpus, name);
  const Gpu* found = nullptr;
  int best = 0;
  bool several = false;
  for (const auto& candidate : family) {
    const int match = fits(*candidate.gpu, name, gib) ? form_match(candidate, name.form, family) : 0;
    if (match == 0 || match < best) continue;
    several = match == best;
    best = match;
    found = candidate.gpu;
  }
  return several ? nullptr : found;
}

bool form_is_open(const std::vector<Gpu>& gpus, const GpuName& name, std::optional<double> gib) {
  if (!name.form.empty()) return false;
  bool plain = false;
  bool other = false;
  for (const auto& candidate : family_of(gpus, name)) {
    if (fits(*candidate.gpu, name, gib)) (candidate.form.empty() ? plain : other) = true;
  }
  return plain && other;
}

bool is_gpu_called(std::string_view model, std::string_view name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return model.size() >= name.size() && std::equal(name.begin(), name.end(), model.begin(), same) &&
         (model.size() == name.size() || model[name.size()] == '-');
}

}  // namespace mayfly
