#include "cloud/skypilot_cloud.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::string_view kNoCurrency = "its file copies a European price list without a currency; taken as USD";
constexpr std::array kClouds = {
    SkypilotCloud{.name = "aws"},
    SkypilotCloud{.name = "azure"},
    SkypilotCloud{.name = "gcp"},
    SkypilotCloud{.name = "cloudrift"},
    SkypilotCloud{.name = "cudo"},
    SkypilotCloud{.name = "do"},
    SkypilotCloud{.name = "fluidstack"},
    SkypilotCloud{.name = "hyperbolic"},
    SkypilotCloud{.name = "hyperstack"},
    SkypilotCloud{.name = "ibm"},
    SkypilotCloud{.name = "jarvislabs"},
    SkypilotCloud{.name = "lambda"},
    SkypilotCloud{.name = "latitude"},
    SkypilotCloud{.name = "lium"},
    SkypilotCloud{
        .name = "mithril",
        .remark = "its prices are the least the provider takes bids at, on demand too, not what a bid wins at"},
    SkypilotCloud{.name = "nebius"},
    SkypilotCloud{.name = "novita"},
    SkypilotCloud{.name = "oci"},
    SkypilotCloud{.name = "ovhcloud"},
    SkypilotCloud{.name = "paperspace"},
    SkypilotCloud{.name = "ppio"},
    SkypilotCloud{.name = "primeintellect", .total_memory = true, .broker_mark = "__"},
    SkypilotCloud{.name = "quantacloud"},
    SkypilotCloud{.name = "runpod"},
    SkypilotCloud{.name = "scaleway", .remark = kNoCurrency},
    SkypilotCloud{.name = "scp"},
    SkypilotCloud{.name = "seeweb", .remark = kNoCurrency},
    SkypilotCloud{.name = "shadeform", .broker_mark = "_"},
    SkypilotCloud{.name = "simplepod"},
    SkypilotCloud{.name = "spheron"},
    SkypilotCloud{.name = "vast",
                  .total_memory = true,
                  .remark = "a price is the median of its offers alike, a spot price the highest of their least bids"},
    SkypilotCloud{.name = "verda"},
    SkypilotCloud{.name = "vsphere"},
    SkypilotCloud{.name = "yotta"},
};

}  // namespace

Result<const SkypilotCloud*> skypilot_cloud(std::string_view name) {
  const auto* at =
      std::find_if(kClouds.begin(), kClouds.end(), [&](const SkypilotCloud& cloud) { return cloud.name == name; });
  if (at != kClouds.end()) return at;
  std::vector<std::string> names;
  for (const auto& cloud : kClouds) names.emplace_back(cloud.name);
  return fail("cloud '{}': want one of {}{}", name, skypilot_cloud_names(), did_you_mean(name, names));
}

std::string skypilot_cloud_names() {
  std::string names;
  for (const auto& cloud : kClouds) names += fmt::format("{}{}", names.empty() ? "" : ", ", cloud.name);
  return names;
}

std::string_view accelerator_of(const SkypilotCloud& cloud, std::string_view type, std::string_view accelerator) {
  if (cloud.name != "vast" || accelerator.empty()) return accelerator;
  // "2x-RTX_4070S_Ti-32-65536": count, card, vCPUs, MiB
  const auto card = type.find("x-");
  const auto memory = type.rfind('-');
  if (card == type.npos || memory == type.npos || memory < card + 3) return accelerator;
  const auto vcpus = type.rfind('-', memory - 1);
  return vcpus == type.npos || vcpus <= card + 2 ? accelerator : type.substr(card + 2, vcpus - card - 2);
}

std::string region_of(const SkypilotCloud& cloud, std::string_view type, std::string_view region) {
  region.remove_prefix(std::min(region.find_first_not_of(", "), region.size()));
  const auto mark = cloud.broker_mark.empty() ? type.npos : type.find(cloud.broker_mark);
  if (mark == type.npos || mark == 0) return std::string(region);
  return fmt::format("{}{}{}", type.substr(0, mark), region.empty() ? "" : ", ", region);
}

}  // namespace mayfly
