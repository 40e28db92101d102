#include "report/exhibits.h"

#include "base/fields.h"
#include "base/file.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "report/chronicle.h"
#include "report/view.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

Result<Chronicle> chronicle_in(const fs::path& path) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  Chronicle chronicle;
  for (const std::string_view line : split(*text, '\n')) chronicle.add(line);
  // The last line may be unfinished: its writer was killed.
  if (chronicle.lines() == 0 || chronicle.broken() > 1)
    return fail("{}: {} of {} lines are none of a journal", path.string(), chronicle.broken(), chronicle.lines());
  return chronicle;
}

bool is_journal(std::string_view text) {
  const Json head = parsed_json(text.substr(0, text.find('\n')));
  return head.is_object() && Fields(head).text("format").starts_with("mayfly-journal/");
}

/// Puts a document into its place, which must be empty.
Result<void> place(Json& report, const char* key, Json document, const fs::path& path) {
  if (!report[key].is_null()) return fail("{}: a second {}, want one at most", path.string(), key);
  report[key] = std::move(document);
  return {};
}

Result<void> add_file(Json& report, const fs::path& path, const Catalog* catalog) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  if (is_journal(*text)) {
    const auto chronicle = chronicle_in(path);
    if (!chronicle) return unexpected(chronicle.error());
    std::string name = chronicle->policy().empty() ? chronicle->job() : chronicle->policy();
    if (name.empty()) name = path.stem().string();
    report["views"].push_back(view_json(*chronicle, {.name = std::move(name), .catalog = catalog}));
    return {};
  }
  Json json = parsed_json(*text);
  const std::string format = json.is_object() ? Fields(json).text("format") : "";
  if (format.starts_with("mayfly-plan/")) {
    if (!json.contains("target") || !json["target"].is_object())
      return fail("{}: a plan without its target", path.string());
    return place(report, "plan", std::move(json), path);
  }
  if (format.starts_with("mayfly-profile/")) {
    if (!json.contains("stalls"))
      return fail("{}: a profile without stalls, which mayfly profile --stalls adds", path.string());
    return place(report, "profile", std::move(json), path);
  }
  if (json.is_object() && json.contains("trace") && json["trace"].is_object() && json.contains("policies") &&
      json["policies"].is_array())
    return place(report, "replay", std::move(json), path);
  return fail("{}: want the folder of a run, a journal, a plan, a profile with stalls or what replay --json prints",
              path.string());
}

Result<void> add_folder(Json& report, const fs::path& path, const Catalog* catalog) {
  std::error_code error;
  if (!fs::exists(path / "journal.jsonl", error))
    return fail("{}: no run in it: there is no journal.jsonl", path.string());
  const auto chronicle = chronicle_in(path / "journal.jsonl");
  if (!chronicle) return unexpected(chronicle.error());
  ViewContext context = load_view_context(path);
  context.catalog = catalog;
  if (report["plan"].is_null() && Fields(context.plan).text("format").starts_with("mayfly-plan/"))
    report["plan"] = context.plan;
  report["views"].push_back(view_json(*chronicle, context));
  return {};
}

}  // namespace

Result<Json> load_exhibits(const std::vector<fs::path>& paths, const Catalog* catalog) {
  Json report{{"format", "mayfly-report/1"},
              {"views", Json::array()},
              {"plan", Json()},
              {"replay", Json()},
              {"profile", Json()}};
  for (const fs::path& path : paths) {
    std::error_code error;
    const auto added =
        fs::is_directory(path, error) ? add_folder(report, path, catalog) : add_file(report, path, catalog);
    if (!added) return unexpected(added.error());
  }
  return report;
}

}  // namespace mayfly
