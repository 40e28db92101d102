#include "drill/drill_parts.h"

#include <unistd.h>

#include <algorithm>

#include "base/fields.h"
#include "base/overloaded.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "control/event.h"
#include "engine/process.h"
#include "wire/loop.h"

namespace mayfly {
namespace {

constexpr Seconds kConnect{2};
constexpr Seconds kAnswer{10};

Result<Json> processes_in(const std::filesystem::path& directory) {
  const auto text = load_own_text(directory / "processes.json");
  if (!text) return fail("{}: no run here: {}", directory.string(), text.error().message);
  Json json = parsed_json(*text);
  if (!json.is_object()) return fail("{}: want what a run writes", (directory / "processes.json").string());
  return json;
}

DrillVictim controller_in(const Json& processes) {
  const Fields fields(processes);
  return {.process = {static_cast<pid_t>(fields.integer("controller")), fields.integer("controller_started")}};
}

/// Those of this machine that live; the longest in the run first.
std::vector<DrillVictim> living(const Json& processes, const char* kind) {
  std::vector<DrillVictim> found;
  for (const Json& one : Fields(processes).list(kind)) {
    if (!one.is_object()) continue;
    const Fields fields(one);
    const DrillVictim victim{.worker = static_cast<int>(fields.whole("worker").value_or(-1)),
                             .server = kind == std::string_view("servers"),
                             .process = {static_cast<pid_t>(fields.integer("pid")), fields.integer("started")}};
    if (alive(victim.process)) found.push_back(victim);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.worker < b.worker; });
  return found;
}

/// "HOST:PORT" of DIR/address.
Result<std::pair<std::string, std::uint16_t>> address_in(const std::filesystem::path& directory) {
  const auto text = load_own_text(directory / "address");
  if (!text) return unexpected(text.error());
  const std::string word(trimmed(*text));
  const auto colon = word.rfind(':');
  const auto port = colon == word.npos ? std::nullopt : parse_integer(word.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535)
    return fail("{}: '{}', want HOST:PORT", (directory / "address").string(), word);
  return std::pair{word.substr(0, colon), static_cast<std::uint16_t>(*port)};
}

}  // namespace

Result<std::vector<DrillVictim>> drill_victims(const DrillRequest& request) {
  const auto processes = processes_in(request.directory);
  if (!processes) return unexpected(processes.error());
  const DrillVictim controller = controller_in(*processes);
  if (!alive(controller.process)) return fail("{}: nobody drives this run now", request.directory.string());
  if (request.lose == DrillRequest::Lose::controller) return std::vector{controller};
  const bool server = request.lose == DrillRequest::Lose::server;
  auto found = living(*processes, server ? "servers" : "workers");
  const auto there = static_cast<int>(found.size());
  const int wanted = server ? 1 : request.all ? there : request.count.value_or((there + 1) / 2);
  if (there == 0) return fail("{}: no {} on this machine", request.directory.string(), server ? "servers" : "workers");
  if (wanted > there)
    return fail("{}: {} workers are to be lost, and there are {}", request.directory.string(), wanted, there);
  found.resize(static_cast<std::size_t>(wanted));
  return found;
}

Result<Drilling> ask_controller(const std::filesystem::path& directory, const Drill& word) {
  const auto address = address_in(directory);
  if (!address) return unexpected(address.error());
  const auto token = load_own_text(directory / "token");
  if (!token) return unexpected(token.error());
  const auto credentials = Credentials::from(trimmed(*token));
  if (!credentials) return fail("{}: {}", (directory / "token").string(), credentials.error().message);
  Loop loop;
  auto link = connect(loop, address->first, address->second, *credentials, kConnect);
  if (!link) return unexpected(link.error());
  Result<Drilling> answer = fail("{}:{}: the controller does not answer", address->first, address->second);
  const auto hear = [&](const ToOperator& message) {
    std::visit(Overloaded{
                   [&](const Drilling& drilling) { answer = drilling; },
                   [&](const Refused& refused) { answer = fail("the controller refuses: {}", refused.why); },
               },
               message);
    loop.stop();
  };
  const auto closed = [&](const std::string& why) {
    answer = fail("{}:{}: {}", address->first, address->second, why);
    loop.stop();
  };
  (*link)->start<ToOperator>({.message = hear, .closed = closed});
  (*link)->send<ToController>(Hello{.pid = ::getpid(), .role = "operator"});
  (*link)->send<ToController>(word);
  Timer patience(loop);
  patience.start(kAnswer, [&] { loop.stop(); });
  loop.run();
  return answer;
}

bool run_is_over(const std::filesystem::path& directory) {
  const auto processes = processes_in(directory);
  std::error_code error;
  // A controller that was killed is started again by its front.
  return processes && !alive(controller_in(*processes).process) && start_ticks(processes->value("front", 0)) == 0 &&
         std::filesystem::exists(directory / "summary.json", error);
}

Aftermath aftermath(const std::string& journal, Seconds from, Seconds settled) {
  Aftermath result;
  Seconds last = from;
  for (const std::string_view line : split(journal, '\n')) {
    const auto event = line.empty() ? std::nullopt : event_in(line);
    if (!event || line.find("\"ignored\"") != line.npos) continue;
    if (const auto* step = std::get_if<StepCommitted>(&event->event)) {
      result.committed = step->first_sample + step->samples;
      if (event->time < from) continue;
      result.longest_pause = std::max(result.longest_pause, event->time - last);
      last = event->time;
      if (event->time >= settled && !result.next_commit) result.next_commit = event->time - settled;
    }
    const auto* back = std::get_if<RolledBack>(&event->event);
    if (back == nullptr || !back->sample) continue;
    if (event->time >= from) result.redone += std::max(0.0, result.committed - *back->sample);
    result.committed = *back->sample;
  }
  return result;
}

}  // namespace mayfly
