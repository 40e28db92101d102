// Model: docs/models.md#backtest
#include "backtest/run_backtest.h"

#include <algorithm>
#include <map>

#include "base/fields.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "report/chronicle.h"
#include "status/folder.h"
#include "status/summary.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

Result<std::vector<PlanLine>> lines_in(const Json& list, const fs::path& path) {
  std::vector<PlanLine> lines;
  for (const Json& json : list) {
    const Fields fields = json.is_object() ? Fields(json) : Fields(list);
    const auto market = parse_market(fields.text("market"));
    const auto count = fields.whole("n");
    const auto rate = fields.real("usd_per_hour");
    constexpr std::int64_t kMost = 1'000'000;
    if (!json.is_object() || !market || !count || *count < 1 || *count > kMost || !rate || !(*rate >= 0))
      return fail("{}: cluster: want lines of type, market, n and usd_per_hour", path.string());
    lines.push_back({fields.text("type"), *market, fields.text("zone"), static_cast<int>(*count), {*rate}});
  }
  return lines;
}

Result<void> read_plan(const fs::path& path, RunBacktest& test) {
  std::error_code error;
  if (!fs::exists(path, error)) return fail("{}: not there: a run without a plan promised nothing", path.string());
  const auto text = load_own_text(path);
  if (!text) return unexpected(text.error());
  const Json json = parsed_json(*text);
  if (!json.is_object() || !Fields(json).text("format").starts_with("mayfly-plan/"))
    return fail("{}: want a plan, format mayfly-plan/1", path.string());
  const Fields plan(json);
  auto cluster = lines_in(plan.list("cluster"), path);
  if (!cluster) return unexpected(cluster.error());
  auto servers = lines_in(plan.list("servers"), path);
  if (!servers) return unexpected(servers.error());
  const auto time = plan.time("time_s");
  const auto cost = plan.money("cost_usd");
  if (cluster->empty() || !time || !cost)
    return fail("{}: want a plan of machines, with its time and cost", path.string());
  test.cluster = *std::move(cluster);
  test.servers = *std::move(servers);
  test.promised_time = *time;
  test.promised_cost = *cost;
  test.promised_chance = plan.real("deadline_probability");
  test.deadline = plan.time("deadline_s");
  return {};
}

/// What the market had of each type, and for how much, as a run came to know it.
class Seen {
 public:
  void add(const Fields& line) {
    const std::string event = line.text("event");
    const Seconds time = line.time("t_s").value_or(Seconds(0));
    const std::string worker = line.text("worker");
    if (!line.text("ignored").empty()) return;
    if (event == "joined" && line.text("market") == name(Market::spot)) {
      const std::string type = line.text("type");
      workers_[worker] = type;
      change(type, time, 1);
      price(type, time, line);
    } else if (event == "lost" && workers_.contains(worker)) {
      change(workers_[worker], time, -1);
      workers_.erase(worker);
    } else if (event == "priced" && line.text("market") != name(Market::on_demand)) {
      price(line.text("type"), time, line);
    }
  }

  Supply supply(const PlanLine& line) const {
    Supply supply{.lines = {{.kind = {line.type, line.zone, Market::spot}, .most = line.count, .price = line.rate}}};
    if (const auto found = changes_.find(line.type); found != changes_.end()) supply.changes = found->second;
    if (const auto found = prices_.find(line.type); found != prices_.end()) supply.lines[0].prices = found->second;
    return supply;
  }

 private:
  void change(const std::string& type, Seconds time, int by) {
    auto& changes = changes_[type];
    const int before = changes.empty() ? 0 : changes.back().available;
    if (changes.empty() || changes.back().time < time) changes.push_back({.time = time, .available = before});
    changes.back().available += by;
    (by > 0 ? changes.back().added : changes.back().removed) += 1;
  }
  void price(const std::string& type, Seconds time, const Fields& line) {
    const auto rate = line.real("usd_per_hour");
    if (!rate) return;
    auto& prices = prices_[type];
    if (!prices.empty() && prices.back().time >= time) prices.pop_back();
    prices.push_back({time, {*rate}});
  }

  std::map<std::string, std::string> workers_{};  ///< name -> type, of the market
  std::map<std::string, std::vector<Change>> changes_{};
  std::map<std::string, std::vector<PricePoint>> prices_{};
};

int machines_in(const std::vector<PlanLine>& lines) {
  int sum = 0;
  for (const PlanLine& line : lines) sum += line.count;
  return sum;
}

