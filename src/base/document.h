#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

/// One value of a YAML or JSON file (JSON is read as the YAML it is), with the line it stands on.
struct Value {
  enum class Kind { null, scalar, list, map };
  /// For messages: the beginning of a scalar, or what it is instead.
  std::string shown(const Value& value);
  Kind kind = Kind::null;
  int line = 0;
  bool quoted = false;
  std::string scalar{};
  std::vector<Value> items{};
  std::vector<std::pair<std::string, Value>> entries{};

  const Value* find(std::string_view key) const;
};

/// One document. A syntax error, a doubled key, a second document or an empty text is an error "file:line: ...".
Result<Value> parse_document(std::string_view text, const std::string& file);

/// What a number in a file must satisfy besides being finite.
enum class Range { any, positive, non_negative, fraction };

/// A mapping of an input file on its way to becoming a struct. Getters remember the first thing that is wrong and
/// return an empty value from then on, so a loader reads its fields in a row and asks once, at the end, whether all was
/// well. Every key asked for is known; finish() reports the others, naming the nearest known one.
class Section {
 public:
  struct State {
    std::string file{};
    std::optional<Error> error{};
  };

  /// `value` and `state` must outlive the section.
  Section(const Value& value, State& state, std::string path = {});

  double number(std::string_view key, Range range = Range::any);
  std::optional<double> maybe_number(std::string_view key, Range range = Range::any);
  int integer(std::string_view key, Range range = Range::positive);
  std::optional<int> maybe_integer(std::string_view key, Range range = Range::positive);
  std::string text(std::string_view key);
  std::optional<std::string> maybe_text(std::string_view key);
  std::optional<bool> maybe_flag(std::string_view key);
  std::vector<double> numbers(std::string_view key, Range range = Range::any);

  bool has(std::string_view key) const;
  /// A sub-mapping; an error where the key is absent or is not a mapping.
  Section section(std::string_view key);
  std::optional<Section> maybe_section(std::string_view key);
  /// Every entry of this mapping, for mappings whose keys are names. All keys count as known.
  std::vector<std::pair<std::string, Section>> each();
  /// The mappings of a list; an error where the key holds anything else.
  std::vector<Section> list(std::string_view key);

  /// Accepts the key whatever it holds.
  const Value* raw(std::string_view key);
  /// Records an error at this mapping's line, or at the key's where it is there.
  void reject(std::string_view key, std::string_view what);
  bool ok() const { return !state_->error; }
  int line() const { return value_->line; }
  const std::string& path() const { return path_; }
  const std::string& file() const { return state_->file; }

  /// Reports keys that were never asked for.
  void finish();

 private:
  const Value* known(std::string_view key);
  const Value* required(std::string_view key);
  std::optional<double> checked_number(const Value& value, std::string_view key, Range range);
  std::string where(std::string_view key) const;

  const Value* value_;
  State* state_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

/// Reads `file` into a T: `read` takes the root section and returns the T. Checks that the root is a mapping, that
/// `format` (if not empty) is what the file's `format` key says, and that no key was left over.
template <class Read>
auto read_document(std::string_view text, const std::string& file, std::string_view format, Read read)
    -> Result<decltype(read(std::declval<Section&>()))>;

/// The non-template part of read_document.
struct OpenDocument {
  Value root{};
  Section::State state{};
};
Result<OpenDocument> open_document(std::string_view text, const std::string& file);
void expect_format(Section& root, std::string_view format);

template <class Read>
auto read_document(std::string_view text, const std::string& file, std::string_view format, Read read)
    -> Result<decltype(read(std::declval<Section&>()))> {
  auto opened = open_document(text, file);
  if (!opened) return unexpected(opened.error());
  Section root(opened->root, opened->state);
  if (!format.empty()) expect_format(root, format);
  if (!root.ok()) return unexpected(*opened->state.error);
  auto result = read(root);
  root.finish();
  if (!root.ok()) return unexpected(*opened->state.error);
  return result;
}

}  // namespace mayfly
