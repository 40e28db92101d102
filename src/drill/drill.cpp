#include "drill/drill.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text.h"
#include "base/untrusted.h"
#include "drill/drill_parts.h"
#include "engine/process.h"
#include "notice/mock.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{10};
Seconds since(Clock::time_point start) { return Clock::now() - start; }

Seconds window_of(const DrillRequest& request) {
  if (request.notice == DrillRequest::Notice::none) return Seconds(0);
  if (request.window) return *request.window;
  return request.cloud == Cloud::aws ? Seconds(120) : Seconds(30);
}

/// Until every victim is gone. Those that still live when the window is over are ended by the run's engine, as the
/// cloud would; a controller has none.
std::vector<DrillLoss> watch_them_go(const std::vector<DrillVictim>& victims, Seconds window,
                                     Clock::time_point noticed) {
  std::vector<DrillLoss> losses;
  for (const DrillVictim& victim : victims)
    losses.push_back({.worker = victim.worker, .server = victim.server, .pid = victim.process.pid});
  while (true) {
    bool left = false;
    for (std::size_t i = 0; i < victims.size(); ++i) {
      DrillLoss& loss = losses[i];
      const bool there = alive(victims[i].process);
      if (there && since(noticed) >= window) loss.killed = true;
      if (there && loss.killed && victims[i].worker < 0) send_signal(victims[i].process, SIGKILL);
      if (!there && !loss.killed && !loss.left_after) loss.left_after = since(noticed);
      left |= there;
    }
    if (!left) return losses;
    std::this_thread::sleep_for(kLook);
  }
}

std::string names_of(const std::vector<DrillVictim>& victims) {
  std::vector<std::string> names;
  for (const DrillVictim& victim : victims)
    names.push_back(victim.worker < 0 ? "the controller"
                                      : fmt::format("{}{}", victim.server ? "server s" : "w", victim.worker));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The word that the cloud would say before it takes the machine. A mock lives as long as it is
/// asked.
Result<std::unique_ptr<MockMetadata>> metadata_for(const DrillRequest& request) {
  if (request.notice != DrillRequest::Notice::cloud) return nullptr;
  return MockMetadata::open({.cloud = request.cloud});
}

std::string_view word_of(const DrillRequest& request) {
  if (request.notice == DrillRequest::Notice::cloud) return name(request.cloud);
  return request.notice == DrillRequest::Notice::sigterm ? "sigterm" : "none";
}

/// Waits for a step that counts after all of them were gone.
void await_commit(const DrillRequest& request, Seconds from, Seconds settled, bool controller, DrillReport& report) {
  const auto start = Clock::now();
  const double before = report.committed_after;
  while (true) {
    const Aftermath seen = aftermath(load_own_text(request.directory / "journal.jsonl").value_or(""), from, settled);
    report.committed_after = seen.committed;
    report.samples_redone = seen.redone;
    report.longest_pause = seen.longest_pause;
    // The run's own time stands still without a controller.
    report.next_commit = controller ? std::nullopt : seen.next_commit;
    if (controller && seen.committed > before) report.next_commit = since(start);
    report.run_over = run_is_over(request.directory);
    if (report.next_commit || report.run_over || since(start) > request.patience) return;
    std::this_thread::sleep_for(5 * kLook);
  }
}

}  // namespace

Result<DrillReport> drill(const DrillRequest& request, const std::function<void(const std::string&)>& say) {
  const auto victims = drill_victims(request);
  if (!victims) return unexpected(victims.error());
  auto mock = metadata_for(request);
  if (!mock) return unexpected(mock.error());
  Drill word{.cloud = std::string(word_of(request)),
             .endpoint = *mock ? (*mock)->endpoint() : "",
             .window_s = window_of(request).count()};
  const bool controller = request.lose == DrillRequest::Lose::controller;
  for (const DrillVictim& victim : *victims) {
    if (!controller) word.workers.push_back(victim.worker);
  }
  const auto answer = ask_controller(request.directory, word);
  if (!answer) return unexpected(answer.error());
  DrillReport report{.window = window_of(request), .committed_before = static_cast<double>(answer->samples)};
  say(fmt::format("{}: {}, {} to go", names_of(*victims), word.cloud, format_duration(report.window)));
  const auto noticed = Clock::now();
  if (*mock) (*mock)->announce(report.window);
  if (request.notice == DrillRequest::Notice::sigterm && controller) send_signal(victims->front().process, SIGTERM);
  report.losses = watch_them_go(*victims, report.window, noticed);
  const Seconds from(answer->time_s);
  const Seconds settled = from + since(noticed);
  report.committed_after =
      aftermath(load_own_text(request.directory / "journal.jsonl").value_or(""), from, settled).committed;
  await_commit(request, from, settled, controller, report);
  return report;
}

Json drill_json(const DrillReport& report) {
  Json losses = Json::array();
  for (const DrillLoss& loss : report.losses)
    losses.push_back({{"role", loss.worker < 0 ? "controller"
                               : loss.server   ? "server"
                                               : "worker"},
                      {"worker", loss.worker < 0 ? Json() : Json(loss.worker)},
                      {"pid", loss.pid},
                      {"left_after_s", loss.left_after ? Json(loss.left_after->count()) : Json()},
                      {"killed", loss.killed}});
  return {{"format", "mayfly-drill/1"},
          {"losses", losses},
          {"window_s", report.window.count()},
          {"samples_before", report.committed_before},
          {"samples_after", report.committed_after},
          {"samples_redone", report.samples_redone},
          {"next_commit_s", report.next_commit ? Json(report.next_commit->count()) : Json()},
          {"longest_pause_s", report.longest_pause.count()},
          {"run_over", report.run_over}};
}

}  // namespace mayfly
