#pragma once

#include <optional>
#include <string_view>

#include "job/recipe.h"

// Several machines that reduce gradients around a ring: docs/models.md#fabric. Seconds and bytes.
namespace mayfly {

struct InstanceType;

/// How long machines of one kind are at it.
struct RingLinks {
  double once = 0;         ///< s, the gradients once at the rate a ring reaches; infinite where no network is known
  double hideable = 1;     ///< share of the traffic that may hide behind the step
  double hides = 0;        ///< share of the step behind which it may
  double spread = 0;       ///< of the step, lost with each doubling of the machines
  double relative_sd = 0;  ///< of the step's logarithm on several machines, and
  double sd_growth = 0;    ///< what each doubling adds to it
  bool operator==(const RingLinks&) const = default;
};

/// What the job brings along.
struct RingJob {
  double gradient_bytes = 0;
  bool uneven = false;  ///< samples differ in size, and the slowest machine decides
  Shard shard = Shard::none;
  std::optional<double>
      measured_rate{};  ///< B/s between machines as measured, instead of what the catalogue lets expect
};

/// Fitted to published runs on one machine and on several; the defaults are what ships.
struct RingFit {
  double fast_share = 0.35;     ///< of all adapters' rate, with InfiniBand or EFA
  double roce_share = 0.3;      ///< the same over RoCE
  double ethernet_share = 0.6;  ///< and over Ethernet, by TCP
  double spread = 0.010;
  double uneven_spread = 0.050;
  double fixed = 0.002;  ///< s of a step that do not shrink with its samples, at most 0.45 of the step
  double power = 0.93;   ///< of the samples, by which the rest of the step shrinks
};

/// By the machine's fabric, else its Ethernet; by what such GPUs are built with where neither is known of a machine of
/// eight (of GB200 four), with a wider band.
RingLinks ring_links(const InstanceType& type, const RingJob& job, const RingFit& fit = {});
/// What that rests on: "measured", the fabric's name, "usual" for such GPUs, or "unknown".
std::string_view ring_link_name(const InstanceType& type, const RingJob& job);
/// Of each figure the one that takes longer, or less long: bounds for machines of both kinds.
RingLinks slower_links(const RingLinks& a, const RingLinks& b);
RingLinks faster_links(const RingLinks& a, const RingLinks& b);

/// Busy with traffic in each step, hidden or not. Nothing on one machine.
double ring_traffic(const RingLinks& links, int machines);
/// Share by which waiting for each other lengthens a step.
double ring_stretch(const RingLinks& links, int machines);
/// What a step takes longer on so many machines than on one that needs `alone` for it with the same samples each.
double time_among_machines(double alone, int machines, const RingLinks& links);
/// Of the logarithm of such a step; 0 on one machine.
double ring_sd(const RingLinks& links, int machines);

/// A step of `alone` with `ratio` times the samples for each GPU.
double time_with_samples(double alone, double ratio, const RingFit& fit = {});

}  // namespace mayfly
