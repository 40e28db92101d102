#include "cloud/spot_weather.h"

#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "cloud/catalog.h"

namespace mayfly {
namespace {

/// Machine types name their GPUs with the memory: A100-80GB is an A100.
bool is_of(const WeatherTable::Rule& rule, const InstanceType& type) {
  const std::string gpu = type.gpu ? type.gpu->model.substr(0, type.gpu->model.find('-')) : "";
  return (rule.cloud.empty() || rule.cloud == type.cloud) && (rule.gpu.empty() || rule.gpu == gpu) &&
         (rule.region.empty() || rule.region == type.region);
}

int says(const WeatherTable::Rule& rule) {
  return (rule.region.empty() ? 0 : 4) + (rule.gpu.empty() ? 0 : 2) + (rule.cloud.empty() ? 0 : 1);
}

WeatherTable::Rule read_rule(Section& entry, const std::vector<Source>& sources) {
  WeatherTable::Rule rule{.cloud = entry.maybe_text("cloud").value_or(""),
                          .gpu = entry.maybe_text("gpu").value_or(""),
                          .region = entry.maybe_text("region").value_or(""),
                          .weather = {.losses_per_hour = entry.number("losses_per_hour", Range::non_negative),
                                      .spread = entry.number("spread", Range::non_negative),
                                      .wait = Seconds(entry.number("wait_s", Range::non_negative)),
                                      .together = entry.number("together", Range::fraction),
                                      .source = entry.text("source")}};
  const auto named = [&](const Source& source) { return source.id == rule.weather.source; };
  if (entry.ok() && std::none_of(sources.begin(), sources.end(), named))
    entry.reject("source", fmt::format("source '{}' is not under 'sources'", rule.weather.source));
  entry.finish();
  return rule;
}

WeatherTable read_weather(Section& root) {
  WeatherTable table;
  for (auto& [id, entry] : root.section("sources").each()) table.sources.push_back(read_source(id, entry));
  table.start = Seconds(root.number("start_s", Range::non_negative));
  table.recovery = Seconds(root.number("recovery_s", Range::non_negative));
  root.text("start_source");
  for (Section& entry : root.list("rules")) table.rules.push_back(read_rule(entry, table.sources));
  if (root.ok() && (table.rules.empty() || says(table.rules.back()) > 0))
    root.reject("rules", "want a last rule that holds for every type: without cloud, gpu and region");
  return table;
}

}  // namespace

const WeatherTable::Rule& WeatherTable::rule_of(const InstanceType& type) const {
  MAYFLY_CHECK(!rules.empty(), "a table of weather has a last rule for everything");
  const Rule* best = &rules.back();
  for (const Rule& rule : rules) {
    if (is_of(rule, type) && says(rule) > says(*best)) best = &rule;
  }
  return *best;
}

Result<WeatherTable> parse_weather(std::string_view text, const std::string& file) {
  return read_document(text, file, "mayfly-weather/1", read_weather);
}

Result<WeatherTable> load_weather(const std::filesystem::path& path) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  return parse_weather(*text, path.string());
}

}  // namespace mayfly
