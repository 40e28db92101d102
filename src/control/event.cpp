#include "control/event.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/text.h"

namespace mayfly {
namespace {

std::string worker_name(WorkerId worker) { return fmt::format("w{}", worker); }

Json members_json(const std::vector<WorkerId>& members) {
  Json list = Json::array();
  for (const WorkerId worker : members) list.push_back(worker_name(worker));
  return list;
}

struct EventJson {
  Json operator()(const Joined& e) const {
    Json json{{"event", "joined"}, {"worker", worker_name(e.worker)}, {"type", e.type},
              {"zone", e.zone},    {"market", name(e.market)},        {"usd_per_hour", e.price.value}};
    if (e.since) json["paid_since_s"] = e.since->count();
    return json;
  }
  Json operator()(const Notice& e) const {
    return {{"event", "notice"}, {"worker", worker_name(e.worker)}, {"left_s", e.left.count()}};
  }
  Json operator()(const Lost& e) const {
    Json json{{"event", "lost"}, {"worker", worker_name(e.worker)}};
    if (e.returns) json["returns"] = true;
    return json;
  }
  Json operator()(const StepCommitted& e) const {
    return {
        {"event", "committed"}, {"generation", e.generation}, {"first_sample", e.first_sample}, {"samples", e.samples}};
  }
  Json operator()(const CheckpointDone& e) const { return {{"event", "checkpointed"}, {"sample", e.sample}}; }
  Json operator()(const RolledBack& e) const {
    Json json{{"event", "rolled-back"}, {"generation", e.generation}};
    if (e.sample) json["sample"] = *e.sample;
    return json;
  }
  Json operator()(const StateLost& e) const { return {{"event", "state-lost"}, {"generation", e.generation}}; }
  Json operator()(const Priced& e) const {
    Json json{{"event", "priced"}, {"type", e.type}, {"zone", e.zone}, {"usd_per_hour", e.price.value}};
    if (e.market != Market::spot) json["market"] = name(e.market);
    return json;
  }
  Json operator()(const Charged& e) const {
    return {{"event", "charged"},       {"type", e.type},           {"zone", e.zone},
            {"cost_usd", e.cost.value}, {"market", name(e.market)}, {"time_s", e.time.count()}};
  }
  Json operator()(const Expected& e) const { return {{"event", "expected"}, {"ready_s", e.ready.count()}}; }
  Json operator()(const Estimated& e) const { return {{"event", "estimated"}, {"samples", e.samples}}; }
  Json operator()(const Measured& e) const { return {{"event", "measured"}, {"ratio", e.ratio}}; }
  Json operator()(const Tick&) const { return {{"event", "tick"}}; }
};

struct CommandJson {
  Json operator()(const Acquire& c) const {
    Json json{{"command", "acquire"}, {"market", name(c.kind.market)}, {"count", c.count}};
    if (!c.kind.type.empty()) json["type"] = c.kind.type;
    if (!c.kind.zone.empty()) json["zone"] = c.kind.zone;
    return json;
  }
  Json operator()(const Release& c) const { return {{"command", "release"}, {"worker", worker_name(c.worker)}}; }
  Json operator()(const Assign& c) const {
    Json json{{"command", "assign"},
              {"generation", c.generation},
              {"data_parallel", c.shape.data_parallel},
              {"stages", c.shape.stages}};
    if (c.shape.extra > 0) json["extra"] = c.shape.extra;
    json["next_sample"] = c.next_sample;
    json["members"] = members_json(c.members);
    return json;
  }
  Json operator()(const Pause& c) const { return {{"command", "pause"}, {"generation", c.generation}}; }
  Json operator()(const Drain& c) const {
    return {{"command", "drain"}, {"worker", worker_name(c.worker)}, {"left_s", c.left.count()}};
  }
  Json operator()(const Checkpoint&) const { return {{"command", "checkpoint"}}; }
  Json operator()(const Finish& c) const { return {{"command", "finish"}, {"why", name(c.why)}}; }
  Json operator()(const Warn& c) const { return {{"command", "warn"}, {"what", c.what}}; }
  Json operator()(const Wake& c) const { return {{"command", "wake"}, {"at_s", c.at.count()}}; }
};

/// A journal's line, read back.
struct Fields {
  const Json& json;

