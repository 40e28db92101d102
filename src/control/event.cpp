#include "control/event.h"

#include <fmt/core.h>

#include "base/json.h"

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
    return {{"event", "joined"}, {"worker", worker_name(e.worker)}, {"type", e.type},
            {"zone", e.zone},    {"market", name(e.market)},        {"usd_per_hour", e.price.value}};
  }
  Json operator()(const Notice& e) const {
    return {{"event", "notice"}, {"worker", worker_name(e.worker)}, {"left_s", e.left.count()}};
  }
  Json operator()(const Lost& e) const { return {{"event", "lost"}, {"worker", worker_name(e.worker)}}; }
  Json operator()(const StepCommitted& e) const {
    return {
        {"event", "committed"}, {"generation", e.generation}, {"first_sample", e.first_sample}, {"samples", e.samples}};
  }
  Json operator()(const CheckpointDone& e) const { return {{"event", "checkpointed"}, {"sample", e.sample}}; }
  Json operator()(const RolledBack&) const { return {{"event", "rolled-back"}}; }
  Json operator()(const Priced& e) const {
    return {{"event", "priced"}, {"type", e.type}, {"zone", e.zone}, {"usd_per_hour", e.price.value}};
  }
  Json operator()(const Tick&) const { return {{"event", "tick"}}; }
};

struct CommandJson {
  Json operator()(const Acquire& c) const {
    return {{"command", "acquire"}, {"market", name(c.market)}, {"count", c.count}};
  }
  Json operator()(const Release& c) const { return {{"command", "release"}, {"worker", worker_name(c.worker)}}; }
  Json operator()(const Assign& c) const {
    return {{"command", "assign"},      {"generation", c.generation},   {"data_parallel", c.shape.data_parallel},
            {"stages", c.shape.stages}, {"next_sample", c.next_sample}, {"members", members_json(c.members)}};
  }
  Json operator()(const Pause& c) const { return {{"command", "pause"}, {"generation", c.generation}}; }
  Json operator()(const Drain& c) const {
    return {{"command", "drain"}, {"worker", worker_name(c.worker)}, {"left_s", c.left.count()}};
  }
  Json operator()(const Checkpoint&) const { return {{"command", "checkpoint"}}; }
  Json operator()(const Finish& c) const { return {{"command", "finish"}, {"why", name(c.why)}}; }
  Json operator()(const Wake& c) const { return {{"command", "wake"}, {"at_s", c.at.count()}}; }
};

std::string line(Seconds now, const Json& what) {
  Json json{{"t_s", now.count()}};
  json.update(what);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string_view name(Finish::Why why) { return why == Finish::Why::target ? "target" : "budget"; }

std::string journal_line(Seconds now, const Event& event) { return line(now, std::visit(EventJson{}, event)); }

std::string journal_line(Seconds now, const Command& command, std::string_view reason) {
  Json json = std::visit(CommandJson{}, command);
  if (!reason.empty()) json["why"] = reason;
  return line(now, json);
}

}  // namespace mayfly
