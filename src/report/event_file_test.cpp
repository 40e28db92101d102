#include "report/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace mayfly {
namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Checks both checksums. ((x - 0xa282ead8) rotated left by 15) is the plain one.
std::vector<std::string> records(std::string_view file) {
  std::vector<std::string> all;
  const auto checked = [](std::string_view bytes, std::string_view checksum) {
    return std::rotl(static_cast<std::uint32_t>(little_endian(checksum)) - 0xa282ead8u, 15) == crc32c(bytes);
  };
  while (!file.empty()) {
    const std::size_t length = little_endian(file.substr(0, 8));
    EXPECT_TRUE(checked(file.substr(0, 8), file.substr(8, 4)));
    EXPECT_TRUE(checked(file.substr(12, length), file.substr(12 + length, 4)));
    all.emplace_back(file.substr(12, length));
    file.remove_prefix(16 + length);
  }
  return all;
}

/// The fields of a message, each number once: numbers as they lie in the file, texts and messages as bytes.
struct Message {
  std::map<unsigned, std::uint64_t> numbers{};
  std::map<unsigned, std::string> bytes{};

  explicit Message(std::string_view text) {
    const auto varint = [&] {
      std::uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(text.front());
        text.remove_prefix(1);
        value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
      }
    };
    while (!text.empty()) {
      const std::uint64_t key = varint();
      const auto number = static_cast<unsigned>(key >> 3);
      const std::uint64_t kind = key & 7;
      if (kind == 0) {
        numbers[number] = varint();
        continue;
      }
      const std::size_t size = kind == 1 ? 8 : kind == 5 ? 4 : varint();
      if (kind == 2)
        bytes[number] = text.substr(0, size);
      else
        numbers[number] = little_endian(text.substr(0, size));
      text.remove_prefix(size);
    }
  }
};

struct ReadScalar {
  double wall_time = 0;
  std::uint64_t step = 0;
  std::string tag{};
  float value = 0;
  bool operator==(const ReadScalar&) const = default;
};
std::ostream& operator<<(std::ostream& out, const ReadScalar& scalar) {
  return out << scalar.wall_time << ' ' << scalar.step << ' ' << scalar.tag << ' ' << scalar.value;
}

std::vector<ReadScalar> scalars(const std::string& file) {
  std::vector<ReadScalar> all;
  for (const std::string& record : records(file)) {
    const Message event(record);
    if (event.bytes.contains(3)) continue;
    const Message value(Message(event.bytes.at(5)).bytes.at(1));
    all.push_back({std::bit_cast<double>(event.numbers.at(1)), event.numbers.at(2), value.bytes.at(1),
                   std::bit_cast<float>(static_cast<std::uint32_t>(value.numbers.at(2)))});
  }
  return all;
}

using Scalars = std::vector<ReadScalar>;

TEST(Crc32c, IsThatOfCastagnoli) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
}

// Every event file begins like this: a record of 9 + 2 + 13 = 24 bytes; 256.5 is 1.001953125 * 2^8.
TEST(EventFile, BeginsWithItsVersion) {
  const std::string file = event_file(Json::object(), 256.5);
  EXPECT_EQ(file.substr(0, 36), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22"
                                            "\x09\0\0\0\0\0\x08\x70\x40\x1a\x0d"
                                            "brain.Event:2",
                                            36));
  EXPECT_EQ(file.size(), 40u);
  ASSERT_EQ(records(file).size(), 1u);
  EXPECT_EQ(Message(records(file)[0]).bytes.at(3), "brain.Event:2");
}

// At 10 s half of the 1000 samples of 20 s are trained.
TEST(EventFile, AScalarStandsAtTheSamplesTrainedByThen) {
  const Json view{{"progress", {{"t_s", {0, 20}}, {"samples", {0, 1000}}}},
                  {"losses", {{"t_s", {10, 30}}, {"loss", {0.5, 0.25}}}}};
  EXPECT_EQ(scalars(event_file(view, 1000)), (Scalars{{1000, 0, "progress/samples", 0},
                                                      {1010, 500, "loss/training", 0.5},
                                                      {1020, 1000, "progress/samples", 1000},
                                                      {1030, 1000, "loss/training", 0.25}}));
}

// Up to 1000 at 10 s, back to 400, and 1400 at 20 s: 900 at 15 s, 1200 at 18 s.
TEST(EventFile, StepsDoNotFallWhereWorkWasLost) {
  const Json view{{"progress", {{"t_s", {0, 10, 10, 20}}, {"samples", {0, 1000, 400, 1400}}}},
                  {"losses", {{"t_s", {15, 18}}, {"loss", {1, 1}}}}};
  const Scalars found = scalars(event_file(view, 0));
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[2], (ReadScalar{10, 1000, "progress/samples", 400}));
  EXPECT_EQ(found[3], (ReadScalar{15, 1000, "loss/training", 1}));
  EXPECT_EQ(found[4], (ReadScalar{18, 1200, "loss/training", 1}));
}

TEST(EventFile, HasEveryScalarOfAView) {
  const Json view = Json::parse(R"({
    "counts": {"t_s": [1], "series": [{"n": [2]}, {"n": [3]}], "used": [4]},
    "losses": {"t_s": [2], "loss": [0.5]}, "validation": {"t_s": [3], "loss": [0.75], "accuracy": [0.875]},
    "money": {"t_s": [4], "usd": [1.5]}, "progress": {"t_s": [5], "samples": [64]}})");
  EXPECT_EQ(scalars(event_file(view, 0)), (Scalars{{1, 0, "machines/held", 5},
                                                   {1, 0, "machines/training", 4},
                                                   {2, 0, "loss/training", 0.5},
                                                   {3, 0, "loss/validation", 0.75},
                                                   {3, 0, "accuracy/validation", 0.875},
                                                   {4, 0, "money/usd", 1.5},
                                                   {5, 64, "progress/samples", 64}}));
}

// 300 takes two bytes of seven bits.
TEST(EventFile, LargeStepsAreWhole) {
  for (const double samples : {127.0, 128.0, 300.0, 4e12}) {
    const Json view{{"progress", {{"t_s", {0}}, {"samples", {samples}}}}};
    EXPECT_EQ(scalars(event_file(view, 0)).at(0).step, static_cast<std::uint64_t>(samples));
  }
}

TEST(EventFile, LeavesOutWhatIsNoNumber) {
  const Json view = Json::parse(R"({
    "losses": {"t_s": [1, 2, null, 4], "loss": [null, "x", 1, 0.5, 7]}, "validation": {"t_s": [1], "loss": [1e300]},
    "progress": {"t_s": "none", "samples": [1]}, "counts": [], "money": null})");
  EXPECT_EQ(scalars(event_file(view, 0)), (Scalars{{4, 0, "loss/training", 0.5}}));
  for (const Json& other : {Json(), Json("text"), Json::array({1})}) EXPECT_EQ(event_file(other, 0).size(), 40u);
}

}  // namespace
}  // namespace mayfly
