#pragma once

#include <string>
#include <vector>

namespace mayfly {

/// Rows of text aligned in columns. A heading that starts with '>' is right-aligned (the mark is dropped).
class Table {
 public:
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Every line starts with `indent` and ends with a newline.
  std::string text(const std::string& indent = "") const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mayfly
