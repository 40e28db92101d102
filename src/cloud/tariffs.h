#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cloud/instance_type.h"

namespace mayfly {

/// Of a gigabyte, or of a gigabyte kept for a month.
struct GigabyteRate {
  Usd rate{};
  double free_gb = 0;  ///< of each month
  std::string source{};
  bool operator==(const GigabyteRate&) const = default;
};

/// The time a machine is billed for: at least so long, and in whole steps.
struct BilledTime {
  Seconds minimum{0};
  Seconds step{0};
  std::vector<std::pair<std::string, Seconds>> types{};  ///< minimum of types whose names begin so
  std::string source{};
  Seconds of(std::string_view type, Seconds held) const;
  bool operator==(const BilledTime&) const = default;
};

/// What a cloud charges in a region beside the price of its machines. What is absent is not known.
struct Tariff {
  std::optional<double> gb_bytes{};  ///< absent: 10^9, which makes more gigabytes of the bytes
  std::optional<BilledTime> machines{};
  std::optional<GigabyteRate> internet{};  ///< of what leaves for the internet or another cloud
  std::optional<GigabyteRate> between_regions{};
  std::optional<GigabyteRate> between_continents{};  ///< absent: as between regions
  std::optional<GigabyteRate> between_zones{};       ///< of a region; both directions together
  std::optional<GigabyteRate> within_region{};       ///< between machines and storage
  std::optional<GigabyteRate> storage{};             ///< a month, of 730 hours
  std::string continent{};
  bool operator==(const Tariff&) const = default;
};

/// A cloud and one of its regions; either may be empty, where it is not known.
struct Site {
  std::string cloud{};
  std::string region{};
  bool operator==(const Site&) const = default;
};
/// Storage of one's own, for which no cloud sends a bill.
inline constexpr std::string_view kOwnSite = "local";

/// The tariffs of all clouds. Format: docs/formats.md#tariffs.
struct Tariffs {
  struct OfCloud {
    std::string cloud{};
    Tariff tariff{};
    std::vector<std::pair<std::string, Tariff>> regions{};  ///< by name, or by how it begins and a star
  };
  std::vector<Source> sources{};
  std::vector<OfCloud> clouds{};

  /// By the entry that says most of the region, figure by figure. Of a cloud that is not there nothing is known.
  Tariff of(const Site& place) const;
  /// Of a gigabyte on its way. Nothing: not known, or the region of one end is not and decides.
  std::optional<GigabyteRate> transfer(const Site& from, const Site& to) const;
};

/// Bytes in the gigabytes of the bill.
double gigabytes(const Tariff& tariff, Bytes size);

Result<Tariffs> parse_tariffs(std::string_view text, const std::string& file);
Result<Tariffs> load_tariffs(const std::filesystem::path& path);

}  // namespace mayfly
