// Model: docs/models.md#bill
#include "plan/freight.h"

#include <algorithm>

#include "predict/memory.h"

namespace mayfly {
namespace {

Site site_of(const StoredSpec& stored) { return {.cloud = stored.cloud, .region = stored.region}; }

Optimiser optimiser_of(const OptimiserSpec& spec) {
  if (spec.kind != OptimiserSpec::Kind::sgd) return Optimiser::adam;
  return spec.momentum > 0 ? Optimiser::momentum : Optimiser::sgd;
}

Freight::Stored data_of(const Profile& profile, const CostsSpec& costs) {
  Freight::Stored data{.at = site_of(costs.data)};
  if (costs.data.size) {
    data.size = costs.data.size;
    data.source = "the job file";
  } else if (profile.dataset_size) {
    data.size = profile.dataset_size;
    data.basis = profile.origin.basis;
    data.source = "the profile";
  } else if (profile.samples && profile.loader.sample_bytes) {
    data.size = Bytes{profile.samples->value * *profile.loader.sample_bytes};
    data.basis = profile.loader.basis.value_or(Basis::given);
    data.source = "the profile's samples";
  }
  return data;
}

Freight::Stored checkpoint_of(Profile profile, const JobSpec& job, const CostsSpec& costs) {
  Freight::Stored checkpoint{.at = site_of(costs.checkpoints)};
  if (costs.checkpoints.size) {
    checkpoint.size = costs.checkpoints.size;
    checkpoint.source = "the job file";
  } else if (profile.checkpoint) {
    checkpoint.size = megabytes(profile.checkpoint->data_mb + profile.checkpoint->graph_mb);
    checkpoint.basis = profile.checkpoint->write ? Basis::measured : profile.origin.basis;
    checkpoint.source = "the profile";
  } else {
    const bool script = job.train && job.train->model.is_script();
    if (job.train && !script && !profile.recipe.optimiser)
      profile.recipe.optimiser = optimiser_of(job.train->optimiser);
    checkpoint.size = checkpoint_size(profile);
    checkpoint.basis = Basis::scaled;
    checkpoint.source = profile.recipe.optimiser ? "parameters and optimiser" : "parameters alone, the least there is";
  }
  return checkpoint;
}

}  // namespace

std::optional<Bytes> checkpoint_size(const Profile& profile) {
  Recipe recipe = profile.recipe;
  const double gradient = recipe.weights == Weights::fp32 ? 4 : 2;  // bytes a parameter
  if (!recipe.parameters && profile.parameters) recipe.parameters = profile.parameters->value / gradient;
  if (!recipe.parameters) return {};
  if (recipe.optimiser == Optimiser::adam_paged) recipe.optimiser = Optimiser::adam;  // what is paged out is saved too
  return Bytes{state_memory(recipe, 1) * 1e9 - gradient * *recipe.parameters};
}

Freight freight_of(const Profile& profile, const JobSpec& job) {
  const CostsSpec costs = job.costs.value_or(CostsSpec{});
  Freight freight{.data = data_of(profile, costs),
                  .checkpoint = checkpoint_of(profile, job, costs),
                  .load = costs.load,
                  .every = costs.every,
                  .image = costs.image,
                  .setup = costs.setup};
  if (job.train) {
    if (!freight.every) freight.every = job.train->checkpoint.every;
    freight.keep = job.train->checkpoint.keep;
  }
  freight.keep = costs.keep.value_or(freight.keep);
  if (profile.start) freight.process = profile.start->process - profile.start->load + profile.start->join;
  return freight;
}

std::optional<BytesPerSecond> network_of(const Profile& profile, const InstanceType& type) {
  const auto known = profile.types.find(type.name);
  if (known != profile.types.end() && known->second.network) return known->second.network;
  return type.usable_network();
}

Prelude prelude(const Freight& freight, std::optional<BytesPerSecond> network, int machines,
                std::optional<Seconds> boot) {
  Prelude all;
  if (boot) {
    all.start += *boot;
  } else {
    all.unknown.emplace_back("how long machines boot");
  }
  all.start += freight.setup.value_or(Seconds(0)) + freight.process.value_or(Seconds(0));
  const bool moves = freight.load != Loading::stream && freight.data.size.value_or(Bytes{1}).value > 0;
  all.assumes_network = !network && ((moves && freight.data.size) || freight.image);
  const BytesPerSecond rate = network.value_or(kLeastNetwork);
  if (freight.image) all.start += *freight.image / rate;
  if (!moves) return all;
  if (!freight.data.size) {
    all.unknown.emplace_back("the size of the data");
  } else {
    const double parts = freight.load == Loading::share ? std::max(1, machines) : 1;
    all.load = *freight.data.size / parts / rate;
  }
  return all;
}

Seconds before_training(const Freight& freight, const Profile& profile, const std::vector<const InstanceType*>& types,
                        int machines, std::optional<Seconds> boot) {
  Seconds longest{0};
  for (const InstanceType* type : types)
    longest = std::max(longest, prelude(freight, network_of(profile, *type), machines, boot).time());
  return longest;
}

}  // namespace mayfly
