#include "cloud/ages.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(Ages, AreSaidInTheUnitThatFits) {
  EXPECT_EQ(age_text(0), "0 days");
  EXPECT_EQ(age_text(1), "1 day");
  EXPECT_EQ(age_text(60), "60 days");
  EXPECT_EQ(age_text(61), "2 months");    // 61 x 12 / 365 = 2.005
  EXPECT_EQ(age_text(364), "11 months");  // not quite 12
  EXPECT_EQ(age_text(365), "1 year");
  EXPECT_EQ(age_text(380), "1 year");  // 1.04
  EXPECT_EQ(age_text(730), "2 years");
  EXPECT_EQ(age_text(900), "2.5 years");  // 2.466
}

/// "old" of day 0, "new" of day 400, both on demand; "old" at spot too.
Catalog catalog() {
  Catalog made{.name = "c"};
  made.sources = {{.id = "a", .title = "A", .day = 0, .date = "2020-01-01"},
                  {.id = "b", .title = "B", .day = 400, .date = "2021-02-04"},
                  {.id = "c", .title = "C", .day = 365, .date = "2020-12-31"}};
  made.types = {{.name = "new", .on_demand = Price{.rate = {1}, .source = 1}},
                {.name = "next", .on_demand = Price{.rate = {1}, .source = 2}},
                {.name = "old", .on_demand = Price{.rate = {1}, .source = 0}, .spot = Price{.rate = {1}, .source = 0}}};
  return made;
}

TEST(PriceAges, PricesOfTwoErasAreSaidToBeSo) {
  EXPECT_EQ(
      price_ages(catalog(), {"new", "old"}, Market::on_demand),
      "on-demand prices of different times are compared: that of old is of 2020-01-01, that of new of 2021-02-04, "
      "1.1 years later");
}

TEST(PriceAges, AYearApartIsOneEra) {
  EXPECT_FALSE(price_ages(catalog(), {"next", "old"}, Market::on_demand));
  EXPECT_FALSE(price_ages(catalog(), {"new", "next"}, Market::on_demand));
}

TEST(PriceAges, TypesWithoutAPriceCountForNothing) {
  EXPECT_FALSE(price_ages(catalog(), {"new", "old"}, Market::spot));
  EXPECT_FALSE(price_ages(catalog(), {"nothing", "old"}, Market::on_demand));
  EXPECT_FALSE(price_ages(catalog(), {}, Market::on_demand));
}

}  // namespace
}  // namespace mayfly
