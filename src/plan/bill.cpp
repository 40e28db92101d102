// Model: docs/models.md#bill
#include "plan/bill.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "plan/planner.h"

namespace mayfly {
namespace {

constexpr Seconds kMonth{730 * 3600.0};

std::string words(const Site& site) {
  if (site.cloud.empty()) return "a place nobody has named";
  return site.region.empty() ? site.cloud : fmt::format("{}/{}", site.cloud, site.region);
}

/// A sum of which some may not be known.
class Sum {
 public:
  void add(std::string_view what, std::optional<Usd> cost, const std::string& why_not) {
    if (!cost) {
      missing_ = true;
      part_.notes.push_back(fmt::format("{}: not known: {}", what, why_not));
      return;
    }
    sum_ += *cost;
    if (cost->value > 0) part_.notes.push_back(fmt::format("{}: {:.4f} USD", what, cost->value));
  }
  void rests_on(const Freight::Stored& stored) {
    if (stored.basis != Basis::given) part_.basis = stored.basis;
  }
  BillPart part() && {
    if (!missing_ || sum_.value > 0) part_.cost = sum_;
    part_.whole = !missing_;
    return std::move(part_);
  }

 private:
  BillPart part_{};
  Usd sum_{};
  bool missing_ = false;
};

class Accountant {
 public:
  Accountant(const BillQuestion& question, const Freight& freight, const Profile& profile, const Catalog& catalog,
             const Tariffs& tariffs)
      : q_(question), freight_(freight), profile_(profile), catalog_(catalog), tariffs_(tariffs) {
    std::vector<MachineCount> running = q_.running;
    new_workers_ = to_rent(q_.workers, running);
    new_servers_ = to_rent(q_.servers, running);
    for (const PlanLine& line : q_.workers) workers_ += line.count;
    if (!q_.workers.empty()) {
      const InstanceType& type = type_of(q_.workers.front());
      site_ = {.cloud = type.cloud, .region = type.region};
    }
    tariff_ = tariffs.of(site_);
    for (const PlanLine& line : new_workers_) before_ = std::max(before_, prelude_of(line).time());
    for (const PlanLine& line : new_servers_) before_ = std::max(before_, prelude_of_server(line).time());
  }

  Bill bill() {
    Bill bill;
    machines(bill);
    bill.egress = egress();
    bill.storage = storage();
    return bill;
  }

 private:
  const InstanceType& type_of(const PlanLine& line) const {
    const InstanceType* type = catalog_.find(line.type);
    MAYFLY_CHECK(type != nullptr, "a plan's types are the catalogue's");
    return *type;
  }
  Prelude prelude_of(const PlanLine& line) const {
    return prelude(freight_, network_of(profile_, type_of(line)), workers_, q_.boot);
  }
  /// It gets the job, and no samples. A profile may name a type that is not in the catalogue.
  Prelude prelude_of_server(const PlanLine& line) const {
    Freight without = freight_;
    without.load = Loading::stream;
    const InstanceType* type = catalog_.find(line.type);
    return prelude(without, type == nullptr ? std::nullopt : network_of(profile_, *type), 1, q_.boot);
  }

  /// What is billed beyond the time a machine is held.
  Usd rounding(const PlanLine& line, Seconds held) const {
    if (!tariff_.machines) return {};
    return line.rate * (tariff_.machines->of(line.type, held) - held);
  }

