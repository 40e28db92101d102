#include "data/fingerprint.h"

#include <algorithm>

#include "data/new_file.h"

namespace mayfly {
namespace {

constexpr std::int64_t kSamplesRead = 32;
/// Samples that are made from their numbers need time instead of storage.
constexpr std::int64_t kSamplesMade = 4;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The i-th of `count` samples, evenly apart, the first and the last among them.
std::int64_t chosen(std::int64_t i, std::int64_t count, std::int64_t size) {
  return count < 2 ? 0 : (size - 1) * i / (count - 1);
}

}  // namespace

Result<std::string> fingerprint(const Dataset& data) {
  std::string text =
      fmt::format("{} {} {} {}\n", data.size(), fmt::join(data.shape(), ","), data.labels(), data.classes());
  std::vector<std::byte> raw;
  if (auto read = data.fetch(0, raw); !read) return unexpected(read.error());
  const bool made = raw.empty();
  const std::int64_t count = std::min(data.size(), made ? kSamplesMade : kSamplesRead);
  std::vector<float> inputs(made ? data.length() : 0);
  std::vector<std::int64_t> labels(made ? static_cast<std::size_t>(data.labels()) : 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t sample = chosen(i, count, data.size());
    if (auto read = data.fetch(sample, raw); !read) return unexpected(read.error());
    text += as_text(raw);
    if (!made) continue;
    if (auto ready = data.prepare(sample, raw, inputs, labels); !ready) return unexpected(ready.error());
    text += as_text(std::as_bytes(std::span(inputs)));
    text += as_text(std::as_bytes(std::span(labels)));
  }
  return fmt::format("{} samples {:016x}", data.size(), xxh3_of(text));
}

}  // namespace mayfly
