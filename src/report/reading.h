#pragma once

#include <optional>
#include <string>

#include "base/fields.h"
#include "report/curve.h"

// What pictures, tables and event files read from the documents of a report. People edit such documents: as with
// Fields, what is missing or of another kind counts as absent. What comes back refers to nothing in the document,
// except Fields.
namespace mayfly {

/// A finite number, or nothing.
std::optional<double> finite(const Json& value);
/// The same of a key.
std::optional<double> finite(const Fields& fields, const char* key);

/// The pairs of two lists of an object, such as `t_s` and `samples`, of which both are numbers.
Curve curve_of(const Fields& object, const char* x, const char* y);

/// How a view is called beside others: its name, and the policy of one that was replayed.
std::string view_label(const Fields& view);

/// Machine lines in words: `2 x g4dn.xlarge spot + 1 x p3.2xlarge spot us-east-1a`; "" where there are none.
std::string machine_lines_text(const Json& lines);
/// What an option of a plan rents for its workers: the same, without zones, or functions of a platform.
std::string option_text(const Fields& option);

}  // namespace mayfly
