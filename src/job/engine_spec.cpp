#include "job/engine_spec.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 3> kEngineKinds{"local", "none", "slurm"};

/// A word for Slurm: without spaces, which no name of Slurm's has.
std::string read_word(Section& section, std::string_view key) {
  std::string text = section.maybe_text(key).value_or("");
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (!plain) section.reject(key, fmt::format("'{}', want a name without spaces", text));
  return text;
}

std::optional<Seconds> read_span(Section& section, std::string_view key) {
  const auto text = section.maybe_text(key);
  if (!text) return {};
  const auto time = parse_duration(*text);
  if (!time || time->count() <= 0) {
    section.reject(key, time ? fmt::format("'{}', want more than nothing", *text) : time.error().message);
    return {};
  }
  return *time;
}

std::optional<SlurmQueue> read_queue(Section& section, std::string_view key) {
  auto market = section.maybe_section(key);
  if (!market) return {};
  SlurmQueue queue{.partition = read_word(*market, "partition"),
                   .qos = read_word(*market, "qos"),
                   .account = read_word(*market, "account")};
  if (queue.partition.empty() && queue.qos.empty()) market->reject("partition", "want a partition, a qos or both");
  market->finish();
  return queue;
}

/// `1.1`, or `{spot: 0.4, on-demand: 1.1}`.
void read_price(Section& section, SlurmType& type) {
  const Value* value = section.raw("usd_per_hour");
  if (value == nullptr) return;
  const auto rate = [](const std::optional<double>& usd) {
    return usd ? std::optional(UsdPerHour{*usd}) : std::nullopt;
  };
  if (value->kind != Value::Kind::map) {
    type.spot = type.on_demand = rate(section.maybe_number("usd_per_hour", Range::non_negative));
    return;
  }
  auto prices = section.section("usd_per_hour");
  type.spot = rate(prices.maybe_number("spot", Range::non_negative));
  type.on_demand = rate(prices.maybe_number("on-demand", Range::non_negative));
  prices.finish();
}

SlurmType read_machine_type(Section& section) {
  SlurmType type{.gres = read_word(section, "gres"),
                 .constraint = read_word(section, "constraint"),
                 .cores = section.maybe_integer("cores")};
  if (const auto gb = section.maybe_number("memory_gb", Range::positive)) type.memory = Bytes{*gb * 1e9};
  if (type.memory && (type.memory->value < 1e7 || type.memory->value > 1e15))
    section.reject("memory_gb", "want 0.01 to 1000000");
  read_price(section, type);
  section.finish();
  return type;
}

SlurmSpec read_slurm(Section section) {
  SlurmSpec slurm{.spot = read_queue(section, "spot"),
                  .on_demand = read_queue(section, "on-demand"),
                  .account = read_word(section, "account"),
                  .reservation = read_word(section, "reservation"),
                  .time = read_span(section, "time"),
                  .hand_over = read_span(section, "hand_over"),
                  .setup = section.maybe_text("setup").value_or("")};
  if (slurm.time && *slurm.time < Seconds(60)) section.reject("time", "Slurm counts in minutes: want 1m or more");
  if (slurm.time && slurm.hand_over && *slurm.hand_over > *slurm.time / 2)
    section.reject("hand_over", "want at most half of time");
  if (auto types = section.maybe_section("types")) {
    for (auto& [name, type] : types->each()) slurm.types[name] = read_machine_type(type);
  }
  section.finish();
  return slurm;
}

}  // namespace

EngineSpec read_engine(Section& section) {
  EngineSpec engine{.kind = section.maybe_text("kind").value_or("")};
  if (!engine.kind.empty() && std::find(kEngineKinds.begin(), kEngineKinds.end(), engine.kind) == kEngineKinds.end())
    section.reject("kind", fmt::format("'{}', want one of {}", engine.kind, fmt::join(kEngineKinds, ", ")));
  if (section.has("slurm")) engine.slurm = read_slurm(section.section("slurm"));
  return engine;
}

Result<EngineSpec> parse_engine(std::string_view text, const std::string& file) {
  return read_document(text, file, "mayfly-engine/1", read_engine);
}

}  // namespace mayfly
