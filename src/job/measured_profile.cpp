#include "job/measured_profile.h"

#include <array>
#include <cmath>

namespace mayfly {

std::string_view name(Basis basis) {
  return basis == Basis::measured ? "measured" : basis == Basis::scaled ? "scaled" : "given";
}

Basis read_basis(Section& section, Basis fallback) {
  const auto text = section.maybe_text("basis");
  if (!text) return fallback;
  for (const Basis basis : {Basis::measured, Basis::scaled, Basis::given}) {
    if (name(basis) == *text) return basis;
  }
  section.reject("basis", fmt::format("'{}', want one of measured, scaled, given", *text));
  return fallback;
}

double largest_batch(const MemoryProfile& memory, double memory_mb) {
  const double samples = (memory_mb - memory.fixed_mb) / memory.mb_per_sample;
  return samples >= 1 ? std::exp2(std::floor(std::log2(samples))) : 0;
}

std::vector<BatchPoint> read_batches(Section& type) {
  std::vector<BatchPoint> points;
  for (auto& one : type.list("batches")) {
    BatchPoint point{.batch = one.number("batch", Range::positive),
                     .step = Seconds(one.number("step_s", Range::positive)),
                     .interval = Seconds(one.maybe_number("interval_s", Range::non_negative).value_or(0))};
    if (const auto compute = one.maybe_number("compute_s", Range::positive)) point.compute = Seconds(*compute);
    point.peak_mb = one.maybe_number("peak_mb", Range::positive);
    point.steps = one.maybe_integer("steps").value_or(0);
    one.finish();
    points.push_back(point);
  }
  return points;
}

MemoryProfile read_memory(Section section) {
  MemoryProfile memory{.fixed_mb = section.number("fixed_mb", Range::non_negative),
                       .mb_per_sample = section.number("mb_per_sample", Range::positive),
                       .residual_mb = section.maybe_number("residual_mb", Range::non_negative).value_or(0),
                       .device = section.maybe_text("device").value_or("host"),
                       .basis = read_basis(section, Basis::measured)};
  section.finish();
  return memory;
}

LayersProfile read_layers(Section section) {
  LayersProfile found{.batch = section.number("batch", Range::positive)};
  for (auto& one : section.list("list")) {
    found.layers.push_back({.name = one.text("name"),
                            .forward = Seconds(one.number("forward_s", Range::non_negative)),
                            .backward = Seconds(one.number("backward_s", Range::non_negative)),
                            .parameters = one.number("parameters", Range::non_negative),
                            .output_mb = one.number("output_mb", Range::non_negative)});
    one.finish();
  }
  section.finish();
  return found;
}

StartProfile read_start(Section section) {
  StartProfile start{.process = Seconds(section.number("process_s", Range::non_negative)),
                     .load = Seconds(section.number("load_s", Range::non_negative)),
                     .join = Seconds(section.number("join_s", Range::non_negative))};
  section.finish();
  return start;
}

LoaderProfile read_loader(Section section) {
  LoaderProfile loader{
      .prep_samples_per_s_per_vcpu = section.maybe_number("prep_samples_per_s_per_vcpu", Range::positive),
      .fetch_samples_per_s = section.maybe_number("fetch_samples_per_s", Range::positive),
      .sample_bytes = section.maybe_number("sample_bytes", Range::positive),
      .storage_mb_per_s = section.maybe_number("storage_mb_per_s", Range::positive),
      .memory_mb_per_s = section.maybe_number("memory_mb_per_s", Range::positive)};
  if (section.has("basis")) loader.basis = read_basis(section, Basis::measured);
  section.finish();
  return loader;
}

namespace {

StallProfile read_stall(Section section) {
  StallProfile stall{.time = Seconds(section.number("seconds")),
                     .low = Seconds(section.number("seconds_low")),
                     .high = Seconds(section.number("seconds_high")),
                     .share = section.number("share", Range::non_negative)};
  section.finish();
  return stall;
}

}  // namespace

StallsProfile read_stalls(Section section) {
  StallsProfile stalls{.devices = section.integer("devices"),
                       .batch = section.number("batch", Range::positive),
                       .step = Seconds(section.number("step_s", Range::positive)),
                       .interconnect = read_stall(section.section("interconnect")),
                       .prep = read_stall(section.section("prep")),
                       .fetch = read_stall(section.section("fetch"))};
  if (auto network = section.maybe_section("network")) stalls.network = read_stall(*network);
  section.finish();
  return stalls;
}

}  // namespace mayfly
