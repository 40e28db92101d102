#include "report/purse.h"

#include <algorithm>

namespace mayfly {
namespace {

/// USD from the machines' orders to the end, as searches count them.
double held(const std::vector<PlanLine>& lines, double time) {
  double hourly = 0;
  for (const PlanLine& line : lines) hourly += line.count * line.rate.value;
  return hourly * time / 3600;
}

}  // namespace

Purse::Purse(const Profile& profile, const JobSpec& job, const Catalog& catalog, Tariffs tariffs, Seconds boot)
    : profile_(&profile),
      catalog_(&catalog),
      freight_(freight_of(profile, job)),
      tariffs_(std::move(tariffs)),
      boot_(boot) {}

void Purse::charge(PlanRequest& request) const {
  // With what is to be shared among several machines, one alone waits longest: the promise errs on the long side.
  request.start = [this](const InstanceType& type) {
    return prelude(freight_, network_of(*profile_, type), 1, boot_).time();
  };
  request.beside = [this, running = request.existing](const PlanOption& option) { return beside(option, running); };
}

Usd Purse::beside(const PlanOption& option, const std::vector<MachineCount>& running) const {
  if (option.fleet) return {};
  auto still = running;
  const double workers = held(to_rent(option.cluster, still), option.time);
  const double servers = held(to_rent(option.servers, still), option.time);
  return Usd{std::max(0.0, bill_of(option, running).known().value - workers - servers)};
}

Bill Purse::bill_of(const PlanOption& option, const std::vector<MachineCount>& running) const {
  BillQuestion question{.workers = option.cluster,
                        .servers = option.servers,
                        .running = running,
                        .training = std::max(Seconds(0), Seconds(option.time - option.lead)),
                        .boot = boot_};
  if (profile_->samples) question.epochs = option.samples / profile_->samples->value;
  if (option.exchange == Meeting::ring && profile_->parameters)
    question.between_zones = ring_between_zones(option.cluster, *profile_->parameters, option.updates);
  return mayfly::bill_of(question, freight_, *profile_, *catalog_, tariffs_);
}

std::optional<Bill> Purse::bill(const PlanContext& context, const Plan& plan) const {
  if (plan.chosen.fleet || plan.chosen.cluster.empty()) return std::nullopt;
  Bill bill = bill_of(plan.chosen, context.request.existing);
  if (bill.compute.cost) {
    const double others = bill.known().value - bill.compute.cost->value;
    bill.compute.cost = Usd{std::max(0.0, plan.cost.middle - others)};
    if (plan.chosen.risk)
      bill.compute.notes.emplace_back("with the weather: machines lost are not paid while they are away");
  }
  return bill;
}

}  // namespace mayfly