/// Lines of one type draw on the same machines: as one.
Scene scene_of(const RunBacktest& test, const Seen& seen, Seconds duration) {
  Scene scene{.duration = duration};
  for (const PlanLine& line : test.servers) scene.standing += static_cast<double>(line.count) * line.rate;
  std::vector<PlanLine> spot;
  for (const PlanLine& line : test.cluster) {
    if (line.market != Market::spot) {
      scene.rented.push_back({.price = line.rate, .count = line.count});
      continue;
    }
    const auto same =
        std::find_if(spot.begin(), spot.end(), [&](const auto& other) { return other.type == line.type; });
    if (same != spot.end()) {
      same->count += line.count;
    } else {
      spot.push_back(line);
    }
  }
  for (const PlanLine& line : spot) scene.supplies.push_back(seen.supply(line));
  return scene;
}

std::optional<UsdPerHour> on_demand_price(const RunBacktest& test, const Catalog& catalog) {
  UsdPerHour sum{};
  for (const PlanLine& line : test.servers) sum += static_cast<double>(line.count) * line.rate;
  for (const PlanLine& line : test.cluster) {
    const InstanceType* type = catalog.find(line.type);
    if (type == nullptr || !type->on_demand) return {};
    sum += static_cast<double>(line.count) * type->on_demand->rate;
  }
  return sum;
}

void add_rules(RunBacktest& test, const Seen& seen, const Catalog& catalog, const RuleFigures& figures) {
  constexpr double kFar = 100;  // of the run: when a market that lacks a machine is waited for no longer
  const Seconds far = kFar * std::max({test.time, test.work, test.deadline.value_or(Seconds(0))});
  const auto on_demand = on_demand_price(test, catalog);
  const Rental rental = rental_of(scene_of(test, seen, far), on_demand.value_or(UsdPerHour{}));
  const RuleJob job{.work = test.work.count(), .deadline = test.deadline.value_or(Seconds(0)).count()};
  const auto add = [&](std::string rule, const RuleRun& run) {
    RunRule row{.rule = std::move(rule), .run = run, .cost = Usd{run.cost}};
    if (test.deadline) row.in_time = run.finished && run.time <= test.deadline->count();
    test.rules.push_back(std::move(row));
  };
  if (on_demand) add("on-demand", {true, job.work, (*on_demand * test.work).value, 0});
  add("fixed", fixed_run(rental, job, figures));
  if (on_demand && test.deadline) add("uniform-progress", uniform_progress_run(rental, job, figures));
}

}  // namespace

Result<RunBacktest> load_run_backtest(const fs::path& folder, const Catalog& catalog, const RuleFigures& figures) {
  const auto summary = load_summary(folder);
  if (!summary) return unexpected(summary.error());
  if (summary->end != RunEnd::trained)
    return fail("{}: ended '{}', want a run that was trained: nobody knows what the others would have taken",
                folder.string(), name(summary->end));
  RunBacktest test{
      .name = run_name(folder), .time = summary->time, .cost = summary->cost, .preemptions = summary->preemptions};
  if (const auto read = read_plan(folder / "plan.json", test); !read) return unexpected(read.error());
  if (test.deadline) test.in_time = test.time <= *test.deadline;
  const auto journal = load_own_text(folder / "journal.jsonl");
  if (!journal) return unexpected(journal.error());
  Chronicle chronicle;
  Seen seen;
  for (const std::string_view line : split(*journal, '\n')) {
    chronicle.add(line);
    const Json json = parsed_json(line);
    if (json.is_object()) seen.add(Fields(json));
  }
  test.work = Seconds(chronicle.usage().useful / machines_in(test.cluster));
  if (test.work.count() <= 0) return fail("{}: its journal tells of no training", folder.string());
  add_rules(test, seen, catalog, figures);
  return test;
}

Json run_backtest_json(const RunBacktest& test) {
  Json json{{"format", "mayfly-run-backtest/1"},
            {"run", test.name},
            {"deadline_s", or_null(test.deadline)},
            {"promised",
             {{"time_s", test.promised_time.count()},
              {"cost_usd", test.promised_cost.value},
              {"deadline_probability", or_null(test.promised_chance)}}},
            {"delivered",
             {{"time_s", test.time.count()},
              {"cost_usd", or_null(test.cost)},
              {"kept", or_null(test.in_time)},
              {"preemptions", test.preemptions}}},
            {"work_s", test.work.count()},
            {"rules", Json::array()}};
  for (const RunRule& rule : test.rules)
    json["rules"].push_back({{"rule", rule.rule},
                             {"kept", or_null(rule.in_time)},
                             {"finished", rule.run.finished},
                             {"time_s", rule.run.time},
                             {"cost_usd", or_null(rule.cost)},
                             {"restarts", rule.run.restarts}});
  return json;
}

}  // namespace mayfly
