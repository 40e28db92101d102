#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cloud/catalog.h"

namespace mayfly {

struct ImportOptions {
  std::string name{};
  std::string date{};   ///< ISO day of the prices
  std::string cloud{};  ///< one of SkyPilot's: skypilot_cloud.h
};

struct Imported {
  Catalog catalog{};
  std::vector<std::string> notes{};  ///< what was skipped or could not be known, summed up for people
};

/// SkyPilot's catalogue CSV. Columns are found by name, whatever their order and case; InstanceType and Price must be
/// there. A type's own prices are the cheapest of all its rows, where 0 is no offer; its region and figures are those
/// of the row with the on-demand price (the spot price where there is no other), so the two prices may be of different
/// regions; every row with a zone and a price is one ZonePrice. A GPU is the one of `known` that its name, its memory
/// and, where the name leaves it open, the type's name mean. Its memory is read in the unit in which it is that GPU's:
/// files have MiB, GiB, and that of all GPUs together. Figures the CSV does not have (network, PCIe, TFLOPS, quotas)
/// are taken from `known`, with their sources, where it has the type or the GPU, and are absent otherwise. A type is
/// skipped, and a note says so, where it has no price, no whole GPUs or vCPUs, GPUs of unknown memory, or GPUs that its
/// price leaves out: GCP states those in rows of their own, which are not added up here. The first row that cannot be
/// read, or whose GPU has less than 1 GiB or more than 1 TiB in every unit, is an error "file:line: column ...".
Result<Imported> import_skypilot(std::string_view csv, const std::string& file, const Catalog& known,
                                 const ImportOptions& options);

/// The JSON of `aws ec2 describe-spot-price-history`: the newest Linux price per type and zone replaces the spot prices
/// in `known`; of two as new, the higher. A type's spot price becomes that of its cheapest zone in the history. What
/// the history does not mention, other zones of the same type included, stays as it was, with its own source.
Result<Imported> import_spot_history(std::string_view json, const std::string& file, Catalog known);

/// For the importers. "types skipped (165): L4 (5), T4 (120), V100 (40)"; of many names only the first.
std::string count_note(std::string_view what, const std::map<std::string, int>& counts);

}  // namespace mayfly
