#include "plan/room.h"

#include <algorithm>
#include <cmath>

#include "base/how_many.h"

namespace mayfly {
namespace {

/// Of a shared step: no cluster has more machines to share it.
constexpr double kLeastPart = 1.0 / 256;
/// Below it nobody would rent a machine to try.
constexpr double kLeastChance = 0.5;

/// Samples that a machine of this type gets in a step.
std::optional<double> share_of_type(const Problem& problem, const Candidate& candidate, const std::string& type) {
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    const auto& ladder = problem.kinds[k].ladder;
    const bool offers = std::any_of(ladder.begin(), ladder.end(), [&](const Offer& o) { return o.type == type; });
    if (offers && candidate.counts[k] > 0) return share_of_step(problem, candidate.counts, k);
  }
  return {};
}

}  // namespace

bool Room::shares() const {
  return profile_.batch && !profile_.scale_batch &&
         (profile_.sync == Sync::bsp || profile_.exchange == Exchange::all_reduce);
}

bool Room::has_room(const InstanceType& type, double batch) const {
  const auto fit = memory_fit(profile_, catalog_, type, batch);
  if (!fit || fit->fits == Fits::yes) return true;
  return fit->fits == Fits::unsure && (fit->need.basis == MemoryBasis::state_alone || fit->chance >= kLeastChance);
}

bool Room::lacks(const InstanceType& type, const Worker& worker) {
  const double least = shares() ? kLeastPart * step(worker) : worker.batch;
  if (has_room(type, least)) return false;
  // What it was measured with says more to a person than the least share there could be.
  const double batch = has_room(type, worker.batch) ? least : worker.batch;
  const auto fit = memory_fit(profile_, catalog_, type, batch);
  ++count_;
  if (largest_ != nullptr && largest_->gpu->memory_gib >= type.gpu->memory_gib) return true;
  largest_ = &type;
  need_ = fit->fits == Fits::no ? fit->need.low : fit->need.peak;
  batch_ = batch;
  return true;
}

double Room::most_share(const InstanceType& type, const Worker& worker) const {
  constexpr double kAny = 1e300;
  double high = step(worker);
  if (!shares() || has_room(type, high)) return kAny;
  double low = kLeastPart * high;
  while (high > 1.01 * low) {
    const double middle = std::sqrt(low * high);
    (has_room(type, middle) ? low : high) = middle;
  }
  return low;
}

std::string Room::text() const {
  const std::string ways = what_would_fit(profile_, catalog_, *largest_, batch_);
  return fmt::format(
      "{} left out for memory: the job needs some {:.1f} GB of each GPU, the largest of them has {:.1f} ({}){}",
      how_many(count_, "type"), need_, memory_there(largest_->gpu->memory_gib), largest_->gpu->model,
      ways.empty() ? "" : "; there it would fit with " + ways + ", which mayfly run does not do yet");
}

Strain strain_of(const PlanOption& option, const Problem& problem, const Candidate& candidate, const Catalog& catalog,
                 const Speed& speed) {
  const Profile& profile = *problem.profile;
  Strain strain;
  double peak = 0;
  for (const PlanLine& line : option.cluster) {
    const InstanceType* type = catalog.find(line.type);
    const auto worker = type == nullptr ? Result<Worker>(fail("")) : make_worker(profile, *type, catalog);
    if (!worker) continue;
    const double batch = share_of_type(problem, candidate, line.type).value_or(worker->batch);
    const auto fit = memory_fit(profile, catalog, *type, batch);
    if (fit && (!strain.memory || fit->chance < strain.memory->chance)) strain.memory = fit;
    peak += line.count * machine_peak(profile, *type).value_or(0);
  }
  const auto work = profile.recipe.work();
  if (work && peak > 0) strain.peak_share = *work * speed.samples_per_s / peak;
  return strain;
}

}  // namespace mayfly
