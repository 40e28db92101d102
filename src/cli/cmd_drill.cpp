#include <fmt/core.h>

#include <memory>

#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "drill/drill.h"

namespace mayfly::cli {
namespace {

struct DrillFlags {
  std::string directory{};
  std::string lose = "half";
  std::string notice = "none";
  std::string window{};
  bool json = false;
};

Result<void> read_lose(const std::string& text, DrillRequest& request) {
  if (text == "server") request.lose = DrillRequest::Lose::server;
  if (text == "controller") request.lose = DrillRequest::Lose::controller;
  request.all = text == "all";
  if (text == "half" || text == "all" || text == "server" || text == "controller") return {};
  const auto count = parse_integer(text);
  if (!count || *count < 1) return fail("--lose '{}': want half, all, a number of workers, server or controller", text);
  request.count = count;
  return {};
}

Result<void> read_notice(const std::string& text, DrillRequest& request) {
  const auto cloud = parse_cloud(text);
  if (!cloud && text != "sigterm") return fail("--notice '{}': want aws, gcp, azure, sigterm or none", text);
  request.notice = text == "sigterm"       ? DrillRequest::Notice::sigterm
                   : *cloud == Cloud::none ? DrillRequest::Notice::none
                                           : DrillRequest::Notice::cloud;
  request.cloud = cloud.value_or(Cloud::none);
  if (request.lose == DrillRequest::Lose::controller && request.notice != DrillRequest::Notice::none)
    return fail("--notice {}: a controller gets none (SIGTERM would stop the run): want --notice none", text);
  return {};
}

Result<DrillRequest> request_of(const DrillFlags& options) {
  DrillRequest request{.directory = options.directory};
  if (const auto read = read_lose(options.lose, request); !read) return unexpected(read.error());
  if (const auto read = read_notice(options.notice, request); !read) return unexpected(read.error());
  if (options.window.empty()) return request;
  const auto window = parse_duration(options.window);
  if (!window) return fail("--window: {}", window.error().message);
  request.window = *window;
  return request;
}

std::string text_of(const DrillReport& report) {
  Table table({"taken", ">pid", "left by itself"});
  for (const DrillLoss& loss : report.losses) {
    const std::string name =
        loss.worker < 0 ? "controller" : fmt::format("{} {}", loss.server ? "server" : "worker", loss.worker);
    table.add({name, std::to_string(loss.pid),
               loss.killed ? std::string("no, killed")
                           : fmt::format("after {}", format_duration(loss.left_after.value_or(Seconds(0))))});
  }
  std::string text = table.text();
  text += fmt::format("samples committed before and after   {:.0f}, {:.0f}\n", report.committed_before,
                      report.committed_after);
  text += fmt::format("samples trained again                {:.0f}\n", report.samples_redone);
  text += fmt::format("from the loss to the next commit     {}\n",
                      report.next_commit ? format_duration(*report.next_commit)
                      : report.run_over  ? std::string("none needed: the run has ended")
                                         : std::string("none so far"));
  text += fmt::format("longest time without a commit        {}\n", format_duration(report.longest_pause));
  return text;
}

int run_drill(const DrillFlags& options) {
  const auto request = request_of(options);
  if (!request) return bad_input(request.error());
  const auto report = drill(*request, note);
  if (!report) return bad_input(report.error());
  if (options.json) {
    print_json(drill_json(*report));
  } else {
    fmt::print("{}", text_of(*report));
  }
  return report->next_commit || report->run_over ? kDone : kFailed;
}

}  // namespace

void add_drill(CLI::App& program, int& code) {
  auto options = std::make_shared<DrillFlags>();
  auto* verb = program.add_subcommand("drill", "rehearse the loss of machines against a running job");
  verb->add_option("directory", options->directory, "the run's folder")->required();
  verb->add_option("--lose", options->lose,
                   "half of the workers (rounded up), all, a number of them, one server, or the controller; those "
                   "longest in the run go first")
      ->capture_default_str();
  verb->add_option("--notice", options->notice,
                   "what they hear before: aws, gcp or azure as their metadata services would say it, sigterm as "
                   "Kubernetes and Slurm do, none: SIGKILL at once")
      ->capture_default_str();
  verb->add_option("--window", options->window,
                   "from the notice to SIGKILL for who is still there (default: aws 120s, others 30s)");
  verb->add_flag("--json", options->json, "print the report as one JSON document");
  verb->footer(
      "Only processes of this machine are touched. Exit code 1: the run has not committed a step within a minute.\n"
      "Example: mayfly drill mayfly-runs/count --lose half --notice aws");
  verb->callback([options, &code] { code = run_drill(*options); });
}

}  // namespace mayfly::cli
