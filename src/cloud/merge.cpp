#include <algorithm>

#include "cloud/catalog.h"

namespace mayfly {
namespace {

/// Copies entries from one catalogue to another, whose sources they then name.
class Mover {
 public:
  Mover(const std::vector<Source>& from, std::vector<Source>& to) {
    for (const Source& source : from) places_.push_back(add_source(to, source));
  }

  void move(std::size_t& source) const { source = places_[source]; }
  void move(std::optional<Price>& price) const {
    if (price) move(price->source);
  }
  void move(Gpu& gpu) const {
    move(gpu.source);
    if (gpu.measured) move(gpu.measured->source);
  }
  void move(FunctionPlatform& platform) const {
    move(platform.source);
    for (auto& [figure, source] : platform.figure_sources) move(source);
  }
  void move(InstanceType& type) const {
    move(type.source);
    if (type.gpu) move(*type.gpu);
    move(type.on_demand);
    move(type.spot);
    for (ZonePrice& zone : type.zones) {
      move(zone.on_demand);
      move(zone.spot);
    }
    for (auto& [figure, source] : type.figure_sources) move(source);
  }

 private:
  std::vector<std::size_t> places_{};
};

template <class Entry, class Name>
void take(std::vector<Entry>& all, const std::vector<Entry>& newer, const Mover& mover, Name name) {
  for (Entry entry : newer) {
    mover.move(entry);
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const Entry& other) { return other.*name == entry.*name; });
    if (same == all.end()) {
      all.push_back(std::move(entry));
    } else {
      *same = std::move(entry);
    }
  }
}

}  // namespace

Catalog merged(Catalog base, const Catalog& over) {
  const Mover mover(over.sources, base.sources);
  take(base.gpus, over.gpus, mover, &Gpu::model);
  // One model, one GPU: types that were read before have it too.
  for (InstanceType& type : base.types) {
    if (type.gpu && over.find_gpu(type.gpu->model) != nullptr) type.gpu = *base.find_gpu(type.gpu->model);
  }
  take(base.types, over.types, mover, &InstanceType::name);
  take(base.functions, over.functions, mover, &FunctionPlatform::name);
  std::sort(base.types.begin(), base.types.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  base.name = base.name.empty() ? over.name : base.name + "," + over.name;
  if (!over.server_type.empty()) {
    base.server_type = over.server_type;
    base.server_charged = over.server_charged;
  }
  return base;
}

}  // namespace mayfly