  void machines(Bill& bill) {
    Usd compute{}, start{}, data{};
    std::set<std::string> unknown, unlinked;
    const auto add = [&](const PlanLine& line, const Prelude& own, double count) {
      const Seconds held = before_ + q_.training;
      compute += line.rate * q_.training * count;
      data += line.rate * own.load * count;
      start += (line.rate * (before_ - own.load) + rounding(line, held)) * count;
      unknown.insert(own.unknown.begin(), own.unknown.end());
      if (own.assumes_network) unlinked.insert(line.type);
    };
    for (const PlanLine& line : new_workers_) add(line, prelude_of(line), line.count);
    for (const PlanLine& line : new_servers_) add(line, prelude_of_server(line), line.count);
    replace(start, data);
    bill.compute.cost = compute;
    bill.start = {.cost = start, .basis = freight_.process ? Basis::measured : Basis::given};
    bill.data = {.cost = data, .basis = freight_.data.basis};
    if (freight_.data.size && data.value > 0) bill.data.notes.push_back(fmt::format("size: {}", freight_.data.source));
    for (const auto& what : unknown) {
      const bool of_data = what == "the size of the data";
      BillPart& part = of_data ? bill.data : bill.start;
      part.notes.push_back(fmt::format("not known: {}", what));
      miss(part);
    }
    if (!unlinked.empty()) {
      BillPart& part = data.value > 0 ? bill.data : bill.start;
      part.assumes = true;
      part.notes.push_back(
          fmt::format("assumed: {:g} Gbit/s, the least that a machine with GPUs has elsewhere, as nobody states the "
                      "network of {}",
                      kLeastNetwork.value * 8 / 1e9, fmt::join(unlinked, ", ")));
    }
    if (!tariff_.machines) bill.start.notes.push_back(fmt::format("what {} bills at least is not known", site_.cloud));
  }

  /// Some of it is not known.
  static void miss(BillPart& part) {
    part.whole = false;
    if (part.cost && part.cost->value == 0) part.cost.reset();
  }

  /// Those lost are of the spot market where there is one; which of them is not known, so by the mean price.
  void replace(Usd& start, Usd& data) const {
    const bool spot = std::any_of(q_.workers.begin(), q_.workers.end(),
                                  [](const PlanLine& line) { return line.market == Market::spot; });
    double count = 0;
    Usd boots{}, loads{};
    for (const PlanLine& line : q_.workers) {
      if (spot && line.market != Market::spot) continue;
      const Prelude own = prelude_of(line);
      count += line.count;
      boots += line.rate * own.start * line.count;
      loads += line.rate * own.load * line.count;
    }
    if (count == 0) return;
    start += boots * (q_.replacements / count);
    data += loads * (q_.replacements / count);
  }

  std::optional<Usd> transfer(const Site& from, const Site& to, std::optional<Bytes> size) const {
    const auto rate = tariffs_.transfer(from, to);
    if (!rate) return {};
    if (rate->rate.value == 0) return Usd{};
    if (!size) return {};
    const double months = std::max(1.0, std::ceil((before_ + q_.training) / kMonth));
    const double gb = gigabytes(tariffs_.of(from), *size) - rate->free_gb * months;
    return rate->rate * std::max(0.0, gb);
  }

  /// Of all samples, how often they travel.
  std::optional<double> times() const {
    switch (freight_.load) {
      case Loading::copy:
        return std::accumulate(new_workers_.begin(), new_workers_.end(), q_.replacements,
                               [](double sum, const PlanLine& line) { return sum + line.count; });
      case Loading::share:
        return (new_workers_.empty() ? 0 : 1) + q_.replacements / std::max(1, workers_);
      case Loading::stream:
        break;
    }
    return q_.epochs;
  }
  std::optional<double> checkpoints() const {
    if (!freight_.every) return {};
    return std::floor(q_.training / *freight_.every) + 1;
  }

  BillPart egress() const {
    Sum sum;
    const auto& data = freight_.data;
    const auto& checkpoint = freight_.checkpoint;
    const auto product = [](std::optional<Bytes> size, std::optional<double> count) {
      return size && count ? std::optional(*size * *count) : std::nullopt;
    };
    const auto why = [&](const Freight::Stored& stored, const Site& from, const Site& to, const char* count) {
      if (stored.at.cloud.empty()) return std::string("where it is");
      if (!tariffs_.transfer(from, to))
        return fmt::format("what a gigabyte from {} to {} costs", words(from), words(to));
      return std::string(stored.size ? count : "its size");
    };
    sum.add("data", transfer(data.at, site_, product(data.size, times())), why(data, data.at, site_, "the epochs"));
    sum.rests_on(data);
    sum.add("checkpoints", transfer(site_, checkpoint.at, product(checkpoint.size, checkpoints())),
            why(checkpoint, site_, checkpoint.at, "how often they are written"));
    sum.rests_on(checkpoint);
    add_zones(sum);
    return std::move(sum).part();
  }

