#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cloud/catalog.h"

// Quotas as clouds have them, on sums over many types: docs/formats.md#quotas.
namespace mayfly {

/// A limit on the vCPUs or the GPUs that machines of a family have together, in one market and at one site.
struct FamilyQuota {
  enum class Unit { vcpus, gpus };
  Unit unit = Unit::vcpus;
  Market market = Market::on_demand;  ///< or spot
  std::string family{};               ///< "p", "p5", "standard", "n1-*"; of GPUs a model: "A100"
  int limit = 0;
  bool operator==(const FamilyQuota&) const = default;
};
/// As it is written: "spot-vcpus:p".
std::string name(const FamilyQuota& quota);

/// What one machine of the type takes of it; 0: it does not count against it.
double use_of(const FamilyQuota& quota, const InstanceType& type);

/// Of all, those that a type counts against in a market: for each unit the one whose family says most, as AWS counts a
/// p5.48xlarge against P5 where there is such a quota, else against P.
std::vector<std::size_t> quotas_on(const std::vector<FamilyQuota>& all, const InstanceType& type, Market market);

/// What --quota says: machines of a type, and sums over families.
struct Quotas {
  std::vector<MachineCount> types{};
  std::vector<FamilyQuota> families{};
};
/// `g3.8xlarge=5,*=8,vcpus:p=96,spot-vcpus:p=192,gpus:A100=8,spot-gpus:H100=8`
Result<Quotas> parse_quotas(std::string_view text);

/// An error that names the first family no type of the catalogue belongs to and no cloud is known to have.
Result<void> known_families(const std::vector<FamilyQuota>& quotas, const Catalog& catalog);

}  // namespace mayfly
