#include "vault/pieces.h"

#include <gtest/gtest.h>

#include <string>

namespace mayfly {
namespace {

std::string joined(const Pieces& pieces) {
  std::string text;
  for (const auto span : pieces.spans()) text.append(reinterpret_cast<const char*>(span.data()), span.size());
  return text;
}

TEST(Pieces, AreCutAnywhere) {
  const std::string_view first = "abc", none, second = "defgh";
  const Pieces pieces(
      {std::as_bytes(std::span(first)), std::as_bytes(std::span(none)), std::as_bytes(std::span(second))});
  EXPECT_EQ(pieces.size(), 8U);
  const std::string all = "abcdefgh";
  for (std::size_t offset = 0; offset <= 9; ++offset) {
    for (std::size_t size = 0; size <= 9; ++size)
      EXPECT_EQ(joined(pieces.slice(offset, size)), offset > 8 ? "" : all.substr(offset, size))
          << offset << " " << size;
  }
}

}  // namespace
}  // namespace mayfly
