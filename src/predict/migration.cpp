// Model: docs/models.md#migration
#include "predict/migration.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"

namespace mayfly {
namespace {

/// Listed outcomes of one re-partition beyond which its bounds are used; 2 x 16 losing 6 has 41,328.
constexpr std::size_t kMostOutcomes = 60'000;
/// Outcomes rarer than this are not followed; together they weigh less than kMostOutcomes times it.
constexpr double kNegligible = 1e-15;

}  // namespace

std::vector<int> stage_cuts(int layers, int stages) {
  const int each = (layers - 1) / stages;
  std::vector<int> sizes(static_cast<std::size_t>(stages), each);
  sizes[0] += 1;
  int over = (layers - 1) % stages;
  for (int stage = stages - 2; stage >= 0 && over > 0; --stage, --over) sizes[static_cast<std::size_t>(stage)] += 1;
  std::vector<int> cuts{0};
  for (const int size : sizes) cuts.push_back(cuts.back() + size);
  return cuts;
}

// Tables point at their costs, so a move leaves them behind; they are filled again when asked for.
MigrationCosts::MigrationCosts(MigrationCosts&& other) noexcept
    : shapes_(std::move(other.shapes_)),
      options_(other.options_),
      constant_(other.constant_),
      layer_ends_(std::move(other.layer_ends_)),
      cuts_(std::move(other.cuts_)),
      transfers_(std::move(other.transfers_)),
      builds_(std::move(other.builds_)),
      restart_(std::move(other.restart_)),
      checkpoint_(other.checkpoint_),
      error_(other.error_) {}

Result<MigrationCosts> MigrationCosts::make(const Profile& profile, const Shapes& shapes, MigrationOptions options) {
  if (!profile.pipeline) return fail("profile {} has no pipeline section", profile.name);
  const PipelineProfile& pipeline = *profile.pipeline;
  if (!pipeline.restart) return fail("profile {}: no pipeline.restart, so a change of shape has no cost", profile.name);
  if (pipeline.layers.empty() || pipeline.transfers.empty())
    return fail("profile {}: pipeline.layers and pipeline.transfers are needed for the cost of a change", profile.name);
  MigrationCosts costs(shapes);
  costs.options_ = options;
  costs.transfers_ = pipeline.transfers;
  costs.restart_ = *pipeline.restart;
  costs.checkpoint_ = pipeline.restart->checkpoint.count();
  costs.layer_ends_.push_back(0);
  for (const LayerRun& run : pipeline.layers) {
    for (int i = 0; i < run.count; ++i)
      costs.layer_ends_.push_back(costs.layer_ends_.back() + run.parameters * pipeline.bytes_per_parameter);
  }
  for (const BuildTime& build : pipeline.builds) costs.builds_[build.stages] = build.time.count();
  const int layers = static_cast<int>(costs.layer_ends_.size()) - 1;
  for (const Shape& shape : shapes.all()) {
    if (shape.stages >= layers)
      return fail("profile {}: {} stages cannot share {} layers", profile.name, shape.stages, layers);
    if (!costs.builds_.contains(shape.stages))
      return fail("profile {}: pipeline.builds has no entry for {} stages", profile.name, shape.stages);
    costs.cuts_[shape.stages] = stage_cuts(layers, shape.stages);
  }
  return costs;
}

MigrationCosts MigrationCosts::constant(const Shapes& shapes, Seconds cost) {
  MigrationCosts costs(shapes);
  costs.constant_ = cost.count();
  return costs;
}

double MigrationCosts::send(double bytes) const {
  const TransferPoint& last = transfers_.back();
  if (bytes <= transfers_.front().size.value) return transfers_.front().time.count();
  if (bytes >= last.size.value) return last.time.count() * bytes / last.size.value;
  const auto above = std::lower_bound(transfers_.begin(), transfers_.end(), bytes,
                                      [](const TransferPoint& point, double b) { return point.size.value < b; });
  const TransferPoint& a = *std::prev(above);
  const double share = (bytes - a.size.value) / (above->size.value - a.size.value);
  return a.time.count() + share * (above->time.count() - a.time.count());
}

double MigrationCosts::stage_bytes(int stages, int stage) const {
  const auto& cuts = cuts_.at(stages);
  const auto at = static_cast<std::size_t>(stage);
  return layer_ends_[static_cast<std::size_t>(cuts[at + 1])] - layer_ends_[static_cast<std::size_t>(cuts[at])];
}

double MigrationCosts::group(const Shape& shape, bool newcomers) const {
  const GroupCost& group = restart_.group;
  const Seconds each = newcomers ? group.join : group.leave;
  const int d = shape.data_parallel;
  const int p = shape.stages;
  if (group.per == "groups") return group.fixed.count() + (d + p + 1 + d * p) * each.count();
  if (group.per == "machines") return group.fixed.count() + d * p * each.count();
  double base = 0;
  for (const auto& [width, time] : group.from_width) {
    if (d >= width) base = time.count();
  }
  return group.fixed.count() + base * (newcomers ? group.join_factor : group.leave_factor);
}

double MigrationCosts::intra(const Shape& shape) const { return group(shape, false) + restart_.process.count(); }

Seconds MigrationCosts::restart(int shape, bool newcomers) const {
  if (constant_) return Seconds(*constant_);
  const Shape& to = shapes_[shape];
  const double joining = newcomers ? (restart_.rendezvous + restart_.join_extra).count() : 0;
  return Seconds(joining + group(to, newcomers) + restart_.process.count() + builds_.at(to.stages));
}

Seconds MigrationCosts::regroup(int shape) const {
  if (constant_) return Seconds(*constant_);
  return Seconds(intra(shapes_[shape]) + broadcast(shapes_[shape]));
}

Seconds MigrationCosts::whole_state(int shape) const {
  if (constant_) return Seconds(0);
  double sum = 0;
  const int stages = shapes_[shape].stages;
  for (int stage = 0; stage < stages; ++stage) sum += stage_time(stages, stage);
  return Seconds(sum);
}

double MigrationCosts::broadcast(const Shape& to) const {
  if (to.data_parallel <= 1) return 0;
  double slowest = 0;
  for (int stage = 0; stage < to.stages; ++stage) slowest = std::max(slowest, stage_time(to.stages, stage));
  return slowest;
}

bool MigrationCosts::newcomers(int machines, const Shape& from, int lost, const Shape& to) const {
  // Cold spares are strangers, and every loss is charged to the grid, as in Parcae's table.
  return to.machines() > (options_.spares == Spares::warm ? machines : from.machines()) - lost;
}

/// The time to send each short stage's state once (they do so side by side), or to bring the stages of which no copy is
/// left from the backup one after the other, whichever is longer. The last stage shares its machine with the backup, so
/// a single copy of it counts as none.
const MigrationCosts::SameDepth& MigrationCosts::same_depth(int from, int to, int hit) const {
  const auto [entry, fresh] = same_depth_.try_emplace({from, to, hit});
  if (!fresh) return entry->second;
  const Shape& old_shape = shapes_[from];
  const Shape& new_shape = shapes_[to];
  const int width = old_shape.data_parallel;
  const int wanted = new_shape.data_parallel;
  struct State {
    int left;       // losses for the stages to come
    double most;    // slowest single transfer
    double backup;  // time for what only the backup has
    bool short_of;  // some stage needs machines
    auto operator<=>(const State&) const = default;
  };
  // Stage by stage, with equal states made one: sets of victims are too many to list.
  std::map<State, double> states{{{hit, 0, 0, false}, 1.0}};
  int rest = old_shape.machines();
  for (int stage = 0; stage < old_shape.stages; ++stage, rest -= width) {
    const double time = stage_time(old_shape.stages, stage);
    const bool last = stage == old_shape.stages - 1;
    std::map<State, double> next;
    for (const auto& [state, probability] : states) {
      for (int gone = 0; gone <= std::min(width, state.left); ++gone) {
        const double p = probability * hit_probability(rest, width, state.left, gone);
        if (p < kNegligible) continue;
        State after{state.left - gone, state.most, state.backup, state.short_of};
        const int need = std::max(0, wanted - (width - gone));
        if (need > 0) {
          after.short_of = true;
          after.most = std::max(after.most, time);
          if (need == wanted || (last && need == wanted - 1)) after.backup += time;
        }
        next[after] += p;
      }
    }
    states = std::move(next);
  }
  SameDepth& mean = entry->second;
  for (const auto& [state, probability] : states) {
    if (state.short_of) {
      mean.transfer += probability * std::max(state.most, state.backup);
    } else {
      mean.intra += probability;
    }
  }
  return mean;
}

const std::vector<double>& MigrationCosts::lacking(int old_stages, int new_stages) const {
  const auto [entry, fresh] = lacking_.try_emplace({old_stages, new_stages});
  if (!fresh) return entry->second;
  const auto& old_cuts = cuts_.at(old_stages);
  const auto& new_cuts = cuts_.at(new_stages);
  for (std::size_t stage = 0; stage + 1 < new_cuts.size(); ++stage) {
    for (std::size_t old = 0; old + 1 < old_cuts.size(); ++old) {
      const int first = std::max(new_cuts[stage], old_cuts[old]);
      const int end = std::max(first, std::min(new_cuts[stage + 1], old_cuts[old + 1]));
      const double shared = layer_ends_[static_cast<std::size_t>(end)] - layer_ends_[static_cast<std::size_t>(first)];
      entry->second.push_back(stage_bytes(new_stages, static_cast<int>(stage)) - shared);
    }
  }
  return entry->second;
}

/// New stages choose in order among the survivors the one that lacks least of what they need. Uses the survivors up.
double MigrationCosts::missing_time(int old_stages, std::vector<int>& survivors, int new_stages) const {
  const double* lacks = lacking(old_stages, new_stages).data();
  double missing = 0;
  for (int stage = 0; stage < new_stages; ++stage, lacks += old_stages) {
    double least = INFINITY;
    int best = -1;
    for (int old = 0; old < old_stages; ++old) {
      const int here = survivors[static_cast<std::size_t>(old)];
      if (here == 0) continue;
      // Machines are numbered pipeline by pipeline, so the lowest number is in the stage with most machines left.
      if (lacks[old] < least || (lacks[old] == least && here > survivors[static_cast<std::size_t>(best)])) {
        least = lacks[old];
        best = old;
      }
    }
    if (best >= 0) {
      --survivors[static_cast<std::size_t>(best)];
      missing = options_.last_stage_only ? least : missing + least;
    } else if (!options_.last_stage_only) {
      missing += stage_bytes(new_stages, stage);
    }
  }
  return send(missing);
}

std::pair<double, double> MigrationCosts::missing_bounds(int old_stages, int new_stages, int survivors) const {
  const double* lacks = lacking(old_stages, new_stages).data();
  double least = INFINITY;  // of the stages that may be the last to find a machine
  double most = 0;
  double sum = 0;
  for (int stage = 0; stage < new_stages; ++stage, lacks += old_stages) {
    const double fewest = *std::min_element(lacks, lacks + old_stages);
    sum += fewest;
    if (stage < new_stages - 1 && survivors >= new_stages) continue;
    least = std::min(least, fewest);
    most = std::max(most, stage_bytes(new_stages, stage));
  }
  if (options_.last_stage_only) return {send(least), send(most)};
  return {send(sum), send(layer_ends_.back())};
}

const MigrationCosts::Outcomes& MigrationCosts::outcomes(int from, int hit, int enough) const {
  if (listed_from_ != from) listed_.clear();
  listed_from_ = from;
  const auto [entry, fresh] = listed_.try_emplace({hit, enough});
  Outcomes& list = entry->second;
  if (!fresh) return list;
  const int width = shapes_[from].data_parallel;
  std::vector<int> survivors;
  std::function<void(int, const std::vector<double>&)> follow = [&](int rest, const std::vector<double>& left) {
    if (list.too_many) return;
    if (rest == 0) {
      list.probabilities.push_back(left[0]);
      list.survivors.insert(list.survivors.end(), survivors.begin(), survivors.end());
      list.too_many = list.probabilities.size() > kMostOutcomes;
      return;
    }
    for (int kept = 0; kept <= enough; ++kept) {
      const int least_gone = kept == enough ? 0 : width - kept;  // `enough` stands for that many or more
      std::vector<double> next(left.size(), 0);
      double weight = 0;
      for (std::size_t l = 0; l < left.size(); ++l) {
        if (left[l] == 0) continue;
        for (int gone = least_gone; gone <= std::min(width - kept, static_cast<int>(l)); ++gone) {
          const double p = left[l] * hit_probability(rest, width, static_cast<int>(l), gone);
          next[l - static_cast<std::size_t>(gone)] += p;
          weight += p;
        }
      }
      if (weight < kNegligible) continue;
      survivors.push_back(kept);
      follow(rest - width, next);
      survivors.pop_back();
    }
  };
  std::vector<double> all(static_cast<std::size_t>(hit) + 1, 0);
  all[static_cast<std::size_t>(hit)] = 1;
  follow(shapes_[from].machines(), all);
  return list;
}

double MigrationCosts::expected_missing_time(int from, int stages, int hit) const {
  const auto [entry, fresh] = missing_.try_emplace({from, stages, hit}, 0.0);
  if (!fresh) return entry->second;
  const Shape& old_shape = shapes_[from];
  // New stages take one machine each, `stages` in all, so survivors beyond that many of one stage are alike.
  const Outcomes& list = outcomes(from, hit, std::min(old_shape.data_parallel, stages));
  if (list.too_many) {
    const auto [low, high] = missing_bounds(old_shape.stages, stages, old_shape.machines() - hit);
    error_ = std::max(error_, (high - low) / 2);
    return entry->second = (low + high) / 2;
  }
  double sum = 0;
  std::vector<int> survivors(static_cast<std::size_t>(old_shape.stages));
  auto next = list.survivors.begin();
  for (const double probability : list.probabilities) {
    for (int& here : survivors) here = *next++;
    sum += probability * missing_time(old_shape.stages, survivors, stages);
  }
  return entry->second = sum;
}

double MigrationCosts::change(int machines, int from, int lost, int to) const {
  if (from == to && lost == 0) return 0;
  const Shape& new_shape = shapes_[to];
  if (from == shapes_.size()) {
    if (constant_) return *constant_;
    return send(0) + broadcast(new_shape) + restart(to, true).count();
  }
  const Shape& old_shape = shapes_[from];
  if (constant_) {
    // Where only spares were lost, training goes on as it is.
    const double untouched = from == to ? hit_probability(machines, old_shape.machines(), lost, 0) : 0;
    return (1 - untouched) * *constant_;
  }
  const double rebuild = restart(to, newcomers(machines, old_shape, lost, new_shape)).count();
  if (old_shape.extra > 0 || new_shape.extra > 0) {
    // Layers move between pipelines of different depths: as dear as a re-partition in which every new stage lacks all.
    double largest = 0;
    for (int stage = 0; stage < new_shape.stages; ++stage)
      largest = std::max(largest, stage_time(new_shape.stages, stage));
    return largest + broadcast(new_shape) + rebuild;
  }
  const bool same = old_shape.stages == new_shape.stages;
  double cost = same ? 0 : broadcast(new_shape) + rebuild;
  for (int hit = 0; hit <= std::min(lost, old_shape.machines()); ++hit) {
    const double p = hit_probability(machines, old_shape.machines(), lost, hit);
    if (p == 0) continue;
    if (same) {
      const SameDepth& mean = same_depth(from, to, hit);
      cost += p * (mean.intra * intra(new_shape) + mean.transfer + (1 - mean.intra) * rebuild);
    } else {
      cost += p * expected_missing_time(from, new_shape.stages, hit);
    }
  }
  return cost;
}

MigrationCosts::Table::Table(const MigrationCosts& costs, int machines, int lost)
    : costs_(&costs),
      machines_(machines),
      lost_(lost),
      size_(costs.shapes_.size()),
      entries_((static_cast<std::size_t>(size_) + 1) * static_cast<std::size_t>(size_),
               std::numeric_limits<double>::quiet_NaN()) {}

const MigrationCosts::Table& MigrationCosts::table(int machines, int lost) const {
  auto& table = tables_[{machines, lost}];
  if (!table) table.reset(new Table(*this, machines, lost));
  return *table;
}

Seconds MigrationCosts::expected(int machines, std::optional<int> from, int lost, int to) const {
  const int row = from.value_or(shapes_.size());
  MAYFLY_CHECK(!from || shapes_[*from].machines() <= machines, "a shape needs its machines");
  return Seconds(table(machines, lost)(row, to));
}

Seconds MigrationCosts::outcome(int machines, int from, int lost, const std::vector<int>& lost_by_stage, int to) const {
  if (from == to && lost == 0) return Seconds(0);
  if (constant_) {
    const bool untouched = std::all_of(lost_by_stage.begin(), lost_by_stage.end(), [](int gone) { return gone == 0; });
    return Seconds(from == to && untouched ? 0 : *constant_);
  }
  const Shape& old_shape = shapes_[from];
  const Shape& new_shape = shapes_[to];
  const double rebuild = restart(to, newcomers(machines, old_shape, lost, new_shape)).count();
  if (old_shape.stages != new_shape.stages) {
    std::vector<int> survivors;
    for (const int gone : lost_by_stage) survivors.push_back(old_shape.data_parallel - gone);
    return Seconds(missing_time(old_shape.stages, survivors, new_shape.stages) + broadcast(new_shape) + rebuild);
  }
  double most = 0;
  double backup = 0;
  for (int stage = 0; stage < old_shape.stages; ++stage) {
    const int kept = old_shape.data_parallel - lost_by_stage[static_cast<std::size_t>(stage)];
    const int need = new_shape.data_parallel - kept;
    if (need <= 0) continue;
    const double time = stage_time(old_shape.stages, stage);
    most = std::max(most, time);
    if (kept == 0 || (stage == old_shape.stages - 1 && kept <= 1)) backup += time;
  }
  return Seconds(most == 0 ? intra(new_shape) : std::max(most, backup) + rebuild);
}

}  // namespace mayfly
