#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <new>
#include <sstream>

#include "base/document.h"
#include "base/text.h"

namespace mayfly {
namespace {

/// Values that are written out in a document.
constexpr std::size_t kMostValues = 8'000'000;
/// Values that anchors and aliases may copy: a few lines of them would otherwise unfold into more than any memory
/// holds. A long text counts as one value for each 64 bytes.
constexpr std::size_t kMostCopied = 100'000;
constexpr std::size_t kTextOfAValue = 64;
constexpr std::size_t kMostLevels = 100;

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { leaf(at(mark, Value::Kind::null), anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) return wrong(mark.line + 1, "an alias inside the value it names");
    const auto& [value, extent] = known->second;
    if (!copied(mark.line + 1, extent)) return;
    Value copy = value;
    place(std::move(copy), extent);
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
  /// Of a value and all that it holds.
  struct Extent {
    std::size_t values = 1;
    std::size_t levels = 0;
  };
  struct Anchored {
    Value value;
    Extent extent;
  };
  struct Frame {
    Value value{};
    YAML::anchor_t anchor = YAML::NullAnchor;
    Extent extent{};
    std::optional<std::string> key{};
    std::map<std::string, int> lines{};
  };

  static Value at(const YAML::Mark& mark, Value::Kind kind) { return {.kind = kind, .line = mark.line + 1}; }

  void wrong(int line, std::string_view what) {
    if (!error_) error_ = Error{fmt::format("{}:{}: {}", file_, line, what)};
  }
  bool copied(int line, Extent extent) {
    copied_ += extent.values;
    if (copied_ > kMostCopied) wrong(line, fmt::format("aliases that unfold into more than {} values", kMostCopied));
    if (stack_.size() + extent.levels > kMostLevels) wrong(line, "nested too deeply");
    return !error_;
  }
  void open(Value value, YAML::anchor_t anchor) {
    if (stack_.size() >= kMostLevels) wrong(value.line, "nested too deeply");
    stack_.push_back({.value = std::move(value), .anchor = anchor});
  }
  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    ++frame.extent.levels;
    keep(frame.value, frame.anchor, frame.extent);
    place(std::move(frame.value), frame.extent);
  }
  void leaf(Value value, YAML::anchor_t anchor) {
    const Extent extent{.values = 1 + value.scalar.size() / kTextOfAValue};
    keep(value, anchor, extent);
    place(std::move(value), extent);
  }
  void keep(const Value& value, YAML::anchor_t anchor, Extent extent) {
    if (anchor != YAML::NullAnchor && copied(value.line, extent))
      anchors_.insert_or_assign(anchor, Anchored{value, extent});
  }
  void place(Value value, Extent extent) {
    if (++count_ > kMostValues) wrong(value.line, "more than 8 million values");
    // After the first error nothing is kept: the rest of the file is only skipped.
    if (error_) return;
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = stack_.back();
    frame.extent.values += extent.values;
    frame.extent.levels = std::max(frame.extent.levels, extent.levels);
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
  std::size_t count_ = 0, copied_ = 0;
};

}  // namespace

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

}  // namespace mayfly
