#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/table.h"
#include "cli/command.h"
#include "cli/findings.h"

namespace mayfly::cli {
namespace {

struct CheckFlags {
  std::string job{};
  std::string engine_file{};
  std::string out = "mayfly-runs";
  std::string notices = "auto";
  bool json = false;
};

std::string_view name(Finding::State state) {
  if (state == Finding::State::unused) return "unused";
  return state == Finding::State::ok ? "ok" : "no";
}

int check(const CheckFlags& options) {
  if (const auto service = metadata_service(options.notices, endpoints_of_environment(), {}); !service)
    return bad_input({"--" + service.error().message});
  std::vector<Finding> all = engine_findings(options.job, options.engine_file);
  for (const auto& group : {device_findings(), notice_findings(options.notices),
                            data_findings(options.job, options.out), python_findings()})
    all.insert(all.end(), group.begin(), group.end());
  const bool local = std::none_of(all.begin(), all.end(), [](const Finding& finding) {
    return finding.needed && finding.state == Finding::State::no;
  });
  Table table({"GROUP", "NAME", "STATE", "WHY"});
  Json checks = Json::array();
  for (const Finding& finding : all) {
    table.add({finding.group, finding.name, std::string(name(finding.state)), finding.detail});
    checks.push_back({{"group", finding.group},
                      {"name", finding.name},
                      {"state", name(finding.state)},
                      {"needed", finding.needed},
                      {"detail", finding.detail}});
  }
  if (options.json) {
    print_json({{"format", "mayfly-check/1"}, {"local", local}, {"checks", checks}});
  } else {
    fmt::print("{}\nlocal runs {}\n", table.text(), local ? "work" : "do not work");
  }
  return local ? kDone : kNo;
}

}  // namespace

void add_check(CLI::App& program, int& code) {
  auto options = std::make_shared<CheckFlags>();
  auto* verb = program.add_subcommand("check", "what works on this machine: engines, devices, notices, data, Python");
  verb->add_option("job", options->job, "job.yaml whose data files are looked for, and whose engine is asked");
  verb->add_option("--engine-file", options->engine_file, "hosts or program of an engine, which are asked");
  verb->add_option("--out", options->out, "the folder in which runs are written")->capture_default_str();
  verb->add_option("--notices", options->notices,
                   "whose metadata service is asked: auto, aws, gcp, azure or none (auto asks nobody outside a cloud)")
      ->capture_default_str();
  verb->add_flag("--json", options->json, "print the findings as one JSON document");
  verb->footer("Exit code 0: local runs work; 3: they do not.\nExample: mayfly check examples/count/job.yaml");
  verb->callback([options, &code] { code = check(*options); });
}

}  // namespace mayfly::cli
