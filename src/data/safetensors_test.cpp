#include "data/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The header's length, below 256, as the file begins with it.
std::vector<std::byte> file_of(std::string_view header, std::string_view data) {
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  return bytes_of(text.append(header).append(data));
}

std::string error_of(std::vector<std::byte> bytes) {
  const auto file = parse_safetensors(std::move(bytes), "f");
  return file ? "" : file.error().message;
}

// What Python's struct and json make of int64 [1, -2], "b", and float32 [[1, 2, 0.5]], "a".
constexpr std::string_view kHeader =
    R"({"__metadata__":{"by":"hand"},"b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
    R"("a":{"dtype":"F32","shape":[1,3],"data_offsets":[16,28]}}   )";
const std::string kData("\x01\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\0\0\x80\x3f\0\0\0\x40\0\0\0\x3f", 28);

TEST(Safetensors, ReadsWhatOthersWrote) {
  ASSERT_EQ(kHeader.size(), 144U);
  const auto file = parse_safetensors(file_of(kHeader, kData), "f");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->notes, (std::map<std::string, std::string>{{"by", "hand"}}));
  ASSERT_EQ(file->tensors.size(), 2U);
  const TensorView* a = file->find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->dtype, "F32");
  EXPECT_EQ(a->shape, (std::vector<std::int64_t>{1, 3}));
  float values[3];
  ASSERT_EQ(a->bytes.size(), sizeof values);
  std::memcpy(values, a->bytes.data(), sizeof values);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 2);
  EXPECT_EQ(values[2], 0.5);
  std::int64_t whole[2];
  ASSERT_EQ(file->find("b")->bytes.size(), sizeof whole);
  std::memcpy(whole, file->find("b")->bytes.data(), sizeof whole);
  EXPECT_EQ(whole[1], -2);
  EXPECT_EQ(file->find("c"), nullptr);
}

// Given narrowest first; the wide one goes to the front, so that each lies on a multiple of its width.
TEST(Safetensors, WritesTheBytesOthersRead) {
  const auto all = bytes_of(kData);
  const std::span<const std::byte> data(all);
  const std::vector<TensorView> tensors{{.name = "a", .dtype = "F32", .shape = {1, 3}, .bytes = data.subspan(16)},
                                        {.name = "b", .dtype = "I64", .shape = {2}, .bytes = data.first(16)}};
  const support::TempFolder folder;
  const auto path = folder.path() / "t.safetensors";
  ASSERT_TRUE(write_safetensors(path, tensors, {{"by", "hand"}}));
  const auto expected = file_of(kHeader, kData);
  EXPECT_EQ(bytes_of(*load_text(path)), expected);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  const auto read = load_safetensors(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->find("a")->shape, tensors[0].shape);
}

TEST(Safetensors, EmptyTensorsAndScalarsAreTensors) {
  const auto file = parse_safetensors(file_of(R"({"none":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},)"
                                              R"("one":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
                                              "x"),
                                      "f");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->find("none")->bytes.size(), 0U);
  EXPECT_EQ(file->find("one")->bytes.size(), 1U);
  EXPECT_EQ(error_of(file_of("{}", "")), "");
}

TEST(Safetensors, RefusesWhatDoesNotFit) {
  const auto one = [](std::string_view fields, std::string_view data) {
    return error_of(file_of("{\"t\":{" + std::string(fields) + "}}", data));
  };
  EXPECT_EQ(one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", "xy"), "");
  EXPECT_EQ(one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", "x"),
            "f:1: tensor 't' is at bytes 0 to 2, want it to start at 0 and to end by 1");
  EXPECT_EQ(one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", "xyz"),
            "f:1: 2 bytes of tensors, want the 3 that are there");
  EXPECT_EQ(one(R"("dtype":"U8","shape":[2],"data_offsets":[1,3])", "xyz"),
            "f:1: tensor 't' is at bytes 1 to 3, want it to start at 0 and to end by 3");
  EXPECT_EQ(one(R"("dtype":"U8","shape":[3],"data_offsets":[0,2])", "xy"),
            "f:1: tensor 't' has 2 bytes, which do not fit U8 [3]");
  EXPECT_EQ(one(R"("dtype":"Q4","shape":[2],"data_offsets":[0,2])", "xy"),
            "f:1: tensor 't' has dtype 'Q4', want F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL");
  EXPECT_EQ(one(R"("dtype":"U8","shape":[2])", "xy"), "f:1: tensor 't' wants a shape and two offsets");
  EXPECT_EQ(one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1)", "xy"),
            "f:1: unknown key 'x', want dtype, shape and data_offsets");
  // 2^40 x 2^40 would be 0 in 64 bits.
  EXPECT_NE(one(R"("dtype":"U8","shape":[1099511627776,1099511627776],"data_offsets":[0,0])", ""), "");
  for (const char* shape : {"[-1]", "[0.5]", "[1e300]", "\"2\""})
    EXPECT_NE(one("\"dtype\":\"U8\",\"shape\":" + std::string(shape) + ",\"data_offsets\":[0,2]", "xy"), "") << shape;
}

TEST(Safetensors, RefusesOverlapsAndDoubledNames) {
  const auto two = [](std::string_view second_name, std::string_view second_at) {
    return error_of(file_of(R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},")" + std::string(second_name) +
                                R"(":{"dtype":"U8","shape":[2],"data_offsets":)" + std::string(second_at) + "}}",
                            "wxyz"));
  };
  EXPECT_EQ(two("u", "[2,4]"), "");
  EXPECT_EQ(two("u", "[1,3]"), "f:1: tensor 'u' is at bytes 1 to 3, want it to start at 2 and to end by 4");
  EXPECT_EQ(two("t", "[2,4]"), "f:1: key 't' stands twice");
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const auto whole = file_of(kHeader, kData);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(error_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  EXPECT_EQ(error_of(bytes_of("\xff\xff\xff\xff\xff\xff\xff\xff{}")),
            "f: its header should have 18446744073709551615 bytes, want at most 2 (truncated, or a file of another "
            "kind?)");
}

TEST(Safetensors, WritesNothingThatCouldNotBeRead) {
  const support::TempFolder folder;
  const auto path = folder.path() / "t";
  const auto four = bytes_of("wxyz");
  const auto saved = [&](std::vector<TensorView> tensors) { return write_safetensors(path, tensors, {}).has_value(); };
  EXPECT_FALSE(saved({{.name = "t", .shape = {2}, .bytes = four}}));
  EXPECT_FALSE(saved({{.name = "t", .dtype = "Q4", .shape = {1}, .bytes = four}}));
  EXPECT_FALSE(saved({{.name = "__metadata__", .shape = {1}, .bytes = four}}));
  EXPECT_FALSE(saved({{.name = "t", .shape = {1}, .bytes = four}, {.name = "t", .shape = {1}, .bytes = four}}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_FALSE(load_safetensors(path));
  EXPECT_FALSE(load_safetensors(folder.path()));
}

}  // namespace
}  // namespace mayfly
