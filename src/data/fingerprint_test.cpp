#include "data/fingerprint.h"

#include <gtest/gtest.h>

#include <cstring>

namespace mayfly {
namespace {

/// Bytes in memory, a few a sample.
class Bytes8 final : public Dataset {
 public:
  explicit Bytes8(std::string bytes) : bytes_(std::move(bytes)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(bytes_.size() / 8); }
  std::vector<int> shape() const override { return {8}; }
  int labels() const override { return 1; }
  int classes() const override { return 2; }
  Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const override {
    if (sample == broken) return fail("sample {}: gone", sample);
    raw.resize(8);
    std::memcpy(raw.data(), bytes_.data() + 8 * sample, 8);
    return {};
  }
  Result<void> prepare(std::int64_t, std::span<const std::byte>, std::span<float>,
                       std::span<std::int64_t>) const override {
    return fail("not needed");
  }
  std::int64_t broken = -1;

 private:
  std::string bytes_;
};

std::string print_of(const Dataset& data) {
  const auto print = fingerprint(data);
  EXPECT_TRUE(print) << print.error().message;
  return print.value_or("");
}

TEST(Fingerprint, TellsSizesAndContentsApart) {
  const std::string bytes(8 * 2000, 'a');
  const std::string whole = print_of(Bytes8(bytes));
  EXPECT_TRUE(whole.starts_with("2000 samples "));
  EXPECT_EQ(whole, print_of(Bytes8(bytes)));
  EXPECT_NE(whole, print_of(Bytes8(bytes.substr(0, 8 * 1000))));
  std::string other = bytes;
  other.back() = 'b';  // of the last sample
  EXPECT_NE(whole, print_of(Bytes8(other)));
}

TEST(Fingerprint, OfOneSampleAndOfOneThatCannotBeRead) {
  EXPECT_TRUE(fingerprint(Bytes8("01234567")));
  Bytes8 data(std::string(80, 'a'));
  data.broken = 9;
  const auto none = fingerprint(data);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "sample 9: gone");
}

TEST(Fingerprint, OfSamplesThatAreMadeFromTheirNumbers) {
  const DataSpec digits{.name = "digits", .samples = 100, .seed = 1};
  const DataSpec others{.name = "digits", .samples = 100, .seed = 2};
  const auto one = open_dataset(digits, {}, {});
  const auto two = open_dataset(others, {}, {});
  ASSERT_TRUE(one && two);
  EXPECT_EQ(print_of(**one), print_of(**one));
  EXPECT_NE(print_of(**one), print_of(**two));
}

}  // namespace
}  // namespace mayfly
