#pragma once

#include <string>

#include "base/json.h"
#include "plan/bill.h"

namespace mayfly {

/// `cost_parts_usd{compute, start, data, egress, storage}`, null where not known, and `cost_notes` with what each rests
/// on and what is missing. docs/formats.md#plan
void put_bill(Json& plan, const Bill& bill);

/// One line of all parts, and one for each that is not known.
std::string bill_text(const Bill& bill);

}  // namespace mayfly
