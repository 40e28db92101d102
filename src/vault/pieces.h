#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mayfly {

/// Bytes that lie in several places, as if they lay one after another; they are their owners'.
class Pieces {
 public:
  Pieces() = default;
  Pieces(std::vector<std::span<const std::byte>> spans) : spans_(std::move(spans)) {}
  explicit Pieces(std::string_view text) : spans_{std::as_bytes(std::span(text))} {}

  const std::vector<std::span<const std::byte>>& spans() const& { return spans_; }
  std::uint64_t size() const;
  bool empty() const { return size() == 0; }
  /// So many of them from there on, fewer at the end.
  Pieces slice(std::uint64_t offset, std::uint64_t size) const;

 private:
  std::vector<std::span<const std::byte>> spans_{};
};

}  // namespace mayfly
