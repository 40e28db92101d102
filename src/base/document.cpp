#include "base/document.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace mayfly {
namespace {

std::string wanted(Range range) {
  switch (range) {
    case Range::positive:
      return "a number above 0";
    case Range::non_negative:
      return "a number of 0 or more";
    case Range::fraction:
      return "a number from 0 to 1";
    case Range::any:
      break;
  }
  return "a finite number";
}

bool within(double value, Range range) {
  switch (range) {
    case Range::positive:
      return value > 0;
    case Range::non_negative:
      return value >= 0;
    case Range::fraction:
      return value >= 0 && value <= 1;
    case Range::any:
      break;
  }
  return true;
}

}  // namespace

std::string shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return "nothing";
    case Value::Kind::list:
      return "a list";
    case Value::Kind::map:
      return "a mapping";
    case Value::Kind::scalar:
      break;
  }
  constexpr std::size_t kShown = 60;
  if (value.scalar.size() <= kShown) return fmt::format("'{}'", value.scalar);
  return fmt::format("'{}...'", value.scalar.substr(0, kShown));
}

const Value* Value::find(std::string_view key) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

Result<OpenDocument> open_document(std::string_view text, const std::string& file) {
  auto root = parse_document(text, file);
  if (!root) return unexpected(root.error());
  if (root->kind != Value::Kind::map) return fail("{}:{}: {}, want a mapping", file, root->line, shown(*root));
  return OpenDocument{.root = std::move(*root), .state = {.file = file}};
}

void expect_format(Section& root, std::string_view format) {
  const auto seen = root.maybe_text("format");
  if (!seen) {
    root.reject("format", fmt::format("missing; want 'format: {}' (is this a file of another kind?)", format));
  } else if (*seen != format) {
    root.reject("format", fmt::format("'{}', want '{}'", *seen, format));
  }
}

Section::Section(const Value& value, State& state, std::string path)
    : value_(&value), state_(&state), path_(std::move(path)) {}

std::string Section::where(std::string_view key) const {
  if (path_.empty()) return std::string(key);
  return key.empty() ? path_ : fmt::format("{}.{}", path_, key);
}

void Section::reject(std::string_view key, std::string_view what) {
  if (state_->error) return;
  const Value* at = key.empty() ? nullptr : value_->find(key);
  const auto name = where(key);
  state_->error =
      Error{name.empty() ? fmt::format("{}:{}: {}", state_->file, value_->line, what)
                         : fmt::format("{}:{}: {}: {}", state_->file, at ? at->line : value_->line, name, what)};
}

const Value* Section::known(std::string_view key) {
  known_.emplace(key);
  const Value* value = value_->find(key);
  return value != nullptr && value->kind == Value::Kind::null ? nullptr : value;
}

const Value* Section::required(std::string_view key) {
  const Value* value = known(key);
  if (value != nullptr) return value;
  // A misspelt key is both unknown and missing; the one message names both.
  for (const auto& [other, misspelt] : value_->entries) {
    const std::vector<std::string> wanted{std::string(key)};
    if (!known_.contains(other) && nearest_word(other, wanted))
      reject(other, fmt::format("unknown key{}", did_you_mean(other, wanted)));
  }
  reject(key, "missing");
  return nullptr;
}

const Value* Section::raw(std::string_view key) { return known(key); }
bool Section::has(std::string_view key) const {
  const Value* value = value_->find(key);
  return value != nullptr && value->kind != Value::Kind::null;
}

std::optional<double> Section::checked_number(const Value& value, std::string_view key, Range range) {
  const auto number =
      value.kind == Value::Kind::scalar && !value.quoted ? parse_number(value.scalar) : std::optional<double>();
  // Far beyond any size, rate or count there is; sums and products of what is left cannot overflow.
  constexpr double kMost = 1e18;
  if (number && std::fabs(*number) > kMost) {
    reject(key, fmt::format("{}, want a number up to 10^18", shown(value)));
    return {};
  }
  if (number && within(*number, range)) return number;
  reject(key, fmt::format("{}, want {}", shown(value), wanted(range)));
  return {};
}

std::optional<double> Section::maybe_number(std::string_view key, Range range) {
  const Value* value = known(key);
  return value == nullptr ? std::optional<double>() : checked_number(*value, key, range);
}

