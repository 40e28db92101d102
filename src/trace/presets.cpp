#include <algorithm>
#include <cmath>
#include <numeric>

#include "trace/generate.h"

namespace mayfly {
namespace {

using Counts = std::array<double, 24>;

// CM-DARE (Li, Walls, Guo, ICDCS 2020): preemptible GPU machines of 4 regions each, by
// hour of age and by hour of day.
const LifeTable kK80{156, {33, 0, 9, 1, 0, 1, 6, 0, 1, 0, 0, 1, 2, 1, 1, 10, 0, 0, 0, 0, 2, 0, 0, 4}};
const LifeTable kV100{120, {38, 11, 3, 8, 0, 2, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
constexpr Counts kK80Hours{2, 0, 7, 2, 0, 4, 0, 3, 0, 0, 12, 5, 2, 2, 0, 8, 7, 2, 2, 2, 3, 3, 4, 2};
constexpr Counts kV100Hours{0, 2, 0, 4, 2, 0, 2, 4, 1, 9, 6, 3, 11, 12, 1, 7, 0, 0, 0, 0, 0, 4, 1, 0};

std::vector<Preset> made() {
  std::vector<Preset> all;
  // 273.283 machine-hours and 167 preemptions: 1.636 h each (the stays that ended within the trace average 1.462 h,
  // being the short ones). Of 79 events 40 took more than one machine, together 128. Mean available 24.0 of 32.
  all.push_back(
      {"p3",
       "32 p3.2xlarge on AWS as Bamboo held them for 11.4 h (Thorpe et al., NSDI 2023): lives of 1.64 h, half of "
       "the events take several, 24 of 32 held",
       {.machines = 32,
        .type = "p3.2xlarge",
        .lifetime = ExponentialLife{Hours(273.283 / 167)},
        .share_multi = 40.0 / 79,
        .mean_multi = 128.0 / 40,
        .rejoin = Hours(273.283 / 167 * (32 - 24.0073) / 24.0073)}});
  all.push_back({"gcp-k80",
                 "preemptible K80 on GCP by age and hour of day (CM-DARE, ICDCS 2020; 156 machines), replaced "
                 "in 81 s",
                 {.machines = 16, .lifetime = kK80, .hours = kK80Hours, .rejoin = Seconds(80.65)}});
  all.push_back({"gcp-v100",
                 "preemptible V100 on GCP by age and hour of day (CM-DARE, ICDCS 2020; 120 machines), replaced "
                 "in 92 s as its P100 were",
                 {.machines = 16, .lifetime = kV100, .hours = kV100Hours, .rejoin = Seconds(91.88)}});
  all.push_back(
      {"bathtub",
       "GCP's 24-hour machines as fitted by SciSpot (Kadupitiya et al., 2020): A 0.4137, tau1 0.9 h, tau2 0.76 h",
       {.machines = 16, .lifetime = BathtubLife{}, .rejoin = Seconds(80.65)}});
  // 11 of 48 gone within 24 h.
  all.push_back({"calm",
                 "as steady as K80 in us-west1, where 11 of 48 were lost within 24 h (CM-DARE, ICDCS 2020)",
                 {.machines = 16, .lifetime = ExponentialLife{Hours(-24 / std::log(1 - 11.0 / 48))}}});
  all.push_back(
      {"drought",
       "a scenario without a source: the p3 preset, and on two days of three nothing can be had for four hours",
       all[0].options});
  all.back().options.droughts_per_day = 2.0 / 3;
  all.back().options.drought_length = Hours(4);
  for (Preset& preset : all) preset.options.name = preset.name;
  return all;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = made();
  return all;
}

}  // namespace mayfly
