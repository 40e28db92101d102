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
  std::string cloud{};  ///< aws, gcp or azure
};

struct Imported {
  Catalog catalog{};
  std::vector<std::string> notes{};  ///< what was skipped or could not be known, summed up for people
};

/// SkyPilot's catalogue CSV. Columns are found by name, whatever their order and case; InstanceType and Price must be
/// there. A type's own prices are the cheapest of all its rows and its region is where the on-demand price is from (the
/// spot price where there is no other), so the two may be of different regions; every row with a zone and a price is
/// one ZonePrice. Figures the CSV does not have (network, PCIe, TFLOPS, quotas; GPU memory on Azure) are taken from
/// `known`, with their sources, where it has the type or the GPU, and are absent otherwise. A type is skipped, and a
/// note says so, where it has no price, no whole GPUs, GPUs of unknown memory, or GPUs that its price leaves out: GCP
/// states those in rows of their own, which are not added up here. The first row that cannot be read is an error
/// "file:line: column ...".
Result<Imported> import_skypilot(std::string_view csv, const std::string& file, const Catalog& known,
                                 const ImportOptions& options);

/// The JSON of `aws ec2 describe-spot-price-history`: the newest Linux price per type and zone replaces the spot prices
/// in `known`; of two as new, the higher. A type's spot price becomes that of its cheapest zone in the history. What
/// the history does not mention, other zones of the same type included, stays as it was, with its own source.
Result<Imported> import_spot_history(std::string_view json, const std::string& file, Catalog known);

/// For the importers. The index of `source`, which is added unless it is there; a newcomer whose id is taken by a
/// different source gets its date appended to it.
std::size_t add_source(std::vector<Source>& sources, Source source);
/// For the importers. "types skipped (165): L4 (5), T4 (120), V100 (40)"; of many names only the first.
std::string count_note(std::string_view what, const std::map<std::string, int>& counts);

}  // namespace mayfly
