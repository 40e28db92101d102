#include "profile/merge.h"

#include <cmath>

namespace mayfly {
namespace {

/// Sizes that differ by more are those of two jobs.
constexpr double kSame = 1e-3;

std::string model_of(const Json& profile) { return profile.at("job").value("model", ""); }

Result<void> check_same_job(const Json& older, const Json& newer) {
  if (model_of(older) != model_of(newer))
    return fail("profiles of two jobs: the model is '{}' in one, '{}' in the other", model_of(older), model_of(newer));
  for (const char* key : {"parameters_mb", "samples"}) {
    const double a = older.at("job").value(key, 0.0);
    const double b = newer.at("job").value(key, 0.0);
    if (a > 0 && b > 0 && std::fabs(a / b - 1) > kSame)
      return fail("profiles of two jobs: {} is {} in one, {} in the other", key, a, b);
  }
  return {};
}

std::string basis_of(const Json& type, const Json& profile) {
  return type.value("basis", profile.at("origin").value("basis", "given"));
}

}  // namespace

Result<Json> merged_profiles(const Json& older, const Json& newer) {
  if (auto same = check_same_job(older, newer); !same) return unexpected(same.error());
  Json merged = older;
  for (const auto& [key, block] : newer.items()) {
    if (key != "types" && key != "origin") merged[key] = block;
  }
  const Json types = newer.value("types", Json::object());
  for (const auto& [name, type] : types.items()) {
    const bool known = merged.contains("types") && merged["types"].contains(name);
    const bool keeps =
        known && basis_of(merged["types"][name], older) == "measured" && basis_of(type, newer) != "measured";
    if (keeps) continue;
    merged["types"][name] = type;
    merged["types"][name]["basis"] = basis_of(type, newer);
  }
  // Those without a word of their own go on meaning what they meant.
  for (auto& [name, type] : merged["types"].items()) {
    if (!type.contains("basis")) type["basis"] = basis_of(type, older);
  }
  merged["origin"] = newer.at("origin");
  merged["origin"]["source"] =
      fmt::format("{}; {}", older.at("origin").value("source", ""), newer.at("origin").value("source", ""));
  return merged;
}

}  // namespace mayfly
