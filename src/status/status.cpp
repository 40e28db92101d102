#include "status/status.h"

#include <unistd.h>

#include <chrono>

#include "base/fields.h"
#include "base/file.h"
#include "base/text.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

constexpr std::string_view kStatusFormat = "mayfly-status/1";
constexpr Seconds kBetween{1};
constexpr std::size_t kRemarks = 12;

Json process_json(const ProcessId& process) {
  if (process.pid == 0) return nullptr;
  return {{"pid", process.pid}, {"started_ticks", process.started}};
}

Json machine_json(const MachineStatus& machine) {
  return {{"name", machine.name},
          {"launch", machine.launch},
          {"log", machine.launch},
          {"where", machine.where},
          {"stage", machine.stage},
          {"pid", machine.pid},
          {"type", machine.type},
          {"zone", machine.zone},
          {"market", machine.market},
          {"state", machine.state},
          {"since_s", machine.since.count()},
          {"usd_per_hour", machine.price.value}};
}

ProcessId process_in(const Fields& fields) {
  return {static_cast<pid_t>(fields.integer("pid")), fields.integer("started_ticks")};
}

MachineStatus machine_in(const Json& json) {
  const Fields fields(json);
  return {.name = fields.text("name"),
          .launch = static_cast<int>(fields.whole("log").value_or(-1)),
          .where = fields.text("where"),
          .stage = fields.text("stage"),
          .pid = static_cast<pid_t>(fields.integer("pid")),
          .type = fields.text("type"),
          .zone = fields.text("zone"),
          .market = fields.text("market"),
          .price = {fields.real("usd_per_hour").value_or(0)},
          .since = Seconds(fields.real("since_s").value_or(0)),
          .state = fields.text("state")};
}

}  // namespace

std::optional<Remark> remark_in(std::string_view journal_line) {
  const Json json = Json::parse(journal_line, nullptr, false);
  if (!json.is_object() || !json.contains("remark")) return std::nullopt;
  const Fields fields(json);
  return Remark{Seconds(fields.real("t_s").value_or(0)), fields.text("remark")};
}

Json status_json(const RunStatus& status) {
  Json machines = Json::array();
  for (const MachineStatus& machine : status.machines) machines.push_back(machine_json(machine));
  Json remarks = Json::array();
  for (const Remark& remark : status.remarks)
    remarks.push_back({{"t_s", remark.time.count()}, {"remark", remark.text}});
  return {{"format", kStatusFormat},
          {"job", status.job},
          {"phase", status.phase},
          {"end", status.end.empty() ? Json(nullptr) : Json(status.end)},
          {"failure", status.failure.empty() ? Json(nullptr) : Json(status.failure)},
          {"controller", process_json(status.controller)},
          {"front", process_json(status.front)},
          {"host", status.host},
          {"boot", status.boot},
          {"written", format_time(status.written)},
          {"time_s", status.time.count()},
          {"step", status.step},
          {"samples", status.samples},
          {"target_samples", or_null(status.target)},
          {"epochs", or_null(status.epochs)},
          {"loss", or_null(status.loss)},
          {"samples_per_s", or_null(status.samples_per_s)},
          {"left_s", or_null(status.left)},
          {"deadline_s", or_null(status.deadline)},
          {"deadline_met", or_null(status.deadline_met)},
          {"cost_usd", or_null(status.cost)},
          {"budget_usd", or_null(status.budget)},
          {"target_loss", or_null(status.target_loss)},
          {"predicted_time_s", or_null(status.predicted_time)},
          {"predicted_cost_usd", or_null(status.predicted_cost)},
          {"machines", std::move(machines)},
          {"preemptions", status.preemptions},
          {"samples_redone", status.samples_redone},
          {"checkpoint", status.checkpoint},
          {"remarks", std::move(remarks)}};
}

Result<RunStatus> parse_status(std::string_view text, const std::string& file) {
  const Json json = parsed_json(text);
  if (!json.is_object()) return fail("{}: no JSON object", file);
  const Fields fields(json);
  if (fields.text("format") != kStatusFormat)
    return fail("{}: format '{}', want {}", file, fields.text("format").substr(0, 40), kStatusFormat);
  RunStatus status{.job = fields.text("job"),
                   .phase = fields.text("phase"),
                   .end = fields.text("end"),
                   .failure = fields.text("failure"),
                   .controller = process_in(fields.object("controller")),
                   .front = process_in(fields.object("front")),
                   .host = fields.text("host"),
                   .boot = fields.text("boot"),
                   .written = parse_time(fields.text("written")).value_or(0),
                   .time = Seconds(fields.real("time_s").value_or(0)),
                   .step = fields.integer("step"),
                   .samples = fields.integer("samples"),
                   .target = fields.whole("target_samples"),
                   .epochs = fields.real("epochs"),
                   .loss = fields.real("loss"),
                   .samples_per_s = fields.real("samples_per_s"),
                   .left = fields.time("left_s"),
                   .deadline = fields.time("deadline_s"),
                   .deadline_met = fields.flag("deadline_met"),
                   .cost = fields.money("cost_usd"),
                   .budget = fields.money("budget_usd"),
                   .target_loss = fields.real("target_loss"),
                   .predicted_time = fields.time("predicted_time_s"),
                   .predicted_cost = fields.money("predicted_cost_usd"),
                   .preemptions = static_cast<int>(fields.integer("preemptions")),
                   .samples_redone = fields.integer("samples_redone"),
                   .checkpoint = fields.text("checkpoint")};
  for (const Json& machine : fields.list("machines")) {
    if (machine.is_object()) status.machines.push_back(machine_in(machine));
  }
  for (const Json& entry : fields.list("remarks")) {
    if (!entry.is_object()) continue;
    const Fields remark(entry);
    status.remarks.push_back({Seconds(remark.real("t_s").value_or(0)), remark.text("remark")});
  }
  return status;
}

Result<RunStatus> load_status(const std::filesystem::path& directory) {
  const auto path = directory / "status.json";
  const auto text = load_own_text(path);
  if (!text) return unexpected(text.error());
  return parse_status(*text, path.string());
}

StatusFile::StatusFile(const std::filesystem::path& directory, bool supervised) : path_(directory / "status.json") {
  if (supervised) front_ = process_numbered(::getppid());
  // What an earlier controller had begun to write when it was killed.
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = name.starts_with("status.json.") || name.starts_with("processes.json.");
    std::error_code ignored;
    if (ours && name.ends_with(".partial")) std::filesystem::remove(entry->path(), ignored);
  }
}

void StatusFile::remember(Remark remark) {
  remarks_.push_back(std::move(remark));
  if (remarks_.size() > kRemarks) remarks_.pop_front();
}

bool StatusFile::due(Seconds now) const { return !written_ || now - *written_ >= kBetween; }

void StatusFile::write(Seconds now, RunStatus status) {
  written_ = now;
  status.controller = process_numbered(::getpid());
  status.front = front_;
  status.host = host_name();
  status.boot = boot_id();
  status.written = Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
  status.remarks.assign(remarks_.begin(), remarks_.end());
  static_cast<void>(save_text(path_, status_json(status).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
}

}  // namespace mayfly
