#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// The rows of a CSV text. Quoted fields may hold commas, line ends and doubled quotes; blank lines are skipped.
class CsvRows {
 public:
  CsvRows(std::string_view text, const std::string& file);

  /// Line on which the row last read begins.
  int line() const { return row_line_; }

  /// False after the last row.
  Result<bool> next(std::vector<std::string>& fields);

 private:
  bool unquote(std::string& field);

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  int row_line_ = 1;
};

}  // namespace mayfly
