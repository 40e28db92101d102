#include "report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "report/reading.h"

namespace mayfly {
namespace {

std::string number_cell(double value) { return fmt::format("{}", value); }

std::string cell(const Json& value) {
  if (value.is_string()) return csv_text(value.get_ref<const std::string&>());
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_unsigned()) return fmt::format("{}", value.get<std::uint64_t>());
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  const auto number = finite(value);
  return number ? number_cell(*number) : "";
}

/// A heading and the key whose value stands below it.
struct Heading {
  std::string text;
  const char* key;
};

std::string at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? "" : cell(*found);
}

class CsvWriter {
 public:
  explicit CsvWriter(const std::vector<std::string>& headings) { line(headings); }
  /// Cells are ready: quoted where they must be.
  void add(const std::vector<std::string>& cells) {
    line(cells);
    empty_ = false;
  }
  bool empty() const { return empty_; }
  const std::string& text() const { return text_; }

 private:
  void line(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) text_ += (i == 0 ? "" : ",") + cells[i];
    text_ += "\r\n";
  }
  std::string text_;
  bool empty_ = true;
};

std::vector<std::string> headings_of(const std::vector<Heading>& headings) {
  std::vector<std::string> texts;
  for (const Heading& heading : headings) texts.push_back(csv_text(heading.text));
  return texts;
}

/// A row for each object of a list.
CsvWriter rows_table(const Json& list, const std::vector<Heading>& headings) {
  CsvWriter csv(headings_of(headings));
  for (const Json& object : list) {
    if (!object.is_object()) continue;
    std::vector<std::string> cells;
    for (const Heading& heading : headings) cells.push_back(at(object, heading.key));
    csv.add(cells);
  }
  return csv;
}

struct SeriesColumn {
  std::string heading;
  const Json* values;
};

/// A row for each entry of the first column; `prefix` stands in front of every row.
void add_series(CsvWriter& csv, const std::vector<SeriesColumn>& columns, const std::vector<std::string>& prefix) {
  for (std::size_t row = 0; row < columns[0].values->size(); ++row) {
    std::vector<std::string> cells = prefix;
    for (const SeriesColumn& column : columns)
      cells.push_back(row < column.values->size() ? cell((*column.values)[row]) : "");
    csv.add(cells);
  }
}

CsvWriter series_table(const std::vector<SeriesColumn>& columns) {
  std::vector<std::string> headings;
  for (const SeriesColumn& column : columns) headings.push_back(csv_text(column.heading));
  CsvWriter csv(headings);
  add_series(csv, columns, {});
  return csv;
}

CsvWriter counts_table(const Fields& counts) {
  std::vector<SeriesColumn> columns{{"time_s", &counts.list("t_s")}, {"machines training", &counts.list("used")}};
  for (const Json& series : counts.list("series")) {
    const Fields fields(series);
    columns.push_back(
        {fmt::format("machines held {} {}", fields.text("type"), fields.text("market")), &fields.list("n")});
  }
  return series_table(columns);
}

using Tables = std::vector<CsvTable>;

void keep(Tables& all, const std::string& name, const CsvWriter& csv) {
  if (!csv.empty()) all.push_back({name, csv.text()});
}

void add_view(Tables& all, const Fields& view, const std::string& prefix) {
  const auto series = [&](const char* key, std::initializer_list<Heading> headings) {
    const Fields object = view.object(key);
    std::vector<SeriesColumn> columns;
    for (const Heading& heading : headings) columns.push_back({heading.text, &object.list(heading.key)});
    return series_table(columns);
  };
  keep(all, prefix + "machines",
       rows_table(view.list("machines"), {{"name", "name"},
                                          {"type", "type"},
                                          {"market", "market"},
                                          {"usd_per_hour", "usd_per_hour"},
                                          {"from_s", "from_s"},
                                          {"to_s", "to_s"},
                                          {"end", "end"},
                                          {"notice_s", "notice_s"}}));
  keep(all, prefix + "counts", counts_table(view.object("counts")));
  keep(all, prefix + "progress", series("progress", {{"time_s", "t_s"}, {"samples", "samples"}}));
  keep(all, prefix + "losses", series("losses", {{"time_s", "t_s"}, {"loss", "loss"}}));
  keep(all, prefix + "validation",
       series("validation", {{"time_s", "t_s"}, {"loss", "loss"}, {"accuracy", "accuracy"}}));
  keep(all, prefix + "money",
       series("money", {{"time_s", "t_s"}, {"spent_usd", "usd"}, {"usd_per_hour", "usd_per_hour"}}));
  keep(all, prefix + "happenings",
       rows_table(view.list("happenings"), {{"id", "id"},
                                            {"time_s", "t_s"},
                                            {"kind", "kind"},
                                            {"worker", "worker"},
                                            {"text", "text"},
                                            {"why", "why"},
                                            {"stall_s", "stall_s"},
                                            {"cost_usd", "cost_usd"}}));
  keep(all, prefix + "scorecard",
       rows_table(view.list("scorecard"), {{"what", "what"},
                                           {"unit", "unit"},
                                           {"promised", "promised"},
                                           {"predicted", "predicted"},
                                           {"delivered", "delivered"},
                                           {"kept", "kept"}}));
}

/// Everything that a shell or a file system may take amiss becomes a dash, several of them one.
std::string file_name(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  std::string safe;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (plain || (c == '.' && !safe.empty() && safe.back() != '-'))
      safe += c;
    else if (!safe.empty() && safe.back() != '-')
      safe += '-';
    if (safe.size() == kLongest) break;
  }
  while (safe.ends_with('-')) safe.pop_back();
  return safe.empty() ? "view" : safe;
}

