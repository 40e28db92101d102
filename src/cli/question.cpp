#include "cli/question.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "cli/command.h"
#include "cloud/gpu_name.h"

namespace mayfly::cli {
namespace {

bool takes(const std::optional<Amount>& amount, double has) {
  return !amount || (amount->at_least ? has >= amount->value : has == amount->value);
}

bool takes(const Accelerator& accelerator, const InstanceType& type) {
  return type.gpu && is_gpu_called(type.gpu->model, accelerator.name) &&
         (!accelerator.count || *accelerator.count == type.gpu_count);
}

bool takes(const Resources& wanted, const InstanceType& type) {
  if (!wanted.cloud.empty() && wanted.cloud != type.cloud) return false;
  if (!wanted.region.empty() && wanted.region != type.region) return false;
  if (!wanted.instance_type.empty() && wanted.instance_type != type.name) return false;
  if (!takes(wanted.cpus, type.vcpus) || !takes(wanted.memory_gib, type.memory_gib)) return false;
  return wanted.accelerators.empty() || std::any_of(wanted.accelerators.begin(), wanted.accelerators.end(),
                                                    [&](const Accelerator& one) { return takes(one, type); });
}

bool takes(const Resources& wanted, const Offer& offer) {
  if (wanted.use_spot && *wanted.use_spot != (offer.market == Market::spot)) return false;
  if (!wanted.zone.empty() && wanted.zone != offer.zone) return false;
  return !wanted.most_hourly || offer.rate <= *wanted.most_hourly;
}

/// Where no type of the catalogue has this word, which stands under `key`.
template <class Has>
Result<void> expect_known(const Catalog& catalog, std::string_view key, const std::string& word, Has has,
                          const std::vector<std::string>& all) {
  if (word.empty() || std::any_of(catalog.types.begin(), catalog.types.end(), has)) return {};
  const std::string elsewhere = shipped_elsewhere(catalog, has);
  return fail("resources.{}: '{}' is not in catalogue '{}'{}", key, word, catalog.name,
              elsewhere.empty() ? did_you_mean(word, all) : elsewhere);
}

}  // namespace

Result<void> known_resources(const std::vector<Resources>& resources, const Catalog& catalog) {
  std::vector<std::string> clouds, regions, gpus;
  for (const InstanceType& type : catalog.types) {
    clouds.push_back(type.cloud);
    regions.push_back(type.region);
    if (type.gpu) gpus.push_back(type.gpu->model.substr(0, type.gpu->model.find('-')));
  }
  for (const Resources& one : resources) {
    const auto cloud = [&](const InstanceType& type) { return type.cloud == one.cloud; };
    const auto region = [&](const InstanceType& type) { return type.region == one.region; };
    const auto named = [&](const InstanceType& type) { return type.name == one.instance_type; };
    if (auto known = expect_known(catalog, "cloud", one.cloud, cloud, clouds); !known) return known;
    if (auto known = expect_known(catalog, "region", one.region, region, regions); !known) return known;
    if (auto known = expect_known(catalog, "instance_type", one.instance_type, named, catalog.type_names()); !known)
      return known;
    for (const Accelerator& wanted : one.accelerators) {
      const auto has = [&](const InstanceType& type) {
        return type.gpu && is_gpu_called(type.gpu->model, wanted.name);
      };
      if (auto known = expect_known(catalog, "accelerators", wanted.name, has, gpus); !known) return known;
    }
  }
  return {};
}

void apply_job(const JobSpec& job, const std::string& path, Question& question) {
  if (!job.profile.empty()) {
    const auto beside = std::filesystem::path(path).parent_path() / job.profile;
    std::error_code error;
    question.profile = std::filesystem::exists(beside, error) ? beside.string() : find_profile(job.profile).string();
  }
  question.resources = job.resources;
  if (job.train) question.train = job;
  question.job = job;
  PlanRequest& request = question.request;
  request.deadline = job.deadline;
  request.budget = job.budget;
  if (job.loss) request.target = ToLoss{*job.loss};
  if (job.epochs) request.target = ForEpochs{*job.epochs};
  if (job.steps) request.target = ForSteps{*job.steps};
  if (!job.quota.empty()) question.quota = job.quota;
  for (const Resources& one : job.resources) {
    if (!one.instance_type.empty()) request.named.insert(one.instance_type);
  }
  request.fewest_workers = job.least_workers.value_or(request.fewest_workers);
  request.most_workers = job.most_workers.value_or(request.most_workers);
  if (job.nodes && !job.least_workers && !job.most_workers) request.fewest_workers = request.most_workers = *job.nodes;
  std::vector<Resources> limits = job.resources;
  // Where all agree on a market, it is the request's, which the command line may change.
  const auto spot = limits.front().use_spot;
  if (std::all_of(limits.begin(), limits.end(), [&](const Resources& one) { return one.use_spot == spot; })) {
    if (spot) request.markets = {*spot ? Market::spot : Market::on_demand};
    for (Resources& one : limits) one.use_spot.reset();
  }
  request.wanted = [choices = limits](const InstanceType& type) {
    return std::any_of(choices.begin(), choices.end(), [&](const Resources& one) { return takes(one, type); });
  };
  request.wanted_offer = [choices = limits](const InstanceType& type, const Offer& offer) {
    return std::any_of(choices.begin(), choices.end(),
                       [&](const Resources& one) { return takes(one, type) && takes(one, offer); });
  };
  if (!job.unused.empty())
    question.notes.push_back(fmt::format("understood but without effect on the plan: {}", fmt::join(job.unused, ", ")));
}

}  // namespace mayfly::cli