double Section::number(std::string_view key, Range range) {
  const Value* value = required(key);
  return value == nullptr ? 0 : checked_number(*value, key, range).value_or(0);
}

std::optional<int> Section::maybe_integer(std::string_view key, Range range) {
  const Value* value = known(key);
  if (value == nullptr) return {};
  const auto number = checked_number(*value, key, range);
  if (!number) return {};
  constexpr double kMost = 1e9;
  if (*number > kMost || *number != std::trunc(*number)) {
    reject(key, fmt::format("{}, want a whole number up to 10^9", shown(*value)));
    return {};
  }
  return static_cast<int>(*number);
}

int Section::integer(std::string_view key, Range range) {
  return required(key) == nullptr ? 0 : maybe_integer(key, range).value_or(0);
}

std::optional<std::string> Section::maybe_text(std::string_view key) {
  const Value* value = known(key);
  if (value == nullptr) return {};
  if (value->kind == Value::Kind::scalar && !value->scalar.empty()) return value->scalar;
  reject(key, fmt::format("{}, want a text", shown(*value)));
  return {};
}

std::string Section::text(std::string_view key) {
  return required(key) == nullptr ? std::string() : maybe_text(key).value_or("");
}

std::optional<bool> Section::maybe_flag(std::string_view key) {
  const Value* value = known(key);
  if (value == nullptr) return {};
  if (value->kind == Value::Kind::scalar && (value->scalar == "true" || value->scalar == "false")) {
    return value->scalar == "true";
  }
  reject(key, fmt::format("{}, want true or false", shown(*value)));
  return {};
}

std::vector<double> Section::numbers(std::string_view key, Range range) {
  const Value* value = required(key);
  if (value == nullptr) return {};
  if (value->kind != Value::Kind::list) {
    reject(key, fmt::format("{}, want a list of numbers", shown(*value)));
    return {};
  }
  std::vector<double> result;
  result.reserve(value->items.size());
  for (const auto& item : value->items) result.push_back(checked_number(item, key, range).value_or(0));
  return result;
}

std::optional<Section> Section::maybe_section(std::string_view key) {
  const Value* value = known(key);
  if (value == nullptr) return {};
  if (value->kind == Value::Kind::map) return Section(*value, *state_, where(key));
  reject(key, fmt::format("{}, want a mapping", shown(*value)));
  return {};
}

Section Section::section(std::string_view key) {
  static const Value kEmpty{.kind = Value::Kind::map};
  if (required(key) != nullptr) {
    if (auto found = maybe_section(key)) return *found;
  }
  return Section(kEmpty, *state_, where(key));
}

std::vector<std::pair<std::string, Section>> Section::each() {
  std::vector<std::pair<std::string, Section>> result;
  for (const auto& [key, value] : value_->entries) {
    known_.insert(key);
    if (!is_name(key)) {
      reject("", fmt::format("a name of {} bytes, want at most {}, none of them a control character", key.size(),
                             kLongestName));
    } else if (value.kind == Value::Kind::map) {
      result.emplace_back(key, Section(value, *state_, where(key)));
    } else {
      reject(key, fmt::format("{}, want a mapping", shown(value)));
    }
  }
  return result;
}

std::vector<Section> Section::list(std::string_view key) {
  std::vector<Section> result;
  const Value* value = known(key);
  if (value == nullptr) return result;
  if (value->kind != Value::Kind::list) {
    reject(key, fmt::format("{}, want a list", shown(*value)));
    return result;
  }
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const auto& item = value->items[i];
    if (item.kind == Value::Kind::map) {
      result.emplace_back(item, *state_, fmt::format("{}[{}]", where(key), i));
    } else {
      reject(key, fmt::format("entry {} is {}, want a mapping", i + 1, shown(item)));
    }
  }
  return result;
}

void Section::finish() {
  for (const auto& [key, value] : value_->entries) {
    if (known_.contains(key)) continue;
    const std::vector<std::string> words(known_.begin(), known_.end());
    reject(key, fmt::format("unknown key{}", did_you_mean(key, words)));
    return;
  }
}

}  // namespace mayfly