/// Views of the same name are numbered from the second on.
void add_views(Tables& all, const Json& views) {
  std::vector<std::string> taken;
  for (const Json& view : views) {
    const Fields fields(view);
    const std::string name = file_name(view_label(fields));
    std::string prefix = name;
    for (int n = 2; std::find(taken.begin(), taken.end(), prefix) != taken.end(); ++n)
      prefix = fmt::format("{}-{}", name, n);
    taken.push_back(prefix);
    add_view(all, fields, views.size() > 1 ? prefix + "-" : "");
  }
}

void add_option(CsvWriter& csv, const char* which, const Json& option) {
  const Fields fields(option);
  if (!finite(fields, "time_s") && !finite(fields, "cost_usd")) return;
  std::vector<std::string> cells{which, csv_text(machine_lines_text(fields.list("cluster"))),
                                 csv_text(machine_lines_text(fields.list("servers")))};
  for (const char* key : {"platform", "functions", "memory_mib", "time_s", "time_s_p10", "time_s_p90", "cost_usd",
                          "cost_usd_p10", "cost_usd_p90", "cost_usd_p50", "cost_usd_p95", "deadline_probability"})
    cells.push_back(at(option, key));
  csv.add(cells);
}

CsvWriter plan_table(const Json& plan) {
  CsvWriter csv({"which", "cluster", "servers", "platform", "functions", "memory_mib", "time_s", "time_s_p10",
                 "time_s_p90", "cost_usd", "cost_usd_p10", "cost_usd_p90", "cost_usd_p50", "cost_usd_p95",
                 "deadline_probability"});
  if (!plan.is_object()) return csv;
  const Fields fields(plan);
  add_option(csv, "chosen", plan);
  if (const auto nearest = plan.find("nearest"); nearest != plan.end()) add_option(csv, "nearest", *nearest);
  for (const Json& option : fields.list("runners_up")) add_option(csv, "runner-up", option);
  for (const Json& option : fields.list("frontier")) add_option(csv, "frontier", option);
  for (const Json& option : fields.list("considered")) add_option(csv, "considered", option);
  return csv;
}

CsvWriter policies_table(const Json& policies) {
  static constexpr std::array kKeys{"samples", "samples_per_s", "cost_usd",       "time_s",  "machine_hours",
                                    "changes", "preemptions",   "share_of_ideal", "finished"};
  static constexpr std::array kShares{"useful", "redundant", "reconfigure", "lost", "idle"};
  std::vector<std::string> headings{"policy"};
  headings.insert(headings.end(), kKeys.begin(), kKeys.end());
  for (const char* share : kShares) headings.push_back(std::string("share_") + share);
  CsvWriter csv(headings);
  for (const Json& policy : policies) {
    if (!policy.is_object()) continue;
    const Fields fields(policy), share = fields.object("share");
    std::vector<std::string> cells{csv_text(fields.text("policy"))};
    for (const char* key : kKeys) cells.push_back(at(policy, key));
    for (const char* key : kShares) {
      const auto part = finite(share, key);
      cells.push_back(part ? number_cell(*part) : "");
    }
    csv.add(cells);
  }
  return csv;
}

CsvWriter intervals_table(const Json& policies) {
  CsvWriter csv({"policy", "time_s", "available", "data_parallel", "stages", "extra"});
  for (const Json& policy : policies) {
    const Fields fields(policy);
    for (const Json& interval : fields.list("intervals")) {
      if (!interval.is_object()) continue;
      std::vector<std::string> cells{csv_text(fields.text("policy"))};
      for (const char* key : {"t_s", "available", "data_parallel", "stages", "extra"})
        cells.push_back(at(interval, key));
      csv.add(cells);
    }
  }
  return csv;
}

CsvWriter policy_series(const Json& policies, const char* key, const char* values, const char* heading) {
  CsvWriter csv({"policy", "time_s", heading});
  for (const Json& policy : policies) {
    const Fields fields(policy), object = fields.object(key);
    add_series(csv, {{"", &object.list("t_s")}, {"", &object.list(values)}}, {csv_text(fields.text("policy"))});
  }
  return csv;
}

CsvWriter stalls_table(const Fields& stalls) {
  CsvWriter csv({"stall", "time_s", "time_s_low", "time_s_high", "share"});
  for (const char* key : {"interconnect", "prep", "fetch", "network"}) {
    const Fields stall = stalls.object(key);
    if (!finite(stall, "seconds")) continue;
    std::vector<std::string> cells{key};
    for (const char* figure : {"seconds", "seconds_low", "seconds_high", "share"}) {
      const auto value = finite(stall, figure);
      cells.push_back(value ? number_cell(*value) : "");
    }
    csv.add(cells);
  }
  return csv;
}

}  // namespace

std::string csv_text(std::string_view text) {
  if (text.empty()) return {};
  const bool formula = std::string_view("=+-@\t\r\n").find(text.front()) != std::string_view::npos;
  std::string safe = formula ? "'" : "";
  safe += text;
  if (safe.find_first_of(",\"\r\n") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (const char c : safe) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::vector<CsvTable> tables(const Json& report) {
  Tables all;
  const Fields document(report);
  add_views(all, document.list("views"));
  static const Json kNone;
  const auto plan = report.find("plan");
  keep(all, "plan-options", plan_table(plan == report.end() ? kNone : *plan));
  const Json& policies = document.object("replay").list("policies");
  keep(all, "replay-policies", policies_table(policies));
  keep(all, "replay-intervals", intervals_table(policies));
  keep(all, "replay-progress", policy_series(policies, "progress", "samples", "samples"));
  keep(all, "replay-money", policy_series(policies, "money", "usd", "spent_usd"));
  keep(all, "stalls", stalls_table(document.object("profile").object("stalls")));
  return all;
}

}  // namespace mayfly
