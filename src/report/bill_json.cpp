#include "report/bill_json.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace mayfly {
namespace {

using NamedPart = std::pair<const char*, const BillPart*>;
std::array<NamedPart, 5> parts(const Bill& bill) {
  return {{{"compute", &bill.compute},
           {"start", &bill.start},
           {"data", &bill.data},
           {"egress", &bill.egress},
           {"storage", &bill.storage}}};
}

}  // namespace

void put_bill(Json& plan, const Bill& bill) {
  Json costs = Json::object(), notes = Json::object();
  for (const auto& [name, part] : parts(bill)) {
    costs[name] = part->cost ? Json(part->cost->value) : Json();
    if (!part->notes.empty()) notes[name] = part->notes;
  }
  plan["cost_parts_usd"] = std::move(costs);
  plan["cost_notes"] = std::move(notes);
}

std::string bill_text(const Bill& bill) {
  std::string known, unsure;
  for (const auto& [name, part] : parts(bill)) {
    if (part->cost)
      known += fmt::format("{}{} {}{:.4f}", known.empty() ? "" : ", ", name, part->whole ? "" : "at least ",
                           part->cost->value);
    if (!part->whole || part->assumes)
      unsure += fmt::format("              {}: {}\n", name, fmt::join(part->notes, "; "));
  }
  return fmt::format("  parts       {} USD\n{}", known, unsure);
}

}  // namespace mayfly
