#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "base/file.h"
#include "base/how_many.h"
#include "base/text.h"
#include "cli/command.h"
#include "notice/clock.h"
#include "report/event_file.h"
#include "report/exhibits.h"
#include "report/page.h"
#include "report/pictures.h"
#include "report/tables.h"
#include "status/folder.h"

namespace mayfly::cli {
namespace fs = std::filesystem;
namespace {

struct ReportFlags {
  std::vector<std::string> paths{};
  std::string output = "report.html";
  std::string title{};
  std::string svg{};
  std::string csv{};
  std::string tensorboard{};
  std::string catalog{};
  bool json = false;
};

struct NamedText {
  std::string name{};
  std::string text{};
};

/// Files of a folder that is made where it is not there; nothing is written if it cannot be.
Result<void> save_all(const std::string& folder, const std::vector<NamedText>& files) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail("{}: cannot create: {}", folder, error.message());
  for (const NamedText& file : files) {
    if (const auto saved = save_text(fs::path(folder) / file.name, file.text); !saved) return saved;
  }
  return {};
}

/// Of the first path: the run's folder, or the file without its ending.
std::string title_of(const ReportFlags& options) {
  if (!options.title.empty()) return options.title;
  const std::string name = run_name(options.paths.front());
  return name.substr(0, name.rfind('.') == 0 ? std::string::npos : name.rfind('.'));
}

/// When a run began, as far as its files tell; a replay begins now.
double began(const std::string& path) {
  const auto status = load_status(path);
  return status ? status->written - status->time.count() : unix_now();
}

/// A report must not take the place of what it is made from.
Result<void> check_output(const ReportFlags& options) {
  const fs::path output = options.output;
  std::error_code error;
  for (const std::string& path : options.paths) {
    const bool same = fs::equivalent(output, path, error);
    const bool in_run = fs::exists(output, error) && fs::equivalent(fs::absolute(output).parent_path(), path, error) &&
                        output.extension() != ".html";
    if ((same && !fs::is_directory(output, error)) || in_run)
      return fail("-o {}: the report is made from it, want another file", options.output);
  }
  return {};
}

Result<std::vector<std::string>> save_report(const ReportFlags& options, const Json& report) {
  std::vector<std::string> written;
  if (const auto saved = save_text(options.output, report_html(report)); !saved) return unexpected(saved.error());
  written.push_back(options.output);
  if (!options.svg.empty()) {
    std::vector<NamedText> files;
    for (const Picture& picture : pictures(report)) files.push_back({picture.name + ".svg", picture.svg});
    if (const auto saved = save_all(options.svg, files); !saved) return unexpected(saved.error());
    written.push_back(fmt::format("{}: {}", options.svg, how_many(std::ssize(files), "picture")));
  }
  if (!options.csv.empty()) {
    std::vector<NamedText> files;
    for (const CsvTable& table : tables(report)) files.push_back({table.name + ".csv", table.text});
    if (const auto saved = save_all(options.csv, files); !saved) return unexpected(saved.error());
    written.push_back(fmt::format("{}: {}", options.csv, how_many(std::ssize(files), "table")));
  }
  if (!options.tensorboard.empty()) {
    if (report["views"].empty()) return fail("--tensorboard: no run among what was given");
    const double start = began(options.paths.front());
    const std::string name = fmt::format("events.out.tfevents.{:.0f}.mayfly", start);
    if (const auto saved = save_all(options.tensorboard, {{name, event_file(report["views"][0], start)}}); !saved)
      return unexpected(saved.error());
    written.push_back((fs::path(options.tensorboard) / name).string());
  }
  return written;
}

int report(const ReportFlags& options) {
  if (const auto fine = check_output(options); !fine) return bad_input(fine.error());
  const auto catalog = read_catalogs(options.catalog);
  if (!catalog) return bad_input(catalog.error());
  auto exhibits = load_exhibits({options.paths.begin(), options.paths.end()}, &*catalog);
  if (!exhibits) return bad_input(exhibits.error());
  Json document{{"format", (*exhibits)["format"]},
                {"title", title_of(options)},
                {"made", format_time(unix_now())},
                {"version", "mayfly " MAYFLY_VERSION}};
  document.update(*exhibits);
  const auto written = save_report(options, document);
  if (!written) return bad_input(written.error());
  if (options.json) {
    print_json(document);
  } else {
    for (const std::string& line : *written) fmt::print("{}\n", line);
  }
  return kDone;
}

}  // namespace

void add_report(CLI::App& program, int& code) {
  auto options = std::make_shared<ReportFlags>();
  auto* verb = program.add_subcommand("report", "one HTML file that shows a run, a plan, a replay or a stall analysis");
  verb->add_option("paths", options->paths,
                   "folders of runs, journals, plan.json, profile.json with stalls, or what replay --json printed; "
                   "the first run is shown whole, further ones are compared with it")
      ->required();
  verb->add_option("-o,--output", options->output, "the HTML file; it needs no network")->capture_default_str();
  verb->add_option("--title", options->title, "default: the name of the first path");
  verb->add_option("--svg", options->svg, "also write pictures into this folder");
  verb->add_option("--csv", options->csv, "also write tables into this folder");
  verb->add_option("--tensorboard", options->tensorboard, "also write the first run's curves for TensorBoard here");
  verb->add_option("--catalog", options->catalog,
                   "catalogue files or names, separated by commas, for prices on demand");
  verb->add_flag("--json", options->json, "print the report's document");
  verb->footer("Example: mayfly report mayfly-runs/count-20260101T120000 -o report.html --svg pictures");
  verb->callback([options, &code] { code = report(*options); });
}

}  // namespace mayfly::cli
