#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "cloud/instance_type.h"

namespace mayfly {

/// What can be rented. Format: docs/formats.md#catalogue.
struct Catalog {
  std::string name{};
  std::vector<Source> sources{};
  std::vector<Gpu> gpus{};
  std::vector<InstanceType> types{};  ///< by name
  std::vector<FunctionPlatform> functions{};
  std::string server_type{};  ///< the parameter server to assume where neither user nor profile names one; may be empty
  bool server_charged = true;  ///< false reproduces papers that leave the server out of the bill
  bool operator==(const Catalog&) const = default;

  const InstanceType* find(std::string_view name) const;
  const Gpu* find_gpu(std::string_view model) const;
  const FunctionPlatform* find_function(std::string_view name) const;
  std::vector<std::string> type_names() const;
};

/// "unknown instance type 'g3.8xlrage' (did you mean 'g3.8xlarge'?)" or the type.
Result<const InstanceType*> lookup(const Catalog& catalog, std::string_view name);

/// Types may name GPUs of `shared` as well as the catalogue's own; what is named is part of the result, with its
/// sources. A catalogue may consist of GPUs alone.
Result<Catalog> parse_catalog(std::string_view text, const std::string& file, const Catalog& shared = {});
Result<Catalog> load_catalog(const std::filesystem::path& path, const Catalog& shared = {});
/// Both in one. Of a type, GPU or function platform that both state, `over`'s entry stays; likewise its server. Types
/// of `base` get `over`'s GPUs.
Catalog merged(Catalog base, const Catalog& over);
Source read_source(const std::string& id, Section& entry);
/// The index of `source`, which is added unless it is there; a newcomer whose id is taken by a different source gets
/// its date appended to it.
std::size_t add_source(std::vector<Source>& sources, Source source);
/// The catalogue as the YAML that parse_catalog reads.
std::string catalog_yaml(const Catalog& catalog);

/// How many of one type. The words of the command line: `g3.8xlarge=5,g3.16xlarge=3` or `5xg3.8xlarge,3xg3.16xlarge`.
struct MachineCount {
  std::string type{};
  int count = 0;
  bool operator==(const MachineCount&) const = default;
};
/// Counts of the same type add up. An empty text is an error; a count of 0 is kept.
Result<std::vector<MachineCount>> parse_machines(std::string_view text);
/// "5 x g3.8xlarge + 3 x g3.16xlarge"
std::string machines_text(const std::vector<MachineCount>& machines);

}  // namespace mayfly
