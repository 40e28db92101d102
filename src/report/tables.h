#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace mayfly {

/// Comma-separated values after RFC 4180: a header line, CRLF at the end of every line, UTF-8. The name has letters,
/// digits, dots, dashes and underscores only and starts with none of dot and dash, so it can be that of a file.
struct CsvTable {
  std::string name;
  std::string text;
};

/// The tables of a `mayfly-report/1` (docs/formats.md#report). Headings name the unit: `_s` seconds, `_usd` dollars.
///
///   machines counts progress losses validation money happenings scorecard   of every view; of several views, the
///                                                                           view's name stands in front: `run-money`
///   plan-options                       the column `which`: chosen, nearest, runner-up, frontier or considered
///   replay-policies replay-intervals replay-progress replay-money           the column `policy` says whose
///   stalls                             of a profile
///
/// A table without rows is left out, and so is the cell of what is null, missing or of another kind: it is empty.
std::vector<CsvTable> tables(const Json& report);

/// One cell of text: in quotes where it must be. Spreadsheets compute what starts with = + - @ or a control character,
/// so such a text gets an apostrophe in front; numbers are not texts.
std::string csv_text(std::string_view text);

}  // namespace mayfly
