#include "job/costs_spec.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 3> kLoadings{"copy", "share", "stream"};
/// Storage of a cloud by the beginning of its addresses.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSchemes{{{"s3", "aws"}, {"gs", "gcp"}}};

std::optional<Bytes> read_size(Section& section, std::string_view key) {
  const auto gb = section.maybe_number(key, Range::non_negative);
  return gb ? std::optional(Bytes{*gb * 1e9}) : std::nullopt;
}

std::optional<Seconds> read_time(Section& section, std::string_view key) {
  const auto text = section.maybe_text(key);
  if (!text) return {};
  const auto time = parse_duration(*text);
  if (time) return *time;
  section.reject(key, time.error().message);
  return {};
}

/// `s3://BUCKET/...`, `gs://BUCKET/...`, `CLOUD[/REGION]` or `local`; `region` says where a bucket is.
void read_place(Section& section, StoredSpec& stored) {
  const std::string at = section.maybe_text("at").value_or("");
  const auto region = section.maybe_text("region");
  if (at.empty()) {
    if (region) section.reject("region", "is that of 'at', which is not there");
    return;
  }
  constexpr const char* kWanted = "want s3://BUCKET, gs://BUCKET, CLOUD[/REGION] or local";
  if (const auto scheme = at.find("://"); scheme != std::string::npos) {
    const auto known = std::find_if(kSchemes.begin(), kSchemes.end(),
                                    [&](const auto& one) { return at.substr(0, scheme) == one.first; });
    if (known == kSchemes.end() || at.size() == scheme + 3)
      return section.reject("at", fmt::format("'{}', {}", at, kWanted));
    stored.cloud = known->second;
  } else {
    const auto parts = split(at, '/');
    if (parts.size() > 2 || parts[0].empty() || parts.back().empty())
      return section.reject("at", fmt::format("'{}', {}", at, kWanted));
    stored.cloud = parts[0];
    if (parts.size() == 2) stored.region = parts[1];
    std::transform(stored.cloud.begin(), stored.cloud.end(), stored.cloud.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  }
  if (region && !stored.region.empty() && *region != stored.region)
    return section.reject("region", fmt::format("'{}', and 'at' says '{}'", *region, stored.region));
  if (region) stored.region = *region;
}

StoredSpec read_stored(Section& section) {
  StoredSpec stored{.size = read_size(section, "size_gb")};
  read_place(section, stored);
  return stored;
}

Loading read_loading(Section& section) {
  const auto word = section.maybe_text("load");
  if (!word) return Loading::copy;
  const auto found = std::find(kLoadings.begin(), kLoadings.end(), *word);
  if (found == kLoadings.end()) {
    section.reject("load", fmt::format("'{}', want one of {}", *word, fmt::join(kLoadings, ", ")));
    return Loading::copy;
  }
  return static_cast<Loading>(found - kLoadings.begin());
}

}  // namespace

CostsSpec read_costs(Section section) {
  CostsSpec costs;
  if (auto data = section.maybe_section("data")) {
    costs.data = read_stored(*data);
    costs.load = read_loading(*data);
    data->finish();
  }
  if (auto checkpoints = section.maybe_section("checkpoints")) {
    costs.checkpoints = read_stored(*checkpoints);
    costs.every = read_time(*checkpoints, "every");
    if (costs.every && costs.every->count() <= 0) checkpoints->reject("every", "want a time above 0");
    costs.keep = checkpoints->maybe_integer("keep");
    checkpoints->finish();
  }
  costs.image = read_size(section, "image_gb");
  costs.setup = read_time(section, "setup");
  section.finish();
  return costs;
}

}  // namespace mayfly