  std::optional<double> number(const char* key) const {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number()) return std::nullopt;
    return json[key].get<double>();
  }
  double value(const char* key) const { return number(key).value_or(0); }
  bool flag(const char* key) const { return json.contains(key) && json[key].is_boolean() && json[key].get<bool>(); }
  std::optional<Seconds> time(const char* key) const {
    const auto seconds = number(key);
    return seconds ? std::optional(Seconds(*seconds)) : std::nullopt;
  }
  std::int64_t generation() const { return static_cast<std::int64_t>(value("generation")); }
  std::string text(const char* key) const {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  }
  Market market() const { return text("market") == name(Market::spot) ? Market::spot : Market::on_demand; }
  WorkerId worker() const {
    const std::string word = text("worker");
    return parse_integer(word.empty() ? word : word.substr(1)).value_or(0);
  }
};

std::string line(Seconds now, const Json& what) {
  Json json{{"t_s", now.count()}};
  json.update(what);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string_view name(Finish::Why why) { return why == Finish::Why::target ? "target" : "budget"; }

std::string journal_line(Seconds now, const Event& event, std::string_view ignored) {
  Json json = std::visit(EventJson{}, event);
  if (!ignored.empty()) json["ignored"] = ignored;
  return line(now, json);
}

std::string journal_line(Seconds now, const Command& command, std::string_view reason) {
  Json json = std::visit(CommandJson{}, command);
  if (!reason.empty()) json["why"] = reason;
  return line(now, json);
}

std::optional<TimedEvent> event_in(std::string_view journal_line) {
  const Json json = Json::parse(journal_line, nullptr, false);
  const Fields fields{json};
  const auto time = fields.number("t_s");
  if (!time) return std::nullopt;
  const Seconds now(*time);
  const auto word = fields.text("event");
  if (word == "joined")
    return TimedEvent{now, Joined{.worker = fields.worker(),
                                  .type = fields.text("type"),
                                  .zone = fields.text("zone"),
                                  .market = fields.market(),
                                  .price = {fields.value("usd_per_hour")},
                                  .since = fields.time("paid_since_s")}};
  if (word == "notice") return TimedEvent{now, Notice{fields.worker(), Seconds(fields.value("left_s"))}};
  if (word == "lost") return TimedEvent{now, Lost{fields.worker(), fields.flag("returns")}};
  if (word == "committed")
    return TimedEvent{now, StepCommitted{fields.generation(), fields.value("first_sample"), fields.value("samples")}};
  if (word == "checkpointed") return TimedEvent{now, CheckpointDone{fields.value("sample")}};
  if (word == "rolled-back") return TimedEvent{now, RolledBack{fields.generation(), fields.number("sample")}};
  if (word == "state-lost") return TimedEvent{now, StateLost{fields.generation()}};
  if (word == "priced")
    return TimedEvent{now, Priced{.type = fields.text("type"),
                                  .zone = fields.text("zone"),
                                  .price = {fields.value("usd_per_hour")},
                                  .market = fields.text("market").empty() ? Market::spot : fields.market()}};
  if (word == "charged")
    return TimedEvent{now, Charged{.type = fields.text("type"),
                                   .zone = fields.text("zone"),
                                   .cost = {fields.value("cost_usd")},
                                   .market = fields.market(),
                                   .time = Seconds(fields.value("time_s"))}};
  if (word == "expected") return TimedEvent{now, Expected{Seconds(fields.value("ready_s"))}};
  if (word == "estimated") return TimedEvent{now, Estimated{fields.value("samples")}};
  if (word == "measured") return TimedEvent{now, Measured{fields.value("ratio")}};
  if (word == "tick") return TimedEvent{now, Tick{}};
  return std::nullopt;
}

}  // namespace mayfly
