#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cloud/catalog.h"
#include "plan/freight.h"

// Model: docs/models.md#bill
namespace mayfly {

struct PlanLine;

/// One kind of cost.
struct BillPart {
  std::optional<Usd> cost{};  ///< as far as it is known; nothing where none of it is
  bool whole = true;          ///< false: the notes say what is not known
  Basis basis = Basis::given;
  std::vector<std::string> notes{};
  bool assumes = false;  ///< a figure that nobody states is in it; the notes say which, and why
};

/// What a job costs, in parts that add up.
struct Bill {
  BillPart compute{};  ///< machines while they train
  BillPart start{};    ///< machines before that, and what is billed beyond the time they are held
  BillPart data{};     ///< machines while they get their samples
  BillPart egress{};   ///< gigabytes that leave a place
  BillPart storage{};  ///< data and checkpoints as long as the job lasts
  /// As far as it is known.
  Usd known() const;
  bool whole() const;
};

/// A cluster and how long it trains. All its machines are of one cloud and region.
struct BillQuestion {
  const std::vector<PlanLine>& workers;
  const std::vector<PlanLine>& servers;
  std::vector<MachineCount> running{};  ///< of them: they neither start nor get what they have, and are paid anyway
  Seconds training{};                   ///< from the first step to the last
  std::optional<Seconds> boot{};        ///< from the order of a machine until it is up
  double replacements = 0;              ///< workers that start besides, in the place of lost ones
  std::optional<double> epochs{};
  std::optional<Bytes> between_zones{};  ///< that workers send each other over the borders of zones; absent: not known
};
/// Lines without the machines that run already, which are taken from `running`.
std::vector<PlanLine> to_rent(std::vector<PlanLine> lines, std::vector<MachineCount>& running);

/// Machines wait for each other, so all are paid from the order to the end, replacements for their own start alone.
/// The workers' types are in the catalogue.
Bill bill_of(const BillQuestion& question, const Freight& freight, const Profile& profile, const Catalog& catalog,
             const Tariffs& tariffs);

/// A ring through all zones crosses a border of each: 2 (n - 1) / n gradients a step over each of them. Nothing where
/// the zone of some machines is open.
std::optional<Bytes> ring_between_zones(const std::vector<PlanLine>& workers, Bytes gradient, double steps);

}  // namespace mayfly
