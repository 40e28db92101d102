#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// JSON read front to back without building a tree: files of millions of numbers, and files of one document per line.
/// The first thing that is wrong is remembered with its line; from then on every value is empty and every loop ends, so
/// a reader asks once, at the end, whether all was well.
///
///   json.begin_list();
///   while (json.next_item()) sum += json.number("a price");
class JsonReader {
 public:
  enum class Kind { null, flag, number, text, list, object, end };

  /// `text` and `file` must outlive the reader; `line` is the number of the text's first line.
  JsonReader(std::string_view text, const std::string& file, int line = 1);

  /// What comes next.
  Kind peek();

  /// `wanted` completes the message where something else stands: "a price".
  double number(std::string_view wanted);
  /// A whole number in [least, most].
  int integer(int least, int most, std::string_view wanted);
  /// Valid until the next call.
  std::string_view text(std::string_view wanted);
  bool flag(std::string_view wanted);
  void skip();

  void begin_list(std::string_view wanted = "a list");
  bool next_item();
  void begin_object(std::string_view wanted = "an object");
  /// The next key, valid until the value is read. A doubled key is an error (looked for among the first 64).
  std::optional<std::string_view> next_key();

  /// Nothing but blanks may follow.
  void finish();

  /// Records an error at the line of the value read last.
  void reject(std::string_view what);
  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }
  int line() const { return line_; }

 private:
  struct Level {
    char close = ']';
    bool first = true;
    std::vector<std::string> keys{};
  };

  void skip_blanks();
  bool begin(char open, char close, std::string_view wanted);
  bool next(char close);
  void unwanted(std::string_view wanted);
  std::string_view quoted();
  bool unescape(std::string_view raw);
  std::string seen();

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_;
  std::vector<Level> levels_{};
  std::size_t depth_ = 0;
  std::string buffer_{};
  std::optional<Error> error_{};
};

}  // namespace mayfly
