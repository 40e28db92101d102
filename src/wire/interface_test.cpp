#include "wire/interface.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(InterfaceTowards, ThisMachineIsReachedByLoopback) {
  EXPECT_EQ(interface_towards("127.0.0.1", 7070).value_or(""), "lo");
  EXPECT_EQ(interface_towards("127.9.8.7", 7070).value_or(""), "lo");
}

TEST(InterfaceTowards, AHostWithoutANameIsAnError) {
  const auto found = interface_towards("no such host", 7070);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("--interface auto: no such host"), std::string::npos) << found.error().message;
}

TEST(InterfaceAddress, LoopbackHasTheAddressThatEverybodyKnows) {
  EXPECT_EQ(interface_address("lo").value_or(""), "127.0.0.1");
  EXPECT_FALSE(interface_address("nothing0"));
}

}  // namespace
}  // namespace mayfly
