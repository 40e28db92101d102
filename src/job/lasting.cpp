#include "job/lasting.h"

#include <algorithm>
#include <array>

#include "base/document.h"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 5> kMayChange{"train.checkpoint", "train.data.loader", "train.on_nan",
                                                     "train.nan_steps", "train.on_drift"};

void flatten(const Value& value, const std::string& path, std::map<std::string, std::string>& terms) {
  if (std::find(kMayChange.begin(), kMayChange.end(), path) != kMayChange.end()) return;
  switch (value.kind) {
    case Value::Kind::null:
      return;  // as if it were not there
    case Value::Kind::scalar:
      terms[path] = value.scalar;
      return;
    case Value::Kind::list:
      for (std::size_t i = 0; i < value.items.size(); ++i)
        flatten(value.items[i], fmt::format("{}[{}]", path, i), terms);
      return;
    case Value::Kind::map:
      for (const auto& [key, entry] : value.entries) flatten(entry, fmt::format("{}.{}", path, key), terms);
      return;
  }
}

std::string shown(const std::map<std::string, std::string>& terms, const std::string& key) {
  const auto found = terms.find(key);
  return found == terms.end() ? "not there" : found->second;
}

}  // namespace

Result<std::map<std::string, std::string>> lasting_terms(const std::string& text, const std::string& file) {
  const auto root = parse_document(text, file);
  if (!root) return unexpected(root.error());
  std::map<std::string, std::string> terms;
  for (const std::string key : {"run", "train"}) {
    if (const Value* value = root->find(key)) flatten(*value, key, terms);
  }
  return terms;
}

std::string differences(const std::map<std::string, std::string>& before,
                        const std::map<std::string, std::string>& now) {
  std::map<std::string, std::string> all = before;
  all.insert(now.begin(), now.end());
  std::string text;
  for (const auto& [key, value] : all) {
    const std::string was = shown(before, key);
    const std::string is = shown(now, key);
    if (was != is) text += fmt::format("{}{}: was {}, is {}", text.empty() ? "" : "; ", key, was, is);
  }
  return text;
}

}  // namespace mayfly