  void add_zones(Sum& sum) const {
    std::set<std::string> zones;
    for (const PlanLine& line : q_.workers) zones.insert(line.zone);
    if (zones.size() < 2) return;
    const auto& rate = tariff_.between_zones;
    std::optional<Usd> cost;
    if (rate && rate->rate.value == 0) cost = Usd{};
    if (rate && q_.between_zones) cost = rate->rate * gigabytes(tariff_, *q_.between_zones);
    sum.add("between zones", cost, rate ? "how much workers send" : "what a gigabyte costs");
  }

  std::optional<Usd> kept(const Freight::Stored& stored, std::optional<double> count) const {
    if (stored.at.cloud == kOwnSite) return Usd{};
    const Tariff tariff = tariffs_.of(stored.at);
    if (!tariff.storage || !stored.size || !count) return {};
    const double months = (before_ + q_.training) / kMonth;
    return tariff.storage->rate * (gigabytes(tariff, *stored.size) * *count * months);
  }

  BillPart storage() const {
    Sum sum;
    const auto why = [&](const Freight::Stored& stored) {
      if (stored.at.cloud.empty()) return std::string("where it is");
      if (!tariffs_.of(stored.at).storage) return fmt::format("what {} takes for storage", words(stored.at));
      return std::string("its size");
    };
    sum.add("data", kept(freight_.data, 1.0), why(freight_.data));
    sum.rests_on(freight_.data);
    // Where nobody says how often they are written, as many as are kept.
    const double count = std::min<double>(freight_.keep, checkpoints().value_or(freight_.keep));
    sum.add("checkpoints", kept(freight_.checkpoint, count), why(freight_.checkpoint));
    sum.rests_on(freight_.checkpoint);
    return std::move(sum).part();
  }

  const BillQuestion& q_;
  const Freight& freight_;
  const Profile& profile_;
  const Catalog& catalog_;
  const Tariffs& tariffs_;
  std::vector<PlanLine> new_workers_{};
  std::vector<PlanLine> new_servers_{};
  int workers_ = 0;  ///< running ones, too
  Site site_{};
  Tariff tariff_{};
  Seconds before_{};  ///< training, of all machines
};

}  // namespace

Usd Bill::known() const {
  Usd sum{};
  for (const BillPart* part : {&compute, &start, &data, &egress, &storage}) sum += part->cost.value_or(Usd{});
  return sum;
}

bool Bill::whole() const { return compute.whole && start.whole && data.whole && egress.whole && storage.whole; }

std::vector<PlanLine> to_rent(std::vector<PlanLine> lines, std::vector<MachineCount>& running) {
  for (PlanLine& line : lines) {
    for (auto& [type, count] : running) {
      const int kept = type == line.type ? std::min(count, line.count) : 0;
      line.count -= kept;
      count -= kept;
    }
  }
  std::erase_if(lines, [](const PlanLine& line) { return line.count == 0; });
  return lines;
}

Bill bill_of(const BillQuestion& question, const Freight& freight, const Profile& profile, const Catalog& catalog,
             const Tariffs& tariffs) {
  return Accountant(question, freight, profile, catalog, tariffs).bill();
}

std::optional<Bytes> ring_between_zones(const std::vector<PlanLine>& workers, Bytes gradient, double steps) {
  std::set<std::string> zones;
  int count = 0;
  for (const PlanLine& line : workers) {
    if (line.zone.empty()) return {};
    zones.insert(line.zone);
    count += line.count;
  }
  if (zones.size() < 2) return Bytes{0};
  const auto n = static_cast<double>(count);
  return gradient * (2 * (n - 1) / n) * static_cast<double>(zones.size()) * steps;
}

}  // namespace mayfly
