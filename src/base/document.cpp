#include "base/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <new>
#include <sstream>

#include "base/text.h"

namespace mayfly {
namespace {

/// Values a document may hold, copies made by aliases included: a few lines of nested aliases would otherwise
/// unfold into more than any memory holds.
constexpr std::size_t kMostValues = 8'000'000;

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

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { leaf(at(mark, Value::Kind::null), anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) return wrong(mark.line + 1, "an alias inside the value it names");
    count_ += known->second.size;
    auto copy = known->second.value;
    leaf(std::move(copy), YAML::NullAnchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Value value = at(mark, Value::Kind::scalar);
    // Escapes can spell what no text may hold, half a surrogate pair for one.
    if (valid_utf8(text) < text.size()) return wrong(value.line, "an escape that is not a character");
    value.scalar = text;
    value.quoted = tag == "!";
    if (!value.quoted && (text == "~" || text == "null")) value.kind = Value::Kind::null;
    leaf(std::move(value), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(at(mark, Value::Kind::list), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(at(mark, Value::Kind::map), anchor);
  }
  void OnMapEnd() override { close(); }

  Result<Value> result() {
    if (error_) return unexpected(*error_);
    return std::move(root_);
  }

 private:
  struct Anchored {
    Value value;
    std::size_t size;
  };
  struct Frame {
    Value value{};
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::size_t count_before = 0;
    std::optional<std::string> key{};
    std::map<std::string, int> lines{};
  };

  static Value at(const YAML::Mark& mark, Value::Kind kind) { return {.kind = kind, .line = mark.line + 1}; }

  void wrong(int line, std::string_view what) {
    if (!error_) error_ = Error{fmt::format("{}:{}: {}", file_, line, what)};
  }
  void open(Value value, YAML::anchor_t anchor) {
    stack_.push_back({.value = std::move(value), .anchor = anchor, .count_before = count_});
  }
  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    const auto size = count_ - frame.count_before + 1;
    if (frame.anchor != YAML::NullAnchor) anchors_.insert_or_assign(frame.anchor, Anchored{frame.value, size});
    place(std::move(frame.value));
  }
  void leaf(Value value, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_.insert_or_assign(anchor, Anchored{value, 1});
    place(std::move(value));
  }
  void place(Value value) {
    if (++count_ > kMostValues) {
      wrong(value.line, "more than 8 million values");
      value = {};
    }
    // After the first error nothing is kept: the rest of the file is only skipped.
    if (error_) return;
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.value.kind == Value::Kind::list) {
      frame.value.items.push_back(std::move(value));
    } else if (!frame.key) {
      if (value.kind != Value::Kind::scalar) return wrong(value.line, fmt::format("key {}: want a word", shown(value)));
      const auto [first, fresh] = frame.lines.emplace(value.scalar, value.line);
      if (!fresh)
        return wrong(value.line, fmt::format("key {} stands twice (first on line {})", shown(value), first->second));
      frame.key = std::move(value.scalar);
    } else {
      frame.value.entries.emplace_back(std::move(*frame.key), std::move(value));
      frame.key.reset();
    }
  }

  std::string file_;
  std::optional<Error> error_;
  Value root_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t count_ = 0;
};

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

const Value* Value::find(std::string_view key) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

Result<Value> parse_document(std::string_view text, const std::string& file) {
  if (trimmed(text).empty()) return fail("{}:1: empty file", file);
  if (text.find('\0') != std::string_view::npos) return fail("{}:1: binary file, want YAML or JSON text", file);
  if (const auto valid = valid_utf8(text); valid < text.size()) {
    return fail("{}:{}: not UTF-8 text", file,
                1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n'));
  }
  TreeBuilder builder(file);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) return fail("{}:1: nothing but comments", file);
    auto root = builder.result();
    if (!root) return root;
    TreeBuilder second(file);
    if (parser.HandleNextDocument(second)) return fail("{}: more than one document, want one", file);
    return root;
  } catch (const YAML::Exception& error) {
    // yaml-cpp's guard against deep recursion says only "bad file".
    const bool deep = error.msg == YAML::ErrorMsg::BAD_FILE;
    return fail("{}:{}: {}", file, error.mark.line + 1, deep ? "nested too deeply" : error.msg);
  } catch (const std::bad_alloc&) {
    return fail("{}: takes more memory to read than there is", file);
  } catch (const std::exception& error) {
    return fail("{}: not readable as YAML or JSON: {}", file, error.what());
  }
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
  if (*number != static_cast<double>(static_cast<long long>(*number < kMost ? *number : 0)) || *number > kMost) {
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
    if (value.kind == Value::Kind::map) {
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
