#include "vault/checkpoint_key.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "data/checkpoint_folder.h"

namespace mayfly {
namespace {

constexpr std::size_t kRandomDigits = 8;

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::optional<StoredName> parse_stored_name(std::string_view name) {
  const auto dash = name.rfind('-');
  if (dash == name.npos) return std::nullopt;
  const auto random = name.substr(dash + 1);
  if (random.size() != kRandomDigits || !std::all_of(random.begin(), random.end(), is_hex_digit)) return std::nullopt;
  const auto plain = name.substr(0, dash);
  const auto before = plain.rfind('-');
  if (before == plain.npos) return std::nullopt;
  StoredName found{.name = std::string(name)};
  const auto digits = plain.substr(before + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), found.step);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size() && found.step >= 0;
  // 007 and +7 are not names that mayfly gives.
  if (!whole || checkpoint_name(found.step) != plain) return std::nullopt;
  return found;
}

StoredName new_stored_name(std::int64_t step) {
  return {.step = step, .name = fmt::format("{}-{:08x}", checkpoint_name(step), std::random_device{}())};
}

std::optional<CheckpointKey> parse_checkpoint_key(const StoreUrl& url, std::string_view key) {
  const std::string before = url.key("");
  if (!key.starts_with(before)) return std::nullopt;
  key.remove_prefix(before.size());
  const auto slash = key.find('/');
  if (slash == key.npos) return std::nullopt;
  auto checkpoint = parse_stored_name(key.substr(0, slash));
  const auto file = key.substr(slash + 1);
  if (!checkpoint || (file != kModelFile && file != kOptimiserFile && file != kStateFile)) return std::nullopt;
  return CheckpointKey{.checkpoint = *std::move(checkpoint), .file = std::string(file)};
}

}  // namespace mayfly
