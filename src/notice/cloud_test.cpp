#include "notice/cloud.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

const FirmwareWords kAmazon{.sys_vendor = "Amazon EC2", .board_vendor = "Amazon EC2", .product_name = "m5.large"};
const FirmwareWords kGoogle{.sys_vendor = "Google", .board_vendor = "Google", .product_name = "Google Compute Engine"};
const FirmwareWords kMicrosoft{.sys_vendor = "Microsoft Corporation",
                               .board_vendor = "Microsoft Corporation",
                               .product_name = "Virtual Machine",
                               .chassis_asset_tag = "7783-7084-3265-9085-8269-3286-77"};

TEST(MetadataOf, AutoGoesByTheFirmware) {
  EXPECT_EQ(metadata_service("auto", {}, kAmazon)->endpoint, "http://169.254.169.254");
  EXPECT_EQ(metadata_service("auto", {}, kAmazon)->cloud, Cloud::aws);
  EXPECT_EQ(metadata_service("auto", {}, kGoogle)->endpoint, "http://metadata.google.internal");
  EXPECT_EQ(metadata_service("auto", {}, kMicrosoft)->cloud, Cloud::azure);
}

TEST(MetadataOf, AutoAsksNobodyOnAMachineOfOnesOwn) {
  EXPECT_EQ(metadata_service("auto", {}, {})->cloud, Cloud::none);
  EXPECT_EQ(metadata_service("auto", {}, {.sys_vendor = "Dell Inc.", .product_name = "XPS"})->endpoint, "");
  // A Hyper-V machine in an office.
  FirmwareWords office = kMicrosoft;
  office.chassis_asset_tag = "none";
  EXPECT_EQ(metadata_service("auto", {}, office)->cloud, Cloud::none);
}

TEST(MetadataOf, AnEndpointThatIsSetDecides) {
  const auto service = metadata_service("auto", {.gcp = "127.0.0.1:1338"}, kAmazon);
  ASSERT_TRUE(service);
  EXPECT_EQ(service->cloud, Cloud::gcp);
  EXPECT_EQ(service->endpoint, "http://127.0.0.1:1338");
  EXPECT_EQ(metadata_service("aws", {.aws = "http://localhost:1338/"}, {})->endpoint, "http://localhost:1338");
  EXPECT_EQ(metadata_service("none", {.aws = "http://localhost:1338"}, kAmazon)->cloud, Cloud::none);
}

TEST(MetadataOf, AnotherWordOrABrokenEndpointIsAnError) {
  EXPECT_FALSE(metadata_service("ibm", {}, {}));
  for (const char* text : {"http://", "https://x", "http://a/b", "a b", "host:0", "host:99999", "http://u@h", ":80"})
    EXPECT_FALSE(metadata_service("aws", {.aws = text}, {})) << text;
}

TEST(Loopback, IsOnlyThisMachine) {
  for (const char* url : {"http://127.0.0.1:80", "http://localhost", "http://[::1]:8080", "http://127.3.2.1"})
    EXPECT_TRUE(on_loopback(url)) << url;
  for (const char* url : {"http://169.254.169.254", "http://127.0.0.1.example.org", "http://localhost.example.org",
                          "http://10.0.0.1", "http://127.0.0.1@10.0.0.1", "http://127.1"})
    EXPECT_FALSE(on_loopback(url)) << url;
}

}  // namespace
}  // namespace mayfly
