#include "cli/stall_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"

namespace mayfly::cli {
namespace {

constexpr int kBar = 30;

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

std::string bar(double share) {
  const int length = static_cast<int>(std::lround(kBar * std::clamp(share, 0.0, 1.0)));
  return std::string(static_cast<std::size_t>(length), '#');
}

/// Time that a stage works beyond what training waits for it.
std::string hidden_text(double busy, double stall) {
  const double hidden = std::max(0.0, busy - std::max(0.0, stall));
  return hidden > 0.02 * busy && busy > 0 ? milliseconds(hidden) + " hidden" : "";
}

void add_row(Table& table, const char* name, const Stall& stall, double whole, const std::string& remark) {
  const Centre& time = stall.seconds;
  const double share = whole > 0 ? std::max(0.0, time.value / whole) : 0;
  table.add({name, bar(share), fmt::format("{:.0f} %", 100 * share), milliseconds(std::max(0.0, time.value)),
             fmt::format("{:.3g} to {:.3g}", 1e3 * time.low, 1e3 * time.high),
             stall.certain()  ? remark
             : remark.empty() ? "none that can be told"
                              : remark + ", no certain stall"});
}

}  // namespace

std::string stall_text(const StallReport& report) {
  const Stalls& found = report.stalls;
  const double whole = found.step.value;
  std::string text =
      fmt::format("a step of {} x {} samples, data not cached: {}; {} rounds of {} steps in each condition\n",
                  report.devices, report.batch, milliseconds(whole), report.rounds, report.steps);
  Table table({"", "", ">share", ">time", "95 %, ms", ""});
  const double stalled = found.interconnect.seconds.value + found.prep.seconds.value + found.fetch.seconds.value;
  const double compute = std::max(0.0, whole - stalled);
  table.add(
      {"compute", bar(compute / whole), fmt::format("{:.0f} %", 100 * compute / whole), milliseconds(compute), "", ""});
  if (report.devices > 1) add_row(table, "interconnect", found.interconnect, whole, "");
  add_row(table, "prep", found.prep, whole, hidden_text(report.busy.prep_s, found.prep.seconds.value));
  add_row(table, "fetch", found.fetch, whole, hidden_text(report.busy.fetch_s, found.fetch.seconds.value));
  text += table.text();
  if (found.network)
    text +=
        fmt::format("on machines of their own the devices are {:.0f} % slower ({:.3g} to {:.3g} ms a step)\n",
                    100 * found.network->share, 1e3 * found.network->seconds.low, 1e3 * found.network->seconds.high);
  return text;
}

std::string what_if_text(const std::vector<WhatIf>& what_ifs) {
  Table table({"what if", ">samples/s", ">against now", "limited by"});
  const double now = what_ifs.empty() ? 0 : data_speed(what_ifs.front().path).speed;
  for (const WhatIf& one : what_ifs) {
    const DataSpeed speed = data_speed(one.path);
    table.add({one.text, fmt::format("{:.4g}", speed.speed), fmt::format("{:.2f}x", speed.speed / now),
               std::string(name(speed.bottleneck))});
  }
  return table.text();
}

Json what_if_json(const std::vector<WhatIf>& what_ifs) {
  Json list = Json::array();
  for (const WhatIf& one : what_ifs) {
    const DataSpeed speed = data_speed(one.path);
    list.push_back({{"what_if", one.text}, {"samples_per_s", speed.speed}, {"bottleneck", name(speed.bottleneck)}});
  }
  return list;
}

Json advice_json(const Advice& advice, const std::string& text) {
  Json json{{"text", text}, {"bottleneck", name(advice.now.bottleneck)}, {"samples_per_s", advice.now.speed}};
  if (advice.free_threads > 0) json["free"] = {{"prep_threads", advice.free_threads}, {"speedup", advice.free_gain}};
  if (advice.threads_enough) json["prep_threads_enough"] = *advice.threads_enough;
  if (advice.cache_enough) json["cache_enough"] = *advice.cache_enough;
  const auto fix_json = [](const Fix& fix) {
    return Json{{"type", fix.type},
                {"extra_usd_per_hour", fix.extra.value},
                {"speedup", fix.speedup},
                {"cost_ratio", fix.cost_ratio},
                {"then", name(fix.then)}};
  };
  if (advice.cheapest) json["cheapest"] = fix_json(*advice.cheapest);
  if (advice.fastest) json["fastest"] = fix_json(*advice.fastest);
  return json;
}

}  // namespace mayfly::cli
