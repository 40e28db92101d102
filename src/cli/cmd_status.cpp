#include <fmt/core.h>

#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "cli/status_text.h"

namespace mayfly::cli {
namespace {

struct StatusFlags {
  std::string directory{};
  bool json = false;
};

constexpr const char* kRuns = "mayfly-runs";

int list_runs(bool json) {
  std::error_code error;
  if (!std::filesystem::exists(kRuns, error))
    return bad_input({fmt::format("no {} here: want the folder of a run, or a place where runs were started", kRuns)});
  const auto views = view_runs(kRuns);
  if (!views) return bad_input(views.error());
  if (!json) {
    fmt::print("{}", views->empty() ? fmt::format("no runs in {}\n", kRuns) : printable(runs_text(*views)));
    return kDone;
  }
  Json list = Json::array();
  for (const RunView& view : *views) list.push_back(run_json(view));
  print_json({{"runs", std::move(list)}});
  return kDone;
}

int status(const StatusFlags& options) {
  if (options.directory.empty()) return list_runs(options.json);
  const auto view = view_known_run(options.directory);
  if (!view) return bad_input(view.error());
  if (options.json) {
    print_json(run_json(*view));
  } else {
    fmt::print("{}", printable(run_text(*view)));
  }
  return kDone;
}

}  // namespace

void add_status(CLI::App& program, int& code) {
  auto options = std::make_shared<StatusFlags>();
  auto* verb = program.add_subcommand("status", "where a run stands, while it lives and after");
  verb->add_option("directory", options->directory, "the run's folder (default: all runs in ./mayfly-runs)");
  verb->add_flag("--json", options->json, "print one JSON document");
  verb->footer(
      "States: starting, running, finished, stopped, failed, and lost where whoever drove it was killed; mayfly resume "
      "goes on with the last three. Figures are as the controller last wrote them, once a second.\nExample: mayfly "
      "status mayfly-runs/count-20260101T120000");
  verb->callback([options, &code] { code = status(*options); });
}

}  // namespace mayfly::cli
