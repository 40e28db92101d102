#include "report/bill_json.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

Bill some() {
  return {
      .compute = {.cost = Usd{1.5}},
      .start = {.cost = Usd{0.25}},
      .data = {.cost = Usd{0}},
      .egress = {.whole = false, .notes = {"data: not known: where it is"}},
      .storage = {
          .cost = Usd{0.125}, .whole = false, .notes = {"data: 0.1250 USD", "checkpoints: not known: where it is"}}};
}

TEST(BillJson, WhatIsNotKnownAtAllIsNullAndHasItsReason) {
  Json plan = Json::object();
  put_bill(plan, some());
  EXPECT_EQ(plan["cost_parts_usd"],
            Json::parse(R"({"compute":1.5,"start":0.25,"data":0.0,"egress":null,"storage":0.125})"));
  EXPECT_EQ(plan["cost_notes"], Json::parse(R"({"egress":["data: not known: where it is"],
                                                "storage":["data: 0.1250 USD","checkpoints: not known: where it is"]})"));
}

TEST(BillJson, TheTextHasALineForEachPartThatIsNotKnownWholly) {
  EXPECT_EQ(bill_text(some()),
            "  parts       compute 1.5000, start 0.2500, data 0.0000, storage at least 0.1250 USD\n"
            "              egress: data: not known: where it is\n"
            "              storage: data: 0.1250 USD; checkpoints: not known: where it is\n");
  Bill assuming = some();
  assuming.data.notes = {"assumed: 2.5 Gbit/s"};
  assuming.data.assumes = true;
  EXPECT_NE(bill_text(assuming).find("              data: assumed: 2.5 Gbit/s\n"), std::string::npos);
}

}  // namespace
}  // namespace mayfly
