#include "predict/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace mayfly {
namespace {

std::optional<double> device_ratio(const InstanceType& now, const InstanceType& other) {
  if (now.gpu.has_value() != other.gpu.has_value()) return std::nullopt;
  if (!now.gpu) return now.vcpus > 0 ? std::optional(other.vcpus / now.vcpus) : std::nullopt;
  const double count = static_cast<double>(other.gpu_count) / std::max(1, now.gpu_count);
  if (now.gpu->model == other.gpu->model) return count;
  if (!now.gpu->tflops_fp32 || !other.gpu->tflops_fp32) return std::nullopt;
  return count * *other.gpu->tflops_fp32 / *now.gpu->tflops_fp32;
}

double gain(const DataPath& path, double now) { return data_speed(path).speed / now; }

Relief relief(const DataPath& path, double now) {
  Relief found;
  DataPath other = path;
  other.device *= 2;
  other.device_core_s /= 2;
  found.device = gain(other, now);
  other = path;
  other.threads *= 2;
  other.cores *= 2;
  found.threads = gain(other, now);
  other = path;
  other.storage = other.storage * 2;
  found.storage = gain(other, now);
  other = path;
  other.cached = std::min(1.0, 2 * path.cached);
  found.cache = gain(other, now);
  return found;
}

std::vector<Fix> fixes(const DataPath& path, const Catalog& catalog, const InstanceType& now, Market market) {
  std::vector<Fix> found;
  const double speed = data_speed(path).speed;
  const double price = now.price(market)->rate.value;
  for (const InstanceType& other : catalog.types) {
    if (other.name == now.name || other.cloud != now.cloud || !other.price(market) || !other.retired.empty()) continue;
    const auto there = path_on(path, now, other);
    if (!there) continue;
    const DataSpeed then = data_speed(*there);
    Fix fix{.type = other.name,
            .price = other.price(market)->rate,
            .extra = other.price(market)->rate - now.price(market)->rate,
            .speedup = then.speed / speed,
            .more_vcpus = other.vcpus - now.vcpus,
            .same_gpu = !now.gpu || (now.gpu->model == other.gpu->model && now.gpu_count == other.gpu_count),
            .then = then.bottleneck};
    fix.cost_ratio = fix.price.value / price / fix.speedup;
    if (fix.speedup >= kWorthwhile) found.push_back(fix);
  }
  return found;
}

std::string_view bound(Part part) {
  if (part == Part::interconnect) return "interconnect-bound";
  return part == Part::prep ? "prep-bound" : part == Part::fetch ? "fetch-bound" : "device-bound";
}

/// What a machine has more of.
std::string change_text(const Fix& fix, const std::string& now) {
  std::string more = fix.same_gpu ? "another machine" : "another device";
  if (fix.more_vcpus > 0)
    more = fmt::format("{:g} more vCPUs{}", fix.more_vcpus, fix.same_gpu ? "" : " and another device");
  more += fmt::format(" per machine ({} instead of {}", fix.type, now);
  return fmt::format("{}, {}${:.2f}/h): {:.2g}x as fast, {:.0f} % of the money per sample", more,
                     fix.extra.value < 0 ? "-" : "+", std::abs(fix.extra.value), fix.speedup, 100 * fix.cost_ratio);
}

std::string useless_text(const Relief& twice) {
  std::vector<std::string> useless;
  if (twice.device < kWorthwhile) useless.emplace_back("a faster device");
  if (twice.threads < kWorthwhile) useless.emplace_back("more vCPUs");
  if (twice.storage < kWorthwhile) useless.emplace_back("faster storage");
  if (useless.empty()) return "";
  std::string text = useless.front();
  for (std::size_t i = 1; i < useless.size(); ++i) text += (i + 1 < useless.size() ? ", " : " or ") + useless[i];
  return fmt::format("{} would not help", text);
}

std::string wanted_text(const Advice& advice) {
  if (advice.now.bottleneck == Part::prep && advice.threads_enough && advice.twice.threads >= kWorthwhile)
    return fmt::format("{:.0f} prep threads would keep up ({:.2g}x as fast with twice as many)",
                       std::ceil(*advice.threads_enough - 1e-9), advice.twice.threads);
  if (advice.now.bottleneck == Part::fetch && advice.cache_enough)
    return fmt::format(
        "a cache of {:.0f} % of the data set would keep up, and storage twice as fast makes it {:.2g}x as fast",
        std::ceil(100 * *advice.cache_enough - 1e-9), advice.twice.storage);
  if (advice.now.bottleneck == Part::fetch)
    return fmt::format("storage twice as fast makes it {:.2g}x as fast", advice.twice.storage);
  if (advice.now.bottleneck == Part::interconnect)
    return "devices wait for each other more than they compute: larger batches or a faster link between them";
  if (advice.now.bottleneck == Part::compute)
    return fmt::format("a device twice as fast makes it {:.2g}x as fast", advice.twice.device);
  return "the cores are all taken: more of them are needed";
}

}  // namespace

std::optional<DataPath> path_on(const DataPath& path, const InstanceType& now, const InstanceType& other) {
  const auto device = device_ratio(now, other);
  if (!device || now.vcpus <= 0 || other.vcpus <= 0) return std::nullopt;
  DataPath there = path;
  there.device *= *device;
  there.threads *= other.vcpus / now.vcpus;
  there.cores *= other.vcpus / now.vcpus;
  if (now.memory_gib > 0) there.cached = std::min(1.0, path.cached * other.memory_gib / now.memory_gib);
  return there;
}

Advice advice(const DataPath& path, const Catalog& catalog, const InstanceType* now, Market market) {
  Advice found{.now = data_speed(path)};
  found.twice = relief(path, found.now.speed);
  found.threads_enough = enough_threads(path);
  found.cache_enough = enough_cache(path);
  found.threads = path.threads;
  DataPath best = path;
  if (path.prep > 0 && path.cores > path.threads) {
    best.threads = path.cores;
    found.free_gain = gain(best, found.now.speed);
    if (found.free_gain >= kWorthwhile) found.free_threads = best.threads;
  }
  if (now == nullptr || !now->price(market)) return found;
  auto all = fixes(best, catalog, *now, market);
  if (all.empty()) return found;
  std::stable_sort(all.begin(), all.end(), [](const Fix& a, const Fix& b) { return a.speedup > b.speedup; });
  const Fix fastest = all.front();
  std::stable_sort(all.begin(), all.end(), [](const Fix& a, const Fix& b) {
    return a.cost_ratio != b.cost_ratio ? a.cost_ratio < b.cost_ratio : a.price < b.price;
  });
  found.cheapest = all.front();
  if (fastest.type != found.cheapest->type) found.fastest = fastest;
  return found;
}

std::string advice_text(const Advice& advice, const std::string& now) {
  std::string text = fmt::format("{}: ", bound(advice.now.bottleneck));
  if (advice.free_threads > 0)
    text += fmt::format("prep_threads: {:g} instead of {:g} make it {:.2g}x as fast for nothing", advice.free_threads,
                        advice.threads, advice.free_gain);
  else if (!advice.cheapest)
    text += wanted_text(advice);
  if (advice.cheapest) text += (advice.free_threads > 0 ? "; then " : "") + change_text(*advice.cheapest, now);
  if (const auto useless = useless_text(advice.twice); !useless.empty()) text += "; " + useless;
  return text + ".";
}

}  // namespace mayfly
