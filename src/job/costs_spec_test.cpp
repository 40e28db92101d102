#include "job/costs_spec.h"

#include <gtest/gtest.h>

#include "job/job_spec.h"

namespace mayfly {
namespace {

Result<JobSpec> job(const std::string& costs) { return parse_job("name: j\ncosts: " + costs + "\n", "j"); }
CostsSpec costs(const std::string& text) { return *job(text).value().costs; }
std::string error(const std::string& text) {
  const auto read = job(text);
  return read ? "" : read.error().message;
}

TEST(CostsSpec, SaysWhatIsStoredWhere) {
  const CostsSpec all = costs(
      "{data: {size_gb: 150, at: s3://images/train, region: us-east-1, load: share}, "
      "checkpoints: {size_gb: 0.5, every: 10m, keep: 2, at: gcp/us-central1}, image_gb: 8, setup: 90s}");
  EXPECT_EQ(all.data, (StoredSpec{.size = Bytes{150e9}, .cloud = "aws", .region = "us-east-1"}));
  EXPECT_EQ(all.load, Loading::share);
  EXPECT_EQ(all.checkpoints, (StoredSpec{.size = Bytes{0.5e9}, .cloud = "gcp", .region = "us-central1"}));
  EXPECT_EQ(all.every, Seconds(600));
  EXPECT_EQ(all.keep, 2);
  EXPECT_EQ(all.image, Bytes{8e9});
  EXPECT_EQ(all.setup, Seconds(90));
}

TEST(CostsSpec, WhatIsNotSaidIsNotKnown) {
  EXPECT_FALSE(parse_job("name: j", "j").value().costs);
  EXPECT_EQ(costs("{}"), CostsSpec{});
  EXPECT_EQ(costs("{data: {at: gs://b}}").data, (StoredSpec{.cloud = "gcp"}));
  EXPECT_EQ(costs("{data: {at: AWS/us-east-1}}").data, (StoredSpec{.cloud = "aws", .region = "us-east-1"}));
  EXPECT_EQ(costs("{data: {at: local}}").data, (StoredSpec{.cloud = "local"}));
}

TEST(CostsSpec, SaysWhatIsWrong) {
  EXPECT_EQ(error("{data: {sizegb: 1}}"), "j:2: costs.data.sizegb: unknown key (did you mean 'size_gb'?)");
  EXPECT_EQ(error("{datta: {}}"), "j:2: costs.datta: unknown key (did you mean 'data'?)");
  EXPECT_EQ(error("{data: {size_gb: -1}}"), "j:2: costs.data.size_gb: '-1', want a number of 0 or more");
  EXPECT_EQ(error("{data: {at: ftp://b}}"),
            "j:2: costs.data.at: 'ftp://b', want s3://BUCKET, gs://BUCKET, CLOUD[/REGION] or local");
  for (const char* at : {"s3://", "aws/", "/us-east-1", "aws/us-east-1/a"})
    EXPECT_NE(error(fmt::format("{{data: {{at: '{}'}}}}", at)), "") << at;
  EXPECT_EQ(error("{data: {region: us-east-1}}"), "j:2: costs.data.region: is that of 'at', which is not there");
  EXPECT_EQ(error("{data: {at: aws/us-east-1, region: us-west-2}}"),
            "j:2: costs.data.region: 'us-west-2', and 'at' says 'us-east-1'");
  EXPECT_EQ(error("{data: {load: torrent}}"), "j:2: costs.data.load: 'torrent', want one of copy, share, stream");
  EXPECT_EQ(error("{checkpoints: {every: 0s}}"), "j:2: costs.checkpoints.every: want a time above 0");
  EXPECT_NE(error("{checkpoints: {keep: 0}}"), "");
  EXPECT_NE(error("{setup: soon}"), "");
}

}  // namespace
}  // namespace mayfly
