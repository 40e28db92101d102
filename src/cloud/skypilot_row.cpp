#include "cloud/skypilot_row.h"

#include <algorithm>
#include <cctype>

#include "base/document.h"
#include "base/text.h"

namespace mayfly {
namespace {

// Beyond every machine that can be rented (448 vCPUs and 24 TiB are the most in 2026); a figure beyond is in another
// unit.
constexpr double kMostVcpus = 4096;
constexpr double kMostMemoryGib = 65536;
/// What a catalogue can hold.
constexpr double kLargestFigure = 1e18;

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Real files write GpuInfo, SkyPilot's documentation GPUInfo.
bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_letter);
}

/// 16384 of "{'Gpus': [{..., 'MemoryInfo': {'SizeInMiB': 16384}}], ...}"; nothing of Azure's "V100". DigitalOcean's
/// keys are in small letters.
std::string_view value_of(std::string_view key, std::string_view info) {
  const auto found = std::search(info.begin(), info.end(), key.begin(), key.end(), same_letter);
  if (found == info.end()) return {};
  const auto after = static_cast<std::size_t>(found - info.begin()) + key.size();
  const auto begin = std::min(info.find_first_not_of("'\": ", after), info.size());
  return trimmed(info.substr(begin, info.find_first_of("'\",}", begin) - begin));
}

std::string bound(double most) { return most == kLargestFigure ? "10^18" : fmt::format("{:g}", most); }

}  // namespace

Result<SkypilotHeader> SkypilotHeader::of(const std::vector<std::string>& names, const std::string& file) {
  SkypilotHeader header;
  header.width_ = names.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      if (!header.at_[column] && same_word(trimmed(names[i]), kNames[column])) header.at_[column] = i;
    }
  }
  for (const Column column : {kType, kPrice}) {
    if (header.at_[column]) continue;
    return fail("{}: no column '{}'; columns seen: {}", file, kNames[column], fmt::join(names, ", "));
  }
  return header;
}

Result<SkypilotRow> SkypilotHeader::row(const std::vector<std::string>& fields, const std::string& file,
                                        int line) const {
  if (fields.size() != width_) {
    return fail("{}:{}: {} columns, want {} as in the header", file, line, fields.size(), width_);
  }
  std::optional<Error> error;
  const auto text = [&](Column column) { return at_[column] ? trimmed(fields[*at_[column]]) : std::string_view(); };
  const auto reject = [&](Column column, std::string_view seen, std::string_view wanted) {
    if (error) return;
    error = Error{fmt::format("{}:{}: column '{}': '{}', want {}", file, line, kNames[column], seen, wanted)};
  };
  const auto number = [&](Column column, std::string_view seen, Range range,
                          double most = kLargestFigure) -> std::optional<double> {
    if (seen.empty()) return {};
    const auto value = parse_number(seen);
    if (value && *value <= most && (range == Range::positive ? *value > 0 : *value >= 0)) return value;
    const bool positive = range == Range::positive;
    reject(column, seen, fmt::format("a number {} {}", positive ? "above 0 and up to" : "from 0 to", bound(most)));
    return {};
  };
  const auto info = text(kGpuInfo);
  SkypilotRow row{.type = text(kType), .accelerator = text(kAccelerator), .gpu_name = value_of("Name", info)};
  row.region = text(kRegion);
  row.zone = text(kZone);
  row.line = line;
  if (row.type.empty() && row.accelerator.empty()) reject(kType, row.type, "a name");
  for (const Column column : {kType, kAccelerator, kRegion, kZone}) {
    if (!is_name(text(column)))
      reject(column, printable(text(column)), "a name of at most 200 bytes without control characters");
  }
  row.figures = {.vcpus = number(kVcpus, text(kVcpus), Range::positive, kMostVcpus),
                 .memory_gib = number(kMemory, text(kMemory), Range::positive, kMostMemoryGib),
                 .gpu_count = number(kGpuCount, text(kGpuCount), Range::non_negative),
                 .gpu_size = number(kGpuInfo, value_of("SizeInMiB", info), Range::non_negative)};
  if (row.figures.gpu_size == 0) row.figures.gpu_size.reset();
  row.price = number(kPrice, text(kPrice), Range::non_negative);
  row.spot_price = number(kSpotPrice, text(kSpotPrice), Range::non_negative);
  if (error) return unexpected(*error);
  return row;
}

}  // namespace mayfly
